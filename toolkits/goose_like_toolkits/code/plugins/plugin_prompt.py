"""A plugin as a model reads it: as a function with comments, and as a tool with a JSON schema."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from goose_like.config.yaml_source import describe_field_error
from goose_like.core.entry_points import did_you_mean
from goose_like.core.tool import ToolSpec

from .spec import PYTHON, Definition, Parameter

_SIMPLE = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "None": "null", "dict": "object"}
_KINDS = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None, "array": list, "object": dict}
_LISTS = {"list", "tuple", "set", "sequence", "iterable"}
_MAPPINGS = {"dict", "mapping"}


def prompt_form(definition: Definition) -> str:
    """The head of a function with what the YAML says as comments; `= ...` stands for a default that nobody names."""
    lines = [*_comment(definition.description)]
    if definition.examples:
        lines += ["# Examples:", *_comment(definition.examples)]
    lines.append(f"def {definition.name}(" if definition.parameters else f"def {definition.name}()")
    for parameter in definition.parameters:
        lines += _comment(parameter.description, "    ")
        lines.append(f"    {parameter.name}: {parameter.type}{_default(parameter)},")
    if definition.parameters:
        lines.append(")")
    returns = definition.returns
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
        lines += _comment("gives " + ": ".join(filter(None, (returns[0].name, returns[0].description))), "    ")
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: str = "") -> Iterator[str]:
    return (f"{indent}# {line}".rstrip() for line in text.splitlines())


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return ""
    return f" = {parameter.default!r}" if "default" in parameter.model_fields_set else " = ..."


def tool_spec(definition: Definition) -> ToolSpec:
    """The plugin as a tool of its own, called with its parameters by name."""
    properties = {parameter.name: _property(parameter) for parameter in definition.parameters}
    schema = {
        "type": "object",
        "properties": properties,
        "required": definition.required_names,
        "additionalProperties": False,
    }
    returned = "; ".join(
        f"{each.name or 'result'} ({each.type}) {each.description}".strip() for each in definition.returns
    )
    told = [definition.description, f"Returns: {returned}" if returned else ""]
    return ToolSpec(definition.name, "\n".join(filter(None, told)), schema)


def parameters_of(definition: Definition) -> type[BaseModel]:
    """A model that checks the arguments of such a call, as far as JSON's types go."""
    fields: dict[str, Any] = {
        f"arg_{each.name}": (_kind(schema_of(each.type)), Field(... if each.required else None, alias=each.name))
        for each in definition.parameters
    }
    return create_model(f"{definition.name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _kind(schema: Mapping[str, Any]) -> Any:
    """What pydantic checks for a schema; what it does not know it lets pass."""
    if options := schema.get("anyOf"):
        return reduce(or_, map(_kind, options))
    if values := schema.get("enum"):
        return Literal[tuple(values)]
    return _KINDS.get(str(schema.get("type")), Any)


def takes_of(definition: Definition) -> str:
    """What a call gives it, in few words."""
    return f"{definition.name} takes {' '.join(f'{each.name}=...' for each in definition.parameters) or 'nothing'}"


def faults_in(definition: Definition, arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a call, in words; empty where nothing is."""
    kinds = {each.name: each.type for each in definition.parameters}
    if unknown := next((name for name in arguments if name not in kinds), None):
        return f"{definition.name} takes no {unknown!r}; {did_you_mean(unknown, kinds)}"
    if missing := next((name for name in definition.required_names if name not in arguments), None):
        return f"{missing!r} is missing; {takes_of(definition)}"
    try:
        parameters_of(definition).model_validate(arguments)
    except ValidationError as error:
        return "; ".join(describe_field_error(fault, definition.name) for fault in error.errors())
    return ""


def call_of(definition: Definition, arguments: Mapping[str, Any]) -> str:
    """The call in Python, of arguments in which there is no fault: their names become code."""
    return f"{definition.name}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def _property(parameter: Parameter) -> dict[str, Any]:
    schema = schema_of(parameter.type)
    words = [parameter.description] if parameter.description else []
    if not schema and parameter.type != "Any":
        words.append(f"type: {parameter.type}")
    if not parameter.required and "default" in parameter.model_fields_set:
        words.append(f"default: {parameter.default!r}")
    return {**schema, "description": "; ".join(words)} if words else schema


def schema_of(words: str) -> dict[str, Any]:
    """The JSON schema of a type in Python's words or plain ones (`str or list`, `list of str`, `Optional[int]`).

    What is no type of JSON's is no restriction: `{}`.
    """
    words = re.sub(r"\s+or\s+|\s*/\s*", " | ", words.strip())
    words = re.sub(r"\b(list|array)s?\s+of\s+(\w+)", lambda found: f"list[{_singular(found[2])}]", words, flags=re.I)
    try:
        return _schema(ast.parse(words, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _singular(word: str) -> str:
    known = (PYTHON.get(each, each) for each in (word.lower(), word.lower().removesuffix("s")))
    return next((each for each in known if each in _SIMPLE), word)


def _schema(node: ast.expr) -> dict[str, Any]:
    match node:
        case ast.BinOp(op=ast.BitOr()):
            return _any_of([_schema(node.left), _schema(node.right)])
        case ast.Subscript():
            return _subscripted(_name(node.value).lower(), node.slice)
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(quoted)):  # a forward reference
            return schema_of(quoted)
    name = _name(node)
    if name.lower() in _LISTS:
        return {"type": "array"}
    kind = _SIMPLE.get(PYTHON.get(name.lower(), name))
    return {"type": kind} if kind else {}


def _subscripted(outer: str, inner: ast.expr) -> dict[str, Any]:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if outer == "optional":
        return _any_of([_schema(parts[0]), {"type": "null"}])
    if outer == "union":
        return _any_of([_schema(part) for part in parts])
    if outer == "literal":
        values = [part.value for part in parts if isinstance(part, ast.Constant)]
        return {"enum": values} if len(values) == len(parts) else {}
    if outer == "annotated":
        return _schema(parts[0])
    if outer in _LISTS:
        items = _schema(parts[0]) if len(parts) == 1 or _is_endless(parts) else {}
        return {"type": "array", "items": items} if items else {"type": "array"}
    if outer in _MAPPINGS:
        values_schema = _schema(parts[-1]) if len(parts) == 2 else {}
        return {"type": "object", "additionalProperties": values_schema} if values_schema else {"type": "object"}
    return {}


def _is_endless(parts: list[ast.expr]) -> bool:
    """`tuple[int, ...]`"""
    return len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is ...


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """One schema for several; without restriction where one of them has none."""
    if not all(schemas):
        return {}
    flat: list[dict[str, Any]] = []
    for schema in schemas:
        flat += [each for each in schema.get("anyOf", [schema]) if each not in flat]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _name(node: ast.expr) -> str:
    """`List` of `typing.List`."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
