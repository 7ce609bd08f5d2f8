"""A plugin in the words of a prompt, as a tool with a JSON schema, and as a call in Python."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from goose_like.config.yaml_source import describe_field_error
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import ToolSpec

from .signature import get_last_name
from .spec import PYTHON_TYPES, Parameter, PluginSpec

_SIMPLE = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null", "dict": "object"}
_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None, "array": list, "object": dict}
_LISTS = {"list", "tuple", "set", "sequence", "iterable"}
_MAPPINGS = {"dict", "mapping"}


def format_signatures(specs: Iterable[PluginSpec]) -> str:
    """Format plugins as Python functions with comments."""
    return "\n".join(map(format_signature, specs)).rstrip("\n")


def format_signature(spec: PluginSpec) -> str:
    """Format a plugin as the head of a Python function; `= ...` stands for an unknown default."""
    lines = [*_comment(spec.description)]
    if spec.examples:
        lines += ["# Examples:", *_comment(spec.examples)]
    lines.append(f"def {spec.name}(" if spec.parameters else f"def {spec.name}()")
    for parameter in spec.parameters:
        lines += _comment(parameter.description, "    ")
        lines.append(f"    {parameter.name}: {parameter.type}{_format_default(parameter)},")
    if spec.parameters:
        lines.append(")")
    returns = spec.returns
    if len(returns) > 1:
        lines[-1] += " -> Tuple["
        for each in returns:
            lines += _comment(": ".join(filter(None, (each.name, each.description))), "    ")
            lines.append(f"    {each.type},")
        lines.append("]")
    elif returns:
        lines[-1] += f" -> {returns[0].type}"
    lines[-1] += ": ..."
    if len(returns) == 1:
        lines += _comment("returns " + ": ".join(filter(None, (returns[0].name, returns[0].description))), "    ")
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: str = "") -> Iterator[str]:
    return (f"{indent}# {line}".rstrip() for line in text.splitlines())


def _format_default(parameter: Parameter) -> str:
    if parameter.required:
        return ""
    return f" = {parameter.default!r}" if "default" in parameter.model_fields_set else " = ..."


def format_description(spec: PluginSpec, reason: str | None) -> str:
    """Return everything about a plugin: signature, configuration, and why it is off, if it is."""
    configured = [f"# configured: {key} = {value!r}" for key, value in spec.configurations.items()]
    return "\n".join([format_signature(spec).rstrip("\n"), *configured, *([f"# off: {reason}"] if reason else [])])


def format_call(spec: PluginSpec, arguments: Mapping[str, Any]) -> str:
    """Return the call in Python. Check the arguments first, because their names become code."""
    return f"{spec.name}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def describe_arguments(spec: PluginSpec) -> str:
    """Return how a plugin is called, for an error message."""
    return f"{spec.name} takes {' '.join(f'{each.name}=...' for each in spec.parameters) or 'nothing'}"


def check_arguments(spec: PluginSpec, arguments: Mapping[str, Any]) -> str:
    """Return why a plugin cannot be called with these arguments, or ""."""
    names = [parameter.name for parameter in spec.parameters]
    if unknown := next((name for name in arguments if name not in names), None):
        return f"{spec.name} takes no {unknown!r}; {did_you_mean(unknown, names)}"
    if missing := next((name for name in spec.required_names if name not in arguments), None):
        return f"{missing!r} is missing; {describe_arguments(spec)}"
    try:
        make_arguments_model(spec).model_validate(arguments)
    except ValidationError as error:
        return "; ".join(describe_field_error(each, spec.name) for each in error.errors())
    return ""


def make_tool_spec(spec: PluginSpec) -> ToolSpec:
    """Return the plugin as a tool that takes its parameters by name."""
    schema = {
        "type": "object",
        "properties": {parameter.name: _make_property(parameter) for parameter in spec.parameters},
        "required": spec.required_names,
        "additionalProperties": False,
    }
    returns = "; ".join(f"{each.name or 'result'} ({each.type}) {each.description}".strip() for each in spec.returns)
    lines = [spec.description, *([f"Returns: {returns}"] if returns else [])]
    return ToolSpec(spec.name, "\n".join(lines), schema)


def make_arguments_model(spec: PluginSpec) -> type[BaseModel]:
    """Return a model that checks the arguments of a call, as far as JSON types allow."""
    fields: dict[str, Any] = {
        f"arg_{each.name}": (
            _get_checked_type(make_schema(each.type)),
            Field(... if each.required else None, alias=each.name),
        )
        for each in spec.parameters
    }
    return create_model(f"{spec.name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _get_checked_type(schema: Mapping[str, Any]) -> Any:
    """Return the type that pydantic checks for a schema; `Any` for unknown types."""
    if options := schema.get("anyOf"):
        return reduce(or_, map(_get_checked_type, options))
    if values := schema.get("enum"):
        return Literal[tuple(values)]
    return _TYPES[schema["type"]] if "type" in schema else Any


def _make_property(parameter: Parameter) -> dict[str, Any]:
    schema = make_schema(parameter.type)
    notes = [parameter.description] if parameter.description else []
    if not schema and parameter.type != "Any":
        notes.append(f"type: {parameter.type}")
    if not parameter.required and "default" in parameter.model_fields_set:
        notes.append(f"default: {parameter.default!r}")
    return {**schema, "description": "; ".join(notes)} if notes else schema


def make_schema(text: str) -> dict[str, Any]:
    """Return the JSON schema of a type in Python syntax or plain words (`str or list`, `list of str`).

    A type that JSON does not have becomes `{}`, which allows anything.
    """
    text = re.sub(r"\s+or\s+|\s*/\s*", " | ", text.strip())
    text = re.sub(r"\b(list|array)s?\s+of\s+(\w+)", lambda match: f"list[{_to_singular(match[2])}]", text, flags=re.I)
    try:
        return _convert(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _to_singular(word: str) -> str:
    candidates = (PYTHON_TYPES.get(each, each) for each in (word.lower(), word.lower().removesuffix("s")))
    return next((each for each in candidates if each in _SIMPLE), word)


def _convert(node: ast.expr) -> dict[str, Any]:
    match node:
        case ast.BinOp(op=ast.BitOr()):
            return _make_union([_convert(node.left), _convert(node.right)])
        case ast.Subscript():
            return _convert_subscript(get_last_name(node.value).lower(), node.slice)
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(quoted)):  # a forward reference
            return make_schema(quoted)
    name = get_last_name(node)
    if name.lower() in _LISTS:
        return {"type": "array"}
    kind = _SIMPLE.get(PYTHON_TYPES.get(name.lower(), name))
    return {"type": kind} if kind else {}


def _convert_subscript(outer: str, inner: ast.expr) -> dict[str, Any]:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if outer == "optional":
        return _make_union([_convert(parts[0]), {"type": "null"}])
    if outer == "union":
        return _make_union([_convert(part) for part in parts])
    if outer == "literal":
        values = [part.value for part in parts if isinstance(part, ast.Constant)]
        return {"enum": values} if len(values) == len(parts) else {}
    if outer == "annotated":
        return _convert(parts[0])
    if outer in _LISTS:
        is_endless = len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is ...
        items = _convert(parts[0]) if len(parts) == 1 or is_endless else {}  # `tuple[int, ...]`
        return {"type": "array", "items": items} if items else {"type": "array"}
    if outer in _MAPPINGS:
        values_schema = _convert(parts[-1]) if len(parts) == 2 else {}
        return {"type": "object", "additionalProperties": values_schema} if values_schema else {"type": "object"}
    return {}


def _make_union(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one schema for several; `{}` if one of them allows anything."""
    if not all(schemas):
        return {}
    flat: list[dict[str, Any]] = []
    for schema in schemas:
        flat += [each for each in schema.get("anyOf", [schema]) if each not in flat]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}
