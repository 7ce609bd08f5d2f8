"""Transcripts: the events of a session as entries for people, independent of the output format."""

import json
import os.path
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, assert_never

from goose_like.config.secrets import register_keys
from goose_like.core.dataclass import dataclass
from goose_like.core.events import (
    Answer,
    Answered,
    ArtifactShown,
    Asked,
    CommandFinished,
    Compacted,
    DurableEvent,
    FileChanged,
    Interjected,
    Logged,
    MessageCompleted,
    ModeRestricted,
    PlanUpdated,
    PromptChanged,
    PromptRecorded,
    PromptsSuggested,
    Question,
    Refused,
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
from .jsonl import read_lines, read_time

_SUBJECTS = ("command", "code", "path", "url", "task")
"""The arguments that tell most about a call, the best first."""

_MAX_SUBJECT_CHARACTERS = 100


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
    """A session that was read from its file. Unreadable lines are listed in `damage`.

    `times` has the time of each event, in ISO format. An event that repairs the session has that of the next line.
    """

    info: SessionInfo
    history: History
    events: Sequence[DurableEvent]
    damage: Sequence[str]
    times: Sequence[str]

    @classmethod
    def read(cls, info: SessionInfo) -> "Transcript":
        """Read a whole session, which may be open in a process. Secrets that its file still holds are masked."""
        register_keys()
        damage: list[str] = []
        history = History()
        time = ""
        times = []
        events = []

        def read_events() -> Iterator[SavedEvent]:
            nonlocal time
            for line, event in read_lines(info.file.read_bytes(), info.file, damage):
                time = read_time(line)
                yield mask_value(event)

        for event in history.restore(read_events()):
            events.append(event)
            times.append(time)
        return cls(info, history, events, damage, times)

    @property
    def usage(self) -> dict[str, Usage]:
        """The tokens by model, without models that used none."""
        by_model = self.history.usage.by_model
        return {model: usage for model, usage in by_model.items() if usage.total_tokens}

    def list_facts(self) -> list[str]:
        """List the folder, the last use, and the tokens and cost of each model."""
        last_use = format_time(self.info.changed_at)
        facts = [f"folder: {self.info.cwd}", f"last used: {last_use}"]
        for model, spent in self.usage.items():
            tokens = f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out"
            cost = compute_cost_usd({model: spent})
            price = "cost unknown" if cost is None else f"${cost:.4f}"
            facts.append(f"{model}: {tokens}, {price}")
        return facts

    def iterate_entries(self) -> Iterator[Entry]:
        """Yield all entries in order. A tool call stands with its result where the model made the call."""
        results = {}
        for event in self.events:
            if isinstance(event, ToolFinished):
                results[event.result.call_id] = event.result
        turn = 0
        folder = ""
        for event in self.events:
            if isinstance(event, TurnStarted):
                turn += 1
            elif isinstance(event, SessionStarted):
                folder = event.cwd
            yield from _describe_event(event, turn, folder, results)


def list_changed_files(events: Sequence[SavedEvent]) -> list[str]:
    """List the files that tools wrote, each once, as paths from the session's folder if they are in it.

    Changes by commands are unknown, and so are those of sessions before format 3.
    """
    folder = ""
    names: list[str] = []
    for event in events:
        if isinstance(event, SessionStarted):
            folder = event.cwd
        elif isinstance(event, FileChanged):
            names.append(_name_file(event.path, folder))
    return list(dict.fromkeys(names))


def _name_file(path: str, folder: str) -> str:
    """Return the path from a folder to a file in it, or the absolute path."""
    if not folder:
        return path
    return path.removeprefix(os.path.join(folder, ""))


def _describe_event(
    event: DurableEvent,
    turn: int,
    folder: str,
    results: dict[str, ToolResult],
) -> Iterator[Entry]:
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
            yield Entry("note", "", text)
        case FileChanged(path=path, diff=diff):
            if diff:
                yield Entry("diff", _name_file(path, folder), diff)
        case ArtifactShown(artifact=artifact):
            yield Entry("model", "", render_artifact(artifact))
        case PromptsSuggested(prompts=prompts):
            yield Entry("note", "", f"to ask next: {' · '.join(prompts)}")
        case PlanUpdated(tasks=tasks):
            lines = [f"{task.mark} {task.description}" for task in tasks]
            yield Entry("plan", "", "\n".join(lines))
        case Asked(question=question):
            yield Entry("note", "", f"asked: {question.text}")
            if question.detail:
                yield Entry("diff", question.subject, question.detail)
        case Answered(question=question, answer=answer):
            yield Entry("note", "", _describe_answer(question, answer))
        case Reminded(text=text):
            yield Entry("folded", "reminder for the model", text)
        case Compacted(summary=summary, is_routine=False) if summary:
            yield Entry("folded", "summary in place of all earlier messages", summary)
        case Rewound(message_count=count):
            yield Entry("end", "", f"gone back to the first {count} messages")
        case SessionStarted():
            facts = _list_start_facts(event)
            if facts:
                yield Entry("note", "", " · ".join(facts))
        case TurnFinished(reason=reason, detail=detail):
            if reason != "stop" or detail:
                words = reason.replace("_", " ")
                yield Entry("end", "", ": ".join(filter(None, [words, detail])))
        case ToolFinished() | UsageRecorded() | StateSaved() | Compacted() | ModeRestricted():
            pass  # results are shown with their calls
        case PromptRecorded() | PromptChanged() | Refused() | CommandFinished():
            pass
        case _:
            assert_never(event)


def _describe_answer(question: Question, answer: Answer) -> str:
    parts = []
    if question.kind != "text":
        parts.append(answer.choice.replace("_", " "))
    if answer.text:
        parts.append(answer.text)
    content = ": ".join(parts) or "nothing"
    return f"answered by {answer.by}: {content}"


def _list_start_facts(event: SessionStarted) -> list[str]:
    """List the profile and the models of a process. An imported session has neither."""
    facts = []
    if event.profile:
        facts.append(f"profile {event.profile}")
    models = ", ".join(dict.fromkeys(event.models.values()))
    if models:
        facts.append(models)
    return facts


def _describe_message(message: Message, results: dict[str, ToolResult]) -> Iterator[Entry]:
    for part in message.parts:
        if isinstance(part, Thinking) and part.text:
            yield Entry("thinking", "thinking", part.text)
    if message.text.strip():
        yield Entry("model", "", message.text)
    for call in message.tool_calls:
        result = results.get(call.id)
        if result is None:
            result = ToolResult(call_id=call.id, output=INTERRUPTED, is_error=True)
        title, text = _format_call(call)
        yield Entry("call", title, text, result, result.images, call)


def _format_call(call: ToolCall) -> tuple[str, str]:
    """Format the title of a call and its arguments: strings as they are, other values as JSON."""
    arguments = call.parse_arguments()
    subject = _find_subject(arguments)
    first_line = subject.partition("\n")[0]
    title = f"{call.name} {first_line[:_MAX_SUBJECT_CHARACTERS]}".strip()
    if list(arguments) in (["command"], ["code"], [""]):
        return title, subject or call.arguments
    texts = []
    for name, value in arguments.items():
        text = value
        if not isinstance(value, str):
            text = json.dumps(value, ensure_ascii=False, indent=2)
        separator = "\n" if "\n" in text else " "
        texts.append(f"{name}:{separator}{text}")
    return title, "\n".join(texts)


def _find_subject(arguments: dict[str, Any]) -> str:
    """Find the argument that tells most about a call; empty if there is none."""
    for name in _SUBJECTS:
        value = arguments.get(name)
        if isinstance(value, str):
            return value
    return ""


def format_time(time: datetime) -> str:
    """Format a time to the minute, in local time."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
