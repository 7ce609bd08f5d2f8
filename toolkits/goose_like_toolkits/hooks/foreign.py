"""Tool calls as other agents write them: the names of tools, and the keys of arguments."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goose_like.core.dataclass import dataclass

from .settings import Format

Arguments = Mapping[str, Any]


class UntranslatableError(Exception):
    """Changed arguments of a hook have no form here. The text says why."""


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call with the names of another agent. One call of ours may be several there."""

    name: str
    input: dict[str, Any]


_KEYS: dict[str, tuple[str, dict[str, str]]] = {
    "delegate": ("Task", {"task": "prompt", "profile": "subagent_type"}),
    "fetch_web_content": ("WebFetch", {"url": "url", "looking_for": "prompt"}),
    "read_file": ("Read", {"path": "file_path", "start_line": "offset"}),
    "shell": ("Bash", {"command": "command", "timeout_s": "timeout"}),
    "web_search": ("WebSearch", {"query": "query"}),
    "write_file": ("Write", {"path": "file_path", "content": "content"}),
}
"""Tools whose calls have the same parts in Claude Code: its name, and its keys by ours."""

_PATCH_KEYS = {"before": "old_string", "after": "new_string", "replace_all": "replace_all"}


def translate_call(form: Format, tool: str, arguments: Arguments, root: Path) -> list[ForeignCall]:
    """Return a call of ours as the calls that another agent would make. Unknown tools keep their names and keys."""
    if form == "ours":
        return [ForeignCall(tool, dict(arguments))]
    if form == "codex":
        return [_translate_for_codex(tool, arguments)]
    if tool in _KEYS:
        return [_rename(tool, arguments, root)]
    calls: list[ForeignCall] = []
    if tool == "patch_file":
        calls = _translate_patches(arguments, root)
    elif tool == "process":
        calls = [_translate_process(arguments)]
    return calls or [ForeignCall(tool, dict(arguments))]


def list_names(form: Format, tool: str, arguments: Arguments, root: Path) -> set[str]:
    """Return the names that a call has in our tools and in those of another agent."""
    names = {tool}
    for one in {form, "claude"}:
        names.update(call.name for call in translate_call(one, tool, arguments, root))
    return names


def _absolute(path: object, root: Path) -> str:
    return str(Path(root, str(path)))


def _rename(tool: str, arguments: Arguments, root: Path) -> ForeignCall:
    name, keys = _KEYS[tool]
    renamed: dict[str, Any] = {}
    for ours, theirs in keys.items():
        if ours in arguments:
            renamed[theirs] = arguments[ours]
    if "file_path" in renamed:
        renamed["file_path"] = _absolute(renamed["file_path"], root)
    if "timeout" in renamed:
        renamed["timeout"] = round(float(renamed["timeout"]) * 1000)
    end = arguments.get("end_line")
    if isinstance(end, int):
        renamed["limit"] = end - int(arguments.get("start_line", 1)) + 1
    return ForeignCall(name, renamed)


def _translate_patches(arguments: Arguments, root: Path) -> list[ForeignCall]:
    """Return one `Edit` for each patch, so that a hook sees all of them."""
    path = _absolute(arguments.get("path", ""), root)
    calls: list[ForeignCall] = []
    for patch in _list_mappings(arguments.get("patches")):
        edit: dict[str, Any] = {"file_path": path}
        for ours, theirs in _PATCH_KEYS.items():
            if ours in patch:
                edit[theirs] = patch[ours]
        calls.append(ForeignCall("Edit", edit))
    return calls


def _translate_process(arguments: Arguments) -> ForeignCall:
    """Return a process as a command in the background. Text that is typed into it may be a command, too."""
    match arguments.get("action"):
        case "start" | "restart":
            return ForeignCall("Bash", {"command": arguments.get("command", ""), "run_in_background": True})
        case "write":
            return ForeignCall("Bash", {"command": arguments.get("text", "")})
        case "stop":
            return ForeignCall("KillShell", {"shell_id": arguments.get("id", "")})
    return ForeignCall("BashOutput", {"bash_id": arguments.get("id", "")})


