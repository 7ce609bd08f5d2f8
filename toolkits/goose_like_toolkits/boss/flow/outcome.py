"""The outcome of a boss: result, summary and status, in every case."""

from typing import Literal

from goose_like.core.events import TurnFinished
from goose_like.core.history import History
from goose_like.core.message import FrozenModel, Message, Utf8Text
from goose_like_toolkits.boss.memory.log import list_entries

Status = Literal["finished", "max_round", "budget", "interrupted", "failed"]

_STATUSES: dict[str, Status] = {"step_limit": "max_round", "budget": "budget", "cancelled": "interrupted"}
_SHOWN_ACTIONS = 10


class Outcome(FrozenModel):
    """The end of a boss's work. `result` is for the caller, `summary` for the caller's log."""

    result: Utf8Text
    summary: Utf8Text
    status: Status

    @property
    def status_text(self) -> str:
        """The status in words."""
        return self.status.replace("_", " ")


def build_outcome(history: History) -> Outcome:
    """Return the outcome of the newest turn. Without `finish`, list the newest actions."""
    last = history.messages[-1] if history.messages else Message.user("")
    final = next((result for result in last.tool_results if result.is_final), None)
    if final is not None:
        return Outcome(result=final.output, summary=final.replacement or final.output, status="finished")
    end = history.last_turn or TurnFinished(reason="cancelled")
    status = _STATUSES.get(end.reason, "failed")
    reason = "it named no action" if end.reason == "stop" else describe_end(history)
    actions = [entry.line for entry in list_entries(history)]
    words = last.text.strip() if last.role == "assistant" else ""
    heading = f"not finished ({status.replace('_', ' ')}{f': {reason}' if reason else ''})"
    lines = [
        heading,
        *([f"said last: {words}"] if words else []),
        f"the newest of {len(actions)} actions:" if actions else "no action was taken",
        *actions[-_SHOWN_ACTIONS:],
    ]
    return Outcome(result="\n".join(lines), summary=f"{heading} after {len(actions)} actions", status=status)


def describe_end(history: History) -> str:
    """Return the reason for the end of the newest turn, or an empty string."""
    end = history.last_turn
    if end is None or end.reason != "step_limit":
        return end.detail if end else ""
    return f"round {count_rounds(history)} was the last"


def count_rounds(history: History, end: int | None = None) -> int:
    """Count the rounds of all turns, up to the message `end`."""
    return sum(message.role == "assistant" for message in history.messages[:end])
