"""The events of a session as updates for an editor: one `match`."""

from collections.abc import Callable, Mapping
from typing import assert_never

from goose_like.core import events
from goose_like.core.event_text import format_log
from goose_like.core.history import History
from goose_like.core.message import Message, ToolCall, Usage

from .content import Json, make_content, make_diffs, make_text

_MAX_OUTPUT_CHARS = 20_000
"""The end of a call's output that an editor gets."""

_PLAN_STATUS = {"planned": "pending", "in-progress": "in_progress", "complete": "completed", "failed": "completed"}


class _Call:
    """What an editor shows of a running tool call."""

    def __init__(self) -> None:
        self.diffs: list[Json] = []
        self.notes: list[Json] = []
        self.output = ""

    def list_content(self) -> list[Json]:
        """List the parts of the content: diffs, what was shown, and the end of the output."""
        parts = [*self.diffs, *self.notes]
        if self.output.strip():
            parts.append(make_content(self.output[-_MAX_OUTPUT_CHARS:]))
        return parts


class UpdateMaker:
    """Turns events into updates. `capabilities` are those of the editor for sessions.

    In a replay the events are those of an earlier process: messages come whole, and `describe` describes the calls in
    them. While `is_command` is true, a slash command runs, and the log is its answer.
    """

    def __init__(self, capabilities: Json, describe: Callable[[ToolCall], events.ToolStarted] | None = None) -> None:
        self._capabilities = capabilities
        self._describe = describe
        self._displays: Mapping[str, events.CallDisplay] = {}
        self._hidden_calls: set[str] = set()
        self._calls: dict[str, _Call] = {}
        self._has_text = False
        self._compactions = 0
        self.is_command = False

    def make_updates(self, event: events.Event) -> list[Json]:
        """Return the updates for an event."""
        match event:
            case events.TurnStarted(message=message) | events.Interjected(message=message):
                self.is_command = False
                return self._make_user_message(message) if self._describe else []
            case events.TextDelta(text=text):
                self._has_text = True
                return [_make_chunk("agent_message_chunk", text)]
            case events.ThinkingDelta(text=text):
                return [_make_chunk("agent_thought_chunk", text)]
            case events.MessageCompleted(message=message):
                return self._complete_message(message)
            case events.Retrying(text=text):
                self._has_text = False
                return self._make_notice(text, "warning")
            case events.ToolStarted():
                return self._start_call(event)
            case events.ToolProgress(call_id=call_id, text=text, skipped_line_count=count):
                return self._add_output(call_id, text, count)
            case events.FileChanged(call_id=call_id, path=path, diff=diff):
                return self._add_diffs(call_id, path, diff)
            case events.ArtifactShown(call_id=call_id):
                return self._add_note(call_id, format_log(event) or event.artifact.name)
            case events.SubagentEvent(call_id=call_id, event=inner):
                return self._add_subagent(call_id, inner)
            case events.ToolFinished():
                return self._finish_call(event)
            case events.PlanUpdated(tasks=tasks):
                return [{"sessionUpdate": "plan", "entries": [_make_entry(task) for task in tasks]}]
            case events.Logged(text=text):
                return self._make_log(text)
            case events.Compacted(is_routine=is_routine):
                return [] if is_routine else self._make_compaction()
            case events.Rewound():
                return self._make_notice(format_log(event) or "", "info")
            case events.PromptsSuggested():
                return [_make_chunk("agent_message_chunk", f"\n\n{format_log(event)}")]
            case events.TurnFinished():
                return self._finish_turn(event)
            case events.SessionStarted(displays=displays):
                self._displays = displays
                return []
            case events.ModeRestricted() | events.PromptRecorded() | events.PromptChanged():
                return []
            case events.Asked() | events.Answered() | events.Reminded() | events.UsageRecorded():
                return []
            case events.StateSaved() | events.Refused() | events.CommandFinished():
                return []
            case events.Status() | events.RunFinished():
                return []
            case _:
                assert_never(event)

    # --- messages

    def _make_user_message(self, message: Message) -> list[Json]:
        chunks = [_make_chunk("user_message_chunk", message.first_text)]
        for image in message.images:
            chunks.append(_make_chunk("user_message_chunk", f"\n[{image.kind} {image.source}]"))
        return chunks

    def _complete_message(self, message: Message) -> list[Json]:
        """Send the text of a message that came without deltas, and announce the calls of an earlier process."""
        updates = []
        if message.text and not self._has_text:
            updates.append(_make_chunk("agent_message_chunk", message.text))
        self._has_text = False
        if self._describe:
            for call in message.tool_calls:
                updates += self._start_call(self._describe(call))
        return updates

    def _make_log(self, text: str) -> list[Json]:
        """Send a line of the log: as the answer of a slash command, else as a notice."""
        if self.is_command:
            return [_make_chunk("agent_message_chunk", f"{text}\n")]
        return self._make_notice(text, "info")

    def _make_notice(self, text: str, severity: str) -> list[Json]:
        """Send a notice. An editor without notices shows it between the thoughts."""
        title, _, rest = text.strip().partition("\n")
        if not title:
            return []
        if self._capabilities.get("notices") is None:
            return [_make_chunk("agent_thought_chunk", f"\n{text.strip()}\n")]
        notice: Json = {"sessionUpdate": "notice", "severity": severity, "title": title}
        if rest:
            notice["description"] = rest
        return [notice]

    def _make_compaction(self) -> list[Json]:
        if self._capabilities.get("compaction") is None:
            return self._make_notice("the context was shortened", "info")
        self._compactions += 1
        return [
            {
                "sessionUpdate": "compaction_update",
                "compactionId": f"compaction-{self._compactions}",
                "status": "completed",
            }
        ]

    def _finish_turn(self, event: events.TurnFinished) -> list[Json]:
        """Fail the calls that never ended, and say why the turn ended unless it was simply done."""
        updates = []
        for call_id in list(self._calls):
            updates.append(_make_update(call_id, status="failed"))
        self._calls.clear()
        is_in_error = event.reason == "error" and self._describe is None  # the answer to the prompt has it
        if event.detail and not is_in_error:
            updates.append(_make_chunk("agent_message_chunk", f"\n\n({event.detail})\n"))
        return updates

    # --- tool calls

    def _start_call(self, event: events.ToolStarted) -> list[Json]:
        """Show a call, unless it is shown in another way: the editor draws the plan itself."""
        call = event.call
        display = self._displays.get(call.name, "whole")
        if display == "nothing":
            self._hidden_calls.add(call.id)
            return []
        self._calls[call.id] = _Call()
        update: Json = {
            "sessionUpdate": "tool_call",
            "toolCallId": call.id,
            "title": event.title or call.name,
            "name": call.name,
            "kind": event.kind,
            "status": "in_progress",
        }
        if display == "whole":
            update["rawInput"] = call.parse_arguments()
        if event.paths:
            update["locations"] = [{"path": path} for path in event.paths]
        return [update]

    def _find_call(self, call_id: str) -> _Call:
        return self._calls.setdefault(call_id, _Call())

    def _add_output(self, call_id: str, text: str, skipped_line_count: int) -> list[Json]:
        call = self._find_call(call_id)
        if skipped_line_count:
            text = f"[... {skipped_line_count:,} lines ...]\n{text}"
        call.output = (call.output + text)[-2 * _MAX_OUTPUT_CHARS :]
        return [_make_update(call_id, content=call.list_content())]

    def _add_diffs(self, call_id: str, path: str, diff: str) -> list[Json]:
        call = self._find_call(call_id)
        call.diffs += make_diffs(path, diff)
        return [_make_update(call_id, content=call.list_content(), locations=[{"path": path}])]

    def _add_note(self, call_id: str, text: str) -> list[Json]:
        call = self._find_call(call_id)
        call.notes.append(make_content(text))
        return [_make_update(call_id, content=call.list_content())]

    def _add_subagent(self, call_id: str, event: events.Event) -> list[Json]:
        """Show the calls of a subagent as lines of the call that runs it."""
        if isinstance(event, events.ToolStarted):
            return self._add_output(call_id, f"▸ {event.title or event.call.name}\n", 0)
        return []

    def _finish_call(self, event: events.ToolFinished) -> list[Json]:
        result = event.result
        if result.call_id in self._hidden_calls:
            return []
        call = self._calls.pop(result.call_id, None) or _Call()
        if not (call.diffs or call.output.strip()) or result.is_error:
            call.output = result.output
        status = "failed" if result.is_error else "completed"
        return [_make_update(result.call_id, status=status, content=call.list_content())]


