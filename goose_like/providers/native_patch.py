"""Calls of OpenAI's own tool `apply_patch`, as calls of the tool that takes V4A texts.

Source: the types of OpenAI's SDK (`ApplyPatchCall`, `ApplyPatchCallOutput`) and its guide on `apply_patch`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from goose_like.core.message import ToolCall, ToolResult

from .wire import encode_json, expect, sanitize_call_id

if TYPE_CHECKING:
    from openai.types.responses.response_input_item_param import (
        ApplyPatchCall,
        ApplyPatchCallOperation,
        ApplyPatchCallOutput,
    )

PATCH_TOOL: Literal["apply_patch"] = "apply_patch"
PATCH_CALL: Literal["apply_patch_call"] = "apply_patch_call"

_MARK = "patch:"
"""The start of the id of such a call in a history: the result must be of the same kind, and has only the id."""

_HEADS = {
    "create_file": "*** Add File: ",
    "update_file": "*** Update File: ",
    "delete_file": "*** Delete File: ",
}


def is_patch(call_id: str) -> bool:
    """Return whether a call came as one of `apply_patch`."""
    return call_id.startswith(_MARK)


def get_call_id(call_id: str) -> str:
    """Return the id of a call for the server."""
    return sanitize_call_id(call_id.removeprefix(_MARK))


def parse_patch_call(item: Mapping[str, Any], tool: str) -> ToolCall:
    """Parse an item as the call of a tool that takes V4A texts.

    Raises:
        BrokenStreamError: A value has a wrong type.
    """
    operation = expect(dict, item.get("operation"), "operation")
    kind = expect(str, operation.get("type"), "type")
    path = expect(str, operation.get("path"), "path")
    diff = expect(str, operation.get("diff"), "diff")
    head = _HEADS.get(kind, f"*** {kind} ")
    arguments = {"path": path, "patches": f"{head}{path}\n{diff}"}
    call_id = expect(str, item.get("call_id"), "call_id")
    return ToolCall(id=_MARK + call_id, name=tool, arguments=encode_json(arguments).decode())


def build_patch_call(call: ToolCall) -> "ApplyPatchCall":
    """Build the item of a call whose own item is no longer known."""
    return {
        "type": PATCH_CALL,
        "call_id": get_call_id(call.id),
        "status": "completed",
        "operation": _read_operation(call.parse_arguments()),
    }


def _read_operation(arguments: Mapping[str, Any]) -> "ApplyPatchCallOperation":
    path = str(arguments.get("path"))
    head, _, diff = str(arguments.get("patches")).partition("\n")
    if head.startswith(_HEADS["delete_file"]):
        return {"type": "delete_file", "path": path}
    if head.startswith(_HEADS["create_file"]):
        return {"type": "create_file", "path": path, "diff": diff}
    return {"type": "update_file", "path": path, "diff": diff}


def build_patch_result(result: ToolResult) -> "ApplyPatchCallOutput":
    """Build the item of a result."""
    return {
        "type": "apply_patch_call_output",
        "call_id": get_call_id(result.call_id),
        "status": "failed" if result.is_error else "completed",
        "output": result.output,
    }
