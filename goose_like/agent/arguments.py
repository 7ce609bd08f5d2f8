"""The arguments of a tool call: read from the model's JSON, with the mistakes that leave no doubt about the meaning."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from goose_like.core.tool import Tool, ToolError

_MAX_PROBLEMS = 5
_MAX_VALUE_CHARS = 80

_COMMENTS = frozenset(
    {
        *("description", "explanation", "intent", "purpose", "rationale", "reason", "reasoning", "summary", "thought"),
        *("thoughts", "title", "security_risk", "risk", "safety_assessment", "task_progress", "requires_approval"),
    }
)
"""Fields in which models explain a call, as the tools of other agents ask them to. No tool needs them."""


def read_arguments(tool: Tool, text: str) -> dict[str, Any]:
    """Read the arguments of a call, by name. Only given arguments are included.

    Raises:
        ToolError: The text is no JSON object, or does not fit the tool. The error names the fields.
    """
    try:
        checked = tool.parameters.model_validate_json(text.strip() or "{}")
    except ValidationError as error:
        repaired = _repair_arguments(tool, text, error.errors())
        try:
            checked = tool.parameters.model_validate_json(json.dumps(repaired))
        except (ValidationError, ValueError):
            raise _describe_error(tool, error) from error
    given: dict[str, Any] = {}
    for name, field in tool.parameters.model_fields.items():
        if name in checked.model_fields_set:
            given[field.alias or name] = getattr(checked, name)
    return given | (checked.model_extra or {})


def _repair_arguments(tool: Tool, text: str, problems: Sequence[ErrorDetails]) -> Any:
    """Repair what has one clear meaning. What has none stays, so that it fails again."""
    arguments = _parse(text)
    if isinstance(arguments, str):  # all arguments were encoded twice
        arguments = _parse(arguments)
        if isinstance(arguments, dict):
            problems = _find_problems(tool, arguments)
    if not isinstance(arguments, dict):
        return arguments
    for problem in problems:
        _repair_problem(arguments, problem, tool)
    return arguments


def _find_problems(tool: Tool, arguments: Mapping[str, Any]) -> Sequence[ErrorDetails]:
    try:
        tool.parameters.model_validate_json(json.dumps(arguments))
    except ValidationError as error:
        return error.errors()
    return ()


def _repair_problem(arguments: dict[str, Any], problem: ErrorDetails, tool: Tool) -> None:
    *path, key = problem["loc"] or ("",)
    holder = _find_part(arguments, path)
    if not isinstance(holder, dict) or key not in holder:
        return
    value = holder[key]
    is_optional = bool(path) or key not in tool.spec.schema.get("required", [])
    is_left_out = value is None and is_optional
    is_comment = problem["type"] == "extra_forbidden" and key in _COMMENTS
    if is_left_out or is_comment:
        del holder[key]
    elif problem["type"] == "list_type":
        holder[key] = _read_list(value)
    elif problem["type"] in ("dict_type", "model_type", "model_attributes_type", "dataclass_type"):
        found = _parse(value) if isinstance(value, str) else value
        holder[key] = found if isinstance(found, dict) else value


def _find_part(arguments: Any, path: Sequence[str | int]) -> Any:
    """Find the part of the arguments at a place, or return None. The place of a union names its types, too."""
    part = arguments
    for step in path:
        is_key = isinstance(part, dict) and step in part
        is_index = isinstance(part, list) and isinstance(step, int) and step < len(part)
        if not is_key and not is_index:
            return None
        part = part[step]
    return part


def _read_list(value: Any) -> Any:
    """Read a list from its JSON text, or from the only entry that it would have."""
    if isinstance(value, str):
        found = _parse(value)
        if isinstance(found, list):
            return found
        return [found if isinstance(found, dict) else value]
    return [value] if isinstance(value, dict) else value


def _parse(text: str) -> Any:
    """Return the value of a JSON text, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def describe_cut(tool: Tool) -> str:
    """Describe a call that reached the output limit of the model, for the model."""
    text = "your message reached its output limit within this call, so it was cut and did not run"
    return f"{text}. {_get_cut_advice(tool)}"


def _get_cut_advice(tool: Tool) -> str:
    return tool.options.when_cut or "Do it in parts, each in a message of its own"


def _describe_error(tool: Tool, error: ValidationError) -> ToolError:
    first = error.errors()[0]
    if first["type"] == "json_invalid" and "EOF" in first["msg"]:
        text = f"wrong arguments for {tool.name}: invalid JSON that ends in the middle, so nothing ran"
        return ToolError(f"{text}. If your message reached its output limit: {_get_cut_advice(tool)}")
    problems = error.errors()[:_MAX_PROBLEMS]
    texts = "; ".join(map(_describe_problem, problems))
    expected = f"send one JSON object with {_describe_fields(tool)}"
    return ToolError(f"wrong arguments for {tool.name}: {texts}; {expected}")


def _describe_fields(tool: Tool) -> str:
    properties = tool.spec.schema["properties"]
    required = tool.spec.schema.get("required", [])
    texts = []
    for name in properties:
        note = "" if name in required else " (optional)"
        texts.append(f"{name!r}{note}")
    return ", ".join(texts) or "no fields"


def _describe_problem(problem: ErrorDetails) -> str:
    field = ".".join(str(step) for step in problem["loc"])
    if problem["type"] == "missing":
        return f"field {field!r} is missing"
    if problem["type"] == "extra_forbidden":
        return f"there is no field {field!r}"
    value = repr(problem["input"])
    if len(value) > _MAX_VALUE_CHARS:
        value = value[: _MAX_VALUE_CHARS - 3] + "..."
    place = f"field {field!r}: " if field else ""
    message = problem["msg"]
    message = message[0].lower() + message[1:]
    return f"{place}{message}, not {value}"