def merge_updates(before: Json, after: Json) -> Json | None:
    """Return one update that stands for two that wait, or None if both are needed."""
    kind = after["sessionUpdate"]
    if before["sessionUpdate"] != kind:
        return None
    if kind in ("agent_message_chunk", "agent_thought_chunk"):
        return _make_chunk(kind, before["content"]["text"] + after["content"]["text"])
    is_same_call = kind == "tool_call_update" and before["toolCallId"] == after["toolCallId"]
    return before | after if is_same_call else None


def make_usage(history: History, window: int, cost_usd: float | None) -> Json:
    """Make the update with the tokens of the context, its window, and the cost of the session."""
    update: Json = {"sessionUpdate": "usage_update", "used": history.context.tokens, "size": window}
    if cost_usd is not None:
        update["cost"] = {"amount": cost_usd, "currency": "USD"}
    return update


def make_token_counts(usage: Usage) -> Json:
    """Make the counts of tokens in the answer to a prompt. As in `Usage`, cached input counts as input, too."""
    return {
        "totalTokens": usage.total_tokens,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedReadTokens": usage.cache_read_tokens,
        "cachedWriteTokens": usage.cache_write_tokens,
    }


def _make_chunk(kind: str, text: str) -> Json:
    return {"sessionUpdate": kind, "content": make_text(text)}


def _make_entry(task: events.Task) -> Json:
    content = task.description
    if task.status == "failed":
        content = f"{task.mark} {content}"
    return {"content": content, "priority": "medium", "status": _PLAN_STATUS[task.status]}


def _make_update(call_id: str, **fields: object) -> Json:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **fields}
