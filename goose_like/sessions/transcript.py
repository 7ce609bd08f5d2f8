"""Transcripts: the events of a session as entries for people, independent of the output format."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, assert_never

from goose_like.config.secrets import register_keys
from goose_like.core.events import (
    Answered,
    ArtifactShown,
    Asked,
    Compacted,
    DurableEvent,
    Interjected,
    Logged,
    MessageCompleted,
    ModeRestricted,
    PlanUpdated,
    PromptsSuggested,
    Reminded,
    Rewound,
    SavedEvent,
    SessionStarted,
    StateSaved,
    ToolFinished,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
)
from goose_like.core.history import INTERRUPTED, History
from goose_like.core.masking import mask_value
from goose_like.core.message import Image, Message, Thinking, ToolCall, ToolResult, Usage
from goose_like.providers.prices import compute_cost_usd

from .artifact_text import render_artifact
from .index import SessionInfo
from .jsonl import read_lines

_PLAN_MARKS = {"planned": "☐", "in-progress": "▶", "complete": "☑", "failed": "☒"}

_DIFF = re.compile(r"--- [^\n]*\n\+\+\+ (?:b/)?([^\n]*)")
_WRITE_TOOLS = ("write_file", "patch_file")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a transcript. The kind decides the meaning of `title` and `text`.

    - person: "turn N" or "meanwhile"; the user's text
    - model: empty; Markdown of an answer or an artifact
    - thinking, folded: a heading; the text
    - call: the tool and its subject; the arguments. `call` and `result` are set.
    - diff: the file; a unified diff
    - plan, note, end: empty; the text
    """

    kind: Literal["person", "model", "thinking", "folded", "call", "diff", "plan", "note", "end"]
    title: str
    text: str
    result: ToolResult | None = None
    images: tuple[Image, ...] = ()
    call: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session that was read from its file. Unreadable lines are listed in `damage`."""

    info: SessionInfo
    history: History
    events: Sequence[DurableEvent]
    damage: Sequence[str]

    @classmethod
    def read(cls, info: SessionInfo) -> "Transcript":
        """Read a whole session, which may be open in a process. Secrets that its file still holds are masked."""
        register_keys()
        damage: list[str] = []
        history = History()
        saved_events = (mask_value(event) for _, event in read_lines(info.file.read_bytes(), info.file, damage))
        return cls(info, history, list(history.restore(saved_events)), damage)

    @property
    def usage(self) -> dict[str, Usage]:
        """The tokens by model, without models that used none."""
        return {model: usage for model, usage in self.history.usage.items() if usage.total_tokens}

    def list_facts(self) -> list[str]:
        """List the folder, the last use, and the tokens and cost of each model."""
        facts = [f"folder: {self.info.cwd}", f"last used: {format_time(self.info.changed_at)}"]
        for model, spent in self.usage.items():
            cost = compute_cost_usd({model: spent})
            price = "cost unknown" if cost is None else f"${cost:.4f}"
            facts.append(f"{model}: {spent.input_tokens:,} tokens in, {spent.output_tokens:,} out, {price}")
        return facts

    def iterate_entries(self) -> Iterator[Entry]:
        """Yield all entries in order. A tool call stands with its result where the model made the call."""
        results = {event.result.call_id: event.result for event in self.events if isinstance(event, ToolFinished)}
        turn = 0
        for event in self.events:
            turn += isinstance(event, TurnStarted)
            yield from _describe_event(event, turn, results)


def list_changed_files(events: Sequence[SavedEvent]) -> list[str]:
    """List the files that tools wrote, each once, as the model named them. Changes by commands are unknown."""
    done = {event.result.call_id for event in events if isinstance(event, ToolFinished) and not event.result.is_error}
    calls = (call for event in events if isinstance(event, MessageCompleted) for call in event.message.tool_calls)
    paths = (call.parse_arguments().get("path") for call in calls if call.name in _WRITE_TOOLS and call.id in done)
    return list(dict.fromkeys(path for path in paths if isinstance(path, str)))


def _describe_event(event: DurableEvent, turn: int, results: dict[str, ToolResult]) -> Iterator[Entry]:
    match event:
        case TurnStarted(message=message):
            yield Entry("person", f"turn {turn}", message.first_text, images=message.images)
        case Interjected(message=message):
            yield Entry("person", "meanwhile", message.first_text, images=message.images)
        case MessageCompleted(message=message, is_cut=is_cut):
            yield from _describe_message(message, results)
            if is_cut:
                yield Entry("end", "", "cut off")
        case Logged(text=text):
            diff = _DIFF.match(text)
            yield Entry("diff", diff[1], text) if diff else Entry("note", "", text)
        case ArtifactShown(artifact=artifact):
            yield Entry("model", "", render_artifact(artifact))
        case PromptsSuggested(prompts=prompts):
            yield Entry("note", "", f"to ask next: {' · '.join(prompts)}")
        case PlanUpdated(tasks=tasks):
            yield Entry("plan", "", "\n".join(f"{_PLAN_MARKS[task.status]} {task.description}" for task in tasks))
        case Asked(question=question):
            yield Entry("note", "", f"asked: {question.text}")
            if question.detail:
                yield Entry("diff", question.subject, question.detail)
        case Answered(question=question, answer=answer):
            choice = "" if question.kind == "text" else answer.choice.replace("_", " ")
            text = ": ".join(filter(None, (choice, answer.text))) or "nothing"
            yield Entry("note", "", f"answered by {answer.by}: {text}")
        case Reminded(text=text):
            yield Entry("folded", "reminder for the model", text)
        case Compacted(summary=summary, is_routine=False) if summary:
            yield Entry("folded", "summary in place of all earlier messages", summary)
        case Rewound(message_count=count):
            yield Entry("end", "", f"gone back to the first {count} messages")
        case SessionStarted():
            models = ", ".join(dict.fromkeys(event.models.values()))
            if note := " · ".join(filter(None, (event.profile and f"profile {event.profile}", models))):
                yield Entry("note", "", note)  # an imported session has neither
        case TurnFinished(reason=reason, detail=detail):
            if reason != "stop" or detail:
                yield Entry("end", "", f"{reason.replace('_', ' ')}{': ' * bool(detail)}{detail}")
        case ToolFinished() | UsageRecorded() | StateSaved() | Compacted() | ModeRestricted():
            pass  # results are shown with their calls
        case _:
            assert_never(event)


def _describe_message(message: Message, results: dict[str, ToolResult]) -> Iterator[Entry]:
    for part in message.parts:
        if isinstance(part, Thinking) and part.text:
            yield Entry("thinking", "thinking", part.text)
    if message.text.strip():
        yield Entry("model", "", message.text)
    for call in message.tool_calls:
        result = results.get(call.id) or ToolResult(call_id=call.id, output=INTERRUPTED, is_error=True)
        title, text = _format_call(call)
        yield Entry("call", title, text, result, result.images, call)


def _format_call(call: ToolCall) -> tuple[str, str]:
    """Format the title of a call and its arguments: strings as they are, other values as JSON."""
    arguments = call.parse_arguments()
    keys = ("command", "code", "path", "url", "task")
    subject = next((value for key in keys if isinstance(value := arguments.get(key), str)), "")
    title = f"{call.name} {subject.partition(chr(10))[0][:100]}".strip()
    if list(arguments) in (["command"], ["code"], [""]):
        return title, subject or call.arguments
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        for key, value in arguments.items()
    }
    return title, "\n".join(f"{key}:{chr(10) if chr(10) in text else ' '}{text}" for key, text in texts.items())


def format_time(time: datetime) -> str:
    """Format a time to the minute, in local time."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