def _translate_for_codex(tool: str, arguments: Arguments) -> ForeignCall:
    """Return a call as Codex makes it: files are changed by a patch in its own format."""
    path = arguments.get("path", "")
    match tool:
        case "shell":
            return ForeignCall("Bash", {"command": arguments.get("command", "")})
        case "process" if arguments.get("action") in ("start", "restart", "write"):
            text = arguments.get("command") or arguments.get("text", "")
            return ForeignCall("Bash", {"command": text})
        case "write_file":
            lines = _mark_lines("+", arguments.get("content", ""))
            return _make_patch(f"*** Add File: {path}", lines)
        case "patch_file":
            lines = []
            for patch in _list_mappings(arguments.get("patches")):
                removed = _mark_lines("-", patch.get("before", ""))
                lines += ["@@", *removed, *_mark_lines("+", patch.get("after", ""))]
            return _make_patch(f"*** Update File: {path}", lines)
    return ForeignCall(tool, dict(arguments))


def _mark_lines(mark: str, text: object) -> list[str]:
    return [mark + line for line in str(text).splitlines()]


def _make_patch(head: str, lines: Sequence[str]) -> ForeignCall:
    text = "\n".join(["*** Begin Patch", head, *lines, "*** End Patch"])
    return ForeignCall("apply_patch", {"command": text})


def _list_mappings(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        return []
    return [entry for entry in value if isinstance(entry, Mapping)]


# --- the way back


def restore_arguments(
    form: Format, tool: str, arguments: Arguments, part: int, updated: Arguments, root: Path
) -> dict[str, Any]:
    """Return our arguments after a hook changed those of a foreign call; `part` is its number among the calls.

    Keys that the hook left out keep their values.

    Raises:
        UntranslatableError: a key or a tool has no counterpart here.
    """
    if form == "ours":
        return {**arguments, **updated}
    before = translate_call(form, tool, arguments, root)[part].input
    changed: dict[str, Any] = {}
    for key, value in updated.items():
        if key not in before or before[key] != value:
            changed[key] = value
    if not changed:
        return dict(arguments)
    if form == "claude" and tool == "patch_file":
        return _restore_patch(arguments, part, changed)
    keys = _list_restorable(form, tool)
    restored = dict(arguments)
    for key, value in changed.items():
        if key not in keys:
            raise UntranslatableError(f"it wants another {key!r}, which {tool} can't have")
        if key == "timeout":
            value = float(value) / 1000
        restored[keys[key]] = value
    return restored


def _list_restorable(form: Format, tool: str) -> dict[str, str]:
    """Return the keys of a tool of ours by those of another agent."""
    if form == "codex":
        return {"command": "command"} if tool == "shell" else {}
    _, keys = _KEYS.get(tool, ("", {}))
    return {theirs: ours for ours, theirs in keys.items()}


def _restore_patch(arguments: Arguments, part: int, changed: Arguments) -> dict[str, Any]:
    names = {theirs: ours for ours, theirs in _PATCH_KEYS.items()}
    patches = [dict(patch) for patch in _list_mappings(arguments.get("patches"))]
    for key, value in changed.items():
        if key not in names:
            raise UntranslatableError(f"it wants another {key!r} for one of several patches")
        patches[part][names[key]] = value
    return {**arguments, "patches": patches}


def make_response(form: Format, call: ForeignCall, output: str) -> object:
    """Return the output of a call as another agent passes it to a hook."""
    if form != "claude":
        return output
    match call.name:
        case "Bash":
            return {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        case "Write" | "Edit":
            return {"filePath": call.input.get("file_path", ""), "success": True, "output": output}
    return {"output": output}


def read_output(value: object) -> str:
    """Return the text of an output that a hook wants in place of the real one."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and isinstance(value.get("stdout"), str):
        return str(value["stdout"])
    return json.dumps(value, ensure_ascii=False)
