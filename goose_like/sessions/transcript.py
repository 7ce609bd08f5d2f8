"""A session as people read it: what was said, done, asked and changed, in its order, whatever it is written in."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from goose_like.core.events import (
    Answered,
    ArtifactShown,
    Asked,
    Compacted,
    Durable,
    Interjected,
    Logged,
    MessageCompleted,
    PlanUpdated,
    ProfileChanged,
    PromptsSuggested,
    Reminded,
    Rewound,
    SessionStarted,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.history import INTERRUPTED, History
from goose_like.core.message import Image, Message, Thinking, ToolCall, ToolResult, Usage

from .artifact_text import as_markdown
from .index import Listed
from .jsonl import read_lines

MARKS = {"planned": "☐", "in-progress": "▶", "complete": "☑", "failed": "☒"}

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DIFF = re.compile(r"--- [^\n]*\n\+\+\+ (?:b/)?([^\n]*)")
_WRITERS = ("write_file", "patch_file")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened. What `title` and `text` are depends on the kind.

    person: "turn N", their words; model: "", Markdown, which artifacts become too; thinking, folded: what it is, the
    text; call: the tool and what it is about, the arguments, with the `result`; diff: the file, a unified diff; plan,
    note, end: "", the text.
    """

    kind: Literal["person", "model", "thinking", "folded", "call", "diff", "plan", "note", "end"]
    title: str
    text: str
    result: ToolResult | None = None
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Transcript:
    """A session, read; `listed.folder` has its outputs."""

    listed: Listed
    history: History
    events: Sequence[Durable]
    damage: Sequence[str]

    @classmethod
    def read(cls, listed: Listed) -> "Transcript":
        """The whole session, which may be open; what can't be read is in `damage`."""
        damage: list[str] = []
        events = [event for _, event in read_lines(listed.file.read_bytes(), listed.file, damage)]
        return cls(listed, History.replay(events), events, damage)

    @property
    def usage(self) -> dict[str, Usage]:
        """The tokens by model, of those that were counted."""
        return {model: usage for model, usage in self.history.usage.items() if usage.total_tokens}

    @property
    def changed_files(self) -> list[str]:
        """The files that were written by tools, each once; what commands did to others is not known."""
        return changed_files(self.events)

    def entries(self) -> Iterator[Entry]:
        """All that happened. A call stands with its result, where the model made it."""
        results = {event.result.call_id: event.result for event in self.events if isinstance(event, ToolFinished)}
        turn = 0
        for event in self.events:
            turn += isinstance(event, TurnStarted)
            match event:
                case TurnStarted(message=message):
                    yield Entry("person", f"turn {turn}", message.first_text, images=message.images)
                case Interjected(message=message):
                    yield Entry("person", "meanwhile", message.first_text, images=message.images)
                case MessageCompleted(message=message, is_cut=is_cut):
                    yield from _said(message, results)
                    if is_cut:
                        yield Entry("end", "", "cut off")
                case _:
                    yield from _beside(event)


def changed_files(events: Sequence[Durable]) -> list[str]:
    """The files that tools wrote, each once, as they were named."""
    results = (event.result for event in events if isinstance(event, ToolFinished))
    done = {result.call_id for result in results if not result.is_error}
    messages = (event.message for event in events if isinstance(event, MessageCompleted))
    calls = (call for message in messages for call in message.tool_calls if call.name in _WRITERS)
    paths = (_arguments(call).get("path") for call in calls if call.id in done)
    return list(dict.fromkeys(path for path in paths if isinstance(path, str)))


def _said(message: Message, results: dict[str, ToolResult]) -> Iterator[Entry]:
    for part in message.parts:
        if isinstance(part, Thinking) and part.text:
            yield Entry("thinking", "thinking", part.text)
    if message.text.strip():
        yield Entry("model", "", message.text)
    for call in message.tool_calls:
        result = results.get(call.id) or ToolResult(call_id=call.id, output=INTERRUPTED, is_error=True)
        title, text = _told(call)
        yield Entry("call", title, text, result, result.images)


def _beside(event: Durable) -> Iterator[Entry]:
    match event:
        case Logged(text=text):
            changed = _DIFF.match(text)
            yield Entry("diff", changed[1], text) if changed else Entry("note", "", text)
        case ArtifactShown(artifact=artifact):
            yield Entry("model", "", as_markdown(artifact))
        case PromptsSuggested(prompts=prompts):
            yield Entry("note", "", f"to ask next: {' · '.join(prompts)}")
        case PlanUpdated(tasks=tasks):
            yield Entry("plan", "", "\n".join(f"{MARKS[task.status]} {task.description}" for task in tasks))
        case Asked(question=question):
            yield Entry("note", "", f"asked: {question.text}")
            if question.detail:
                yield Entry("diff", question.subject, question.detail)
        case Answered(question=question, answer=answer):
            said = answer.words or "nothing" if question.kind == "words" else answer.choice.replace("_", " ")
            yield Entry("note", "", f"answered by {answer.by}: {said}")
        case Reminded(text=text):
            yield Entry("folded", "what the model was reminded of", text)
        case Compacted(summary=summary, is_routine=False) if summary:
            yield Entry("folded", "what stands in the place of all before", summary)
        case Rewound(to=to):
            yield Entry("end", "", f"gone back to the first {to} messages")
        case SessionStarted() | ProfileChanged():
            models = ", ".join(dict.fromkeys(event.models.values()))
            yield Entry("note", "", f"profile {event.profile} · {models}" if models else f"profile {event.profile}")
        case TurnFinished(reason=reason, detail=detail) if reason != "stop" or detail:
            yield Entry("end", "", f"{reason.replace('_', ' ')}{': ' * bool(detail)}{detail}")
        case _:
            return


def _arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments by name; those that are no JSON object under no name."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = call.arguments
    return arguments if isinstance(arguments, dict) else {"": arguments}


def _told(call: ToolCall) -> tuple[str, str]:
    """A call's title and its arguments: text as it is, the others as JSON."""
    arguments = _arguments(call)
    keys = ("command", "code", "path", "url", "task")
    about = next((value for key in keys if isinstance(value := arguments.get(key), str)), "")
    title = f"{call.name} {about.partition(chr(10))[0][:100]}".strip()
    if list(arguments) in (["command"], ["code"], [""]):
        return title, about or call.arguments
    written = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        for key, value in arguments.items()
    }
    return title, "\n".join(f"{key}:{chr(10) if chr(10) in text else ' '}{text}" for key, text in written.items())


def shown(text: str) -> str:
    """The text with control characters written out: no reader's terminal or browser obeys them."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))


def when(time: datetime) -> str:
    """To the minute, in the local time."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
