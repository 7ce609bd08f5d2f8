"""The reply of a hook: its exit code and output, and what they mean."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from goose_like.core.dataclass import dataclass

from .foreign import read_output
from .settings import GATES, Handler

Decision = Literal["pass", "ask", "deny"]

_DECISIONS: dict[str, Decision] = {
    "allow": "pass",
    "approve": "pass",
    "ask": "ask",
    "block": "deny",
    "defer": "ask",
    "deny": "deny",
}
_TEXT_IS_CONTEXT = ("SessionStart", "UserPromptSubmit", "PreCompact", "SubagentStart")
"""The events at which plain output is context."""

_MAX_REASON_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class RawReply:
    """The exit code of a command and its output, or the failure to run it. A reply over HTTP has code 0."""

    code: int = 0
    output: str = ""
    errors: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """The meaning of a reply. `failure`: the hook did not do its work.

    `decision` is "deny" where the hook blocks something. `stop`: a reason to end the turn. `notice` is for the person.
    """

    decision: Decision = "pass"
    reason: str = ""
    context: str = ""
    updated: Mapping[str, Any] | None = None
    output: str | None = None
    notice: str = ""
    stop: str | None = None
    failure: str = ""


def read_reply(handler: Handler, raw: RawReply) -> Reply:
    """Read a reply. A failure blocks or asks where the event or the hook demands it."""
    reply = _read(handler.event, raw)
    if not reply.failure:
        return reply
    reason = f"{handler.place} {reply.failure}"
    if handler.blocks_on_failure:
        return replace(reply, decision="deny", reason=reason)
    if handler.event in GATES:
        return replace(reply, decision="ask", reason=reason)
    return replace(reply, reason=reason)


def _read(event: str, raw: RawReply) -> Reply:
    if raw.failure:
        return Reply(failure=raw.failure)
    if raw.code == 2:
        reason = raw.errors.strip() or raw.output.strip()
        return Reply("deny", reason[:_MAX_REASON_CHARS])
    if raw.code:
        return Reply(failure=_describe_code(raw))
    text = raw.output.strip()
    if not text.startswith("{"):
        context = text if event in _TEXT_IS_CONTEXT else ""
        return Reply(context=context)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return Reply(failure="printed broken JSON")
    try:
        return _read_json(data)
    except _WrongValueError as error:
        return Reply(failure=f"printed JSON with a wrong value: {error}")


def _describe_code(raw: RawReply) -> str:
    """Describe an exit code that means that the hook failed."""
    from goose_like.workspace.processes.process import describe_exit

    if raw.code == 127:
        text = "is missing (exit code 127)"
    elif raw.code < 0:
        text = f"was {describe_exit(raw.code)}"
    else:
        text = f"ended with {describe_exit(raw.code)}"
    lines = raw.errors.strip().splitlines()
    if lines:
        text += f": {lines[-1][:200]}"
    return text


class _WrongValueError(Exception):
    """A value has a wrong type, or a decision is unknown."""


def _get(data: Mapping[str, Any], key: str, kind: Any, default: Any) -> Any:
    value = data.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise _WrongValueError(f"`{key}` can't be {value!r:.60}")
    return value


def _read_json(data: Mapping[str, Any]) -> Reply:
    """Read the object that a hook printed."""
    specific = _get(data, "hookSpecificOutput", dict, {})
    inner = _get(specific, "decision", dict, {})  # of a PermissionRequest
    words = [
        _get(data, "decision", str, ""),
        _get(specific, "permissionDecision", str, ""),
        _get(inner, "behavior", str, ""),
    ]
    decision: Decision = "pass"
    for word in filter(None, words):
        found = _DECISIONS.get(word)
        if found is None:
            raise _WrongValueError(f"there is no decision {word!r}")
        decision = max(decision, found, key=("pass", "ask", "deny").index)
    reasons = [
        _get(specific, "permissionDecisionReason", str, ""),
        _get(data, "reason", str, ""),
        _get(inner, "message", str, ""),
    ]
    stop = None
    if not _get(data, "continue", bool, True):
        stop = _get(data, "stopReason", str, "") or "a hook ended it"
    output = None
    for key in ("updatedToolOutput", "updatedMCPToolOutput"):
        if specific.get(key) is not None:
            output = read_output(specific[key])
    context = _get(specific, "additionalContext", str, "") or _get(data, "additionalContext", str, "")
    return Reply(
        decision,
        next(filter(None, reasons), "")[:_MAX_REASON_CHARS],
        context=context,
        updated=_get(specific, "updatedInput", dict, None),
        output=output,
        notice=_get(data, "systemMessage", str, ""),
        stop=stop,
    )


_BLOCKED = {
    "UserPromptSubmit": "the message is not sent",
    "PreToolUse": "the call is denied",
    "PermissionRequest": "the permission is denied",
    "PostToolUse": "the model reads the reason with the result",
    "PostToolUseFailure": "the model reads the reason with the error",
    "Stop": "the model goes on, with the reason",
}
"""The effect of a block by event. At the other events there is nothing to block."""


def describe_effect(handler: Handler, reply: Reply) -> str:
    """Describe the effect of a reply in one sentence, for people."""
    effects = [_describe_decision(handler, reply)]
    if reply.reason:
        effects[0] += f": {reply.reason}"
    if reply.stop is not None:
        effects.append(f"the turn ends: {reply.stop}")
    if reply.updated is not None:
        effects.append("the call gets other arguments, which are checked again")
    if reply.output is not None:
        effects.append("the model reads another output")
    if reply.context:
        effects.append("the model reads its context")
    return "; ".join(effects)


def _describe_decision(handler: Handler, reply: Reply) -> str:
    if reply.decision == "deny":
        return _BLOCKED.get(handler.event, "you are told the reason; nothing can be blocked here")
    if reply.decision == "ask":
        return "you are asked; where nobody can answer, it is denied"
    if reply.failure:
        return "you are told once; nothing else changes"
    return "no objection"
