"""Hooks around tool calls: before a call, after it, and when a permission was denied to it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import DeniedError
from goose_like.core.masking import find_mask, mask_text
from goose_like.core.message import ToolCall
from goose_like.core.tool import Tool, ToolError, current_call
from goose_like.workspace.permissions.policy import format_refusal

from .arguments import read_arguments
from .hook_runner import Hook, HookRunner, list_hooks
from .hook_values import AfterCall, BeforeCall, CallVerdict, PermissionDenied, ResultChange
from .toolkit import Toolkit

_MAX_CONTEXT_CHARS = 10_000
_NO_CHANGE = ResultChange()


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call that no hook denies. `doubt` is a reason to ask the person, and `notes` follow the result."""

    tool: str
    arguments: dict[str, Any]
    doubt: str = ""
    notes: tuple[str, ...] = ()


class CallHooks:
    """The hooks around the tool calls of one exchange. Those of a `parent` hold in its subagents too.

    `subagent` is the name of the subagent that this exchange belongs to.
    """

    def __init__(
        self,
        runner: HookRunner,
        toolkits: Mapping[str, Toolkit],
        parent: "CallHooks | None" = None,
        subagent: str = "",
    ) -> None:
        self._runner = runner
        self._subagent = subagent
        before: Sequence[Hook] = ()
        after: Sequence[Hook] = ()
        denied: Sequence[Hook] = ()
        if parent:
            before = parent._before
            after = parent._after
            denied = parent._denied
        self._before: list[Hook] = list_hooks(toolkits, "before_call", before)
        self._after: list[Hook] = list_hooks(toolkits, "after_call", after)
        self._denied: list[Hook] = list_hooks(toolkits, "on_permission_denied", denied)
        self._started: dict[str, CheckedCall] = {}
        self._inner: dict[str, CheckedCall] = {}

    @property
    def is_empty(self) -> bool:
        """True if no toolkit has such a hook, so that a call needs no more work."""
        return not (self._before or self._after or self._denied)

    async def check(self, tool: Tool, arguments: dict[str, Any]) -> CheckedCall:
        """Ask each toolkit about a call. Each sees the arguments that those before it left.

        Raises:
            DeniedError: a toolkit denies the call; the others are not asked.
            ToolError: a toolkit replaced the arguments by wrong ones.
        """
        doubts: list[str] = []
        notes: list[str] = []
        for hook in self._before:
            text = to_json(arguments, fallback=repr).decode()
            call = BeforeCall(current_call.get(""), tool.name, json.loads(text), self._subagent)
            verdict = await self._judge(hook, call)
            reason = verdict.reason or f"the toolkit {hook.toolkit!r} gives no reason"
            if verdict.decision == "deny":
                refusal = format_refusal("tool", f"call {tool.name}", "hook", reason)
                raise DeniedError(refusal)
            if verdict.decision == "ask":
                doubts.append(reason)
            if verdict.arguments is not None:
                arguments = _replace_arguments(tool, verdict.arguments, hook.toolkit)
                present = to_json(arguments, fallback=repr).decode()
                if present != text:
                    notes.append(_format_note(hook.toolkit, f"the call ran with other arguments: {present}"))
            if verdict.context:
                notes.append(_format_note(hook.toolkit, verdict.context))
        return CheckedCall(tool.name, arguments, "; ".join(doubts), tuple(notes))

    async def _judge(self, hook: Hook, call: BeforeCall) -> CallVerdict:
        try:
            return await hook.ask(call, CallVerdict) or CallVerdict()
        except Exception as error:  # a check that does not work must not let everything pass
            reason = self._runner.report(hook, error, "so the person is asked about each call")
            return CallVerdict("ask", reason)

    def name_inner_call(self, tool: str, arguments: dict[str, Any]) -> None:
        """Record that the running call is one of another tool, whose name hooks are told."""
        if not self.is_empty:
            self._inner[current_call.get("")] = CheckedCall(tool, arguments)

    def start(self, checked: CheckedCall) -> None:
        """Record that a call runs now: all permissions are there."""
        self._started[current_call.get("")] = checked

    async def finish(self, call: ToolCall, output: str, *, is_error: bool, is_denied: bool) -> ResultChange:
        """Ask each toolkit about the result of a call, if the call ran. Return the new output, if any, and the notes.

        Each toolkit sees the output that those before it left, without secrets.
        """
        if self.is_empty:
            return _NO_CHANGE
        started = self._started.pop(call.id, None)
        inner = self._inner.pop(call.id, None)
        judged = started or inner or CheckedCall(call.name, call.parse_arguments())
        name = judged.tool
        arguments = judged.arguments
        shown = to_json(arguments, fallback=repr)
        if is_denied:
            denial = PermissionDenied(call.id, name, json.loads(shown), output, self._subagent)
            await self._runner.tell(self._denied, denial)
        if started is None:
            return _NO_CHANGE
        notes = list(started.notes)
        present = mask_text(output) if self._after else output
        is_replaced = False
        for hook in self._after:
            if hook.has_failed:
                continue
            event = AfterCall(call.id, name, json.loads(shown), present, is_error, self._subagent)
            with self._runner.guard(hook):
                change = await hook.ask(event, ResultChange) or _NO_CHANGE
                if change.output is not None:
                    present = change.output
                    is_replaced = True
                if change.context:
                    notes.append(_format_note(hook.toolkit, change.context))
        return ResultChange(present if is_replaced else None, "".join(notes))


def _replace_arguments(tool: Tool, arguments: Mapping[str, Any], toolkit: str) -> dict[str, Any]:
    """Check the arguments that a toolkit wants, like those of a model."""
    problem = ""
    if tool.options.remote:
        problem = "the client runs this tool with the arguments of the model"
    try:
        text = to_json(arguments).decode()
        if find_mask(text):
            problem = "they hold a masked secret"
        checked = read_arguments(tool, text)
    except (ToolError, PydanticSerializationError, ValueError) as error:
        problem = str(error)
    if problem:
        raise ToolError(
            f"{tool.name} did not run: the toolkit {toolkit!r} wanted other arguments, which can't be used: {problem}"
        )
    return checked


def _format_note(toolkit: str, text: str) -> str:
    return f"\n[{toolkit}] {mask_text(text)[:_MAX_CONTEXT_CHARS]}"
