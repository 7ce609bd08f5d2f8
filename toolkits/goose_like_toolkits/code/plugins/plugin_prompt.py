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
from .spec import PYTHON_TYPES, Parameter, PluginSpec, ReturnValue

_SIMPLE = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null", "dict": "object"}
_TYPES = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": None,
    "array": list,
    "object": dict,
}
_LISTS = {"list", "tuple", "set", "sequence", "iterable"}
_MAPPINGS = {"dict", "mapping"}
_ALTERNATIVE = re.compile(r"\s+or\s+|\s*/\s*")
_LIST_OF = re.compile(r"\b(?:list|array)s?\s+of\s+(\w+)", re.IGNORECASE)


def format_signatures(specs: Iterable[PluginSpec]) -> str:
    """Format plugins as Python functions with comments."""
    return "\n".join(map(format_signature, specs)).rstrip("\n")


def format_signature(spec: PluginSpec) -> str:
    """Format a plugin as the head of a Python function; `= ...` stands for an unknown default."""
    lines = [*_comment(spec.description)]
    if spec.examples:
        lines += ["# Examples:", *_comment(spec.examples)]
    lines += _format_head(spec)
    if len(spec.returns) > 1:
        lines[-1] += " -> Tuple["
        for each in spec.returns:
            lines += _comment(_describe_return(each), "    ")
            lines.append(f"    {each.type},")
        lines.append("]")
    elif spec.returns:
        lines[-1] += f" -> {spec.returns[0].type}"
    lines[-1] += ": ..."
    if len(spec.returns) == 1:
        lines += _comment(f"returns {_describe_return(spec.returns[0])}", "    ")
    return "\n".join(lines) + "\n"


def _format_head(spec: PluginSpec) -> list[str]:
    if not spec.parameters:
        return [f"def {spec.name}()"]
    lines = [f"def {spec.name}("]
    for parameter in spec.parameters:
        lines += _comment(parameter.description, "    ")
        default = _format_default(parameter)
        lines.append(f"    {parameter.name}: {parameter.type}{default},")
    lines.append(")")
    return lines


def _comment(text: str, indent: str = "") -> Iterator[str]:
    for line in text.splitlines():
        comment = f"{indent}# {line}"
        yield comment.rstrip()


def _format_default(parameter: Parameter) -> str:
    if parameter.required:
        return ""
    if "default" not in parameter.model_fields_set:
        return " = ..."
    return f" = {parameter.default!r}"


def _describe_return(value: ReturnValue) -> str:
    parts = [part for part in (value.name, value.description) if part]
    return ": ".join(parts)


def format_description(spec: PluginSpec, reason: str | None) -> str:
    """Return everything about a plugin: signature, configuration, and why it is off, if it is."""
    lines = [format_signature(spec).rstrip("\n")]
    for key, value in spec.configurations.items():
        lines.append(f"# configured: {key} = {value!r}")
    if reason:
        lines.append(f"# off: {reason}")
    return "\n".join(lines)


def format_call(spec: PluginSpec, arguments: Mapping[str, Any]) -> str:
    """Return the call in Python. Check the arguments first, because their names become code."""
    assigned = [f"{name}={value!r}" for name, value in arguments.items()]
    return f"{spec.name}({', '.join(assigned)})"


def describe_arguments(spec: PluginSpec) -> str:
    """Return how a plugin is called, for an error message."""
    arguments = [f"{name}=..." for name in spec.parameter_names]
    return f"{spec.name} takes {' '.join(arguments) or 'nothing'}"


def check_arguments(spec: PluginSpec, arguments: Mapping[str, Any]) -> str:
    """Return why a plugin cannot be called with these arguments, or ""."""
    names = spec.parameter_names
    for name in arguments:
        if name not in names:
            return f"{spec.name} takes no {name!r}; {did_you_mean(name, names)}"
    for name in spec.required_names:
        if name not in arguments:
            return f"{name!r} is missing; {describe_arguments(spec)}"
    try:
        make_arguments_model(spec).model_validate(arguments)
    except ValidationError as error:
        reasons = [describe_field_error(each, spec.name) for each in error.errors()]
        return "; ".join(reasons)
    return ""


def make_tool_spec(spec: PluginSpec) -> ToolSpec:
    """Return the plugin as a tool that takes its parameters by name."""
    schema = {
        "type": "object",
        "properties": {parameter.name: _make_property(parameter) for parameter in spec.parameters},
        "required": spec.required_names,
        "additionalProperties": False,
    }
    description = spec.description
    if spec.returns:
        returns = []
        for each in spec.returns:
            name = each.name or "result"
            text = f"{name} ({each.type}) {each.description}"
            returns.append(text.strip())
        description += f"\nReturns: {'; '.join(returns)}"
    return ToolSpec(spec.name, description, schema)


def make_arguments_model(spec: PluginSpec) -> type[BaseModel]:
    """Return a model that checks the arguments of a call, as far as JSON types allow."""
    fields: dict[str, Any] = {}
    for each in spec.parameters:
        default = ... if each.required else None
        field = Field(default, alias=each.name)
        fields[f"arg_{each.name}"] = (_get_checked_type(make_schema(each.type)), field)
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
    notes = []
    if parameter.description:
        notes.append(parameter.description)
    if not schema and parameter.type != "Any":
        notes.append(f"type: {parameter.type}")
    if not parameter.required and "default" in parameter.model_fields_set:
        notes.append(f"default: {parameter.default!r}")
    if notes:
        schema["description"] = "; ".join(notes)
    return schema


def make_schema(text: str) -> dict[str, Any]:
    """Return the JSON schema of a type in Python syntax or plain words (`str or list`, `list of str`).

    A type that JSON does not have becomes `{}`, which allows anything.
    """
    text = _ALTERNATIVE.sub(" | ", text.strip())
    text = _LIST_OF.sub(lambda match: f"list[{_to_singular(match[1])}]", text)
    try:
        return _convert(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _to_singular(word: str) -> str:
    lower = word.lower()
    for form in (lower, lower.removesuffix("s")):
        name = PYTHON_TYPES.get(form, form)
        if name in _SIMPLE:
            return name
    return word


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
        return _make_union(list(map(_convert, parts)))
    if outer == "literal":
        values = [part.value for part in parts if isinstance(part, ast.Constant)]
        return {"enum": values} if len(values) == len(parts) else {}
    if outer == "annotated":
        return _convert(parts[0])
    if outer in _LISTS:
        return _make_array(parts)
    if outer in _MAPPINGS:
        return _make_object(parts)
    return {}


def _make_array(parts: list[ast.expr]) -> dict[str, Any]:
    """Return the schema of a list. Tuples with several types have no schema for their items."""
    is_endless = len(parts) == 2 and ast.unparse(parts[1]) == "..."  # `tuple[int, ...]`
    schema: dict[str, Any] = {"type": "array"}
    if len(parts) == 1 or is_endless:
        items = _convert(parts[0])
        if items:
            schema["items"] = items
    return schema


def _make_object(parts: list[ast.expr]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    if len(parts) == 2:
        values = _convert(parts[1])
        if values:
            schema["additionalProperties"] = values
    return schema


def _make_union(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one schema for several; `{}` if one of them allows anything."""
    if not all(schemas):
        return {}
    flat: list[dict[str, Any]] = []
    for schema in schemas:
        for option in schema.get("anyOf", [schema]):
            if option not in flat:
                flat.append(option)
    return flat[0] if len(flat) == 1 else {"anyOf": flat}
