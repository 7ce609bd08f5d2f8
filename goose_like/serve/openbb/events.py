"""A turn's events as the protocol's: one `match`, for the clients of both eras."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Literal

from goose_like.core.events import (
    Answered,
    ArtifactShown,
    Event,
    Logged,
    MessageCompleted,
    Nested,
    PromptsSuggested,
    Retrying,
    Status,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from goose_like.core.message import ToolCall
from goose_like.serve.sse import Frame
from goose_like.sessions.artifact_text import as_markdown

from .artifacts import client_artifact
from .body import words
from .citations import UNTOLD, citations
from .client_tools import ClientCall, arguments_of
from .query import Query, Source

# Between a field's name and its colon: some clients take lines apart once more after they have decoded them.
_FIELD = re.compile(r"(?:(?<=data)|(?<=event)|(?<=\bid)|(?<=retry))(?=:)")

_PARAGRAPH = re.compile(r"\n\s*\n")
_LONG_THOUGHT = 800
_LONG_DETAIL = 200


class Translator:
    """What the client is told of one turn. The dialect `copilot` has words and calls only: all else becomes words
    or is left out.

    Not told: the progress of a call and the words of one nested in it, which would bury the rest.
    """

    def __init__(self, query: Query, sources: Sequence[Source] = ()) -> None:
        self._is_workspace = query.dialect == "workspace"
        self._sources = sources
        self._thought = ""
        self._status_words = ""
        self._names: dict[str, str] = {}
        self._prompts: tuple[str, ...] = ()
        self._gap = ""
        self._has_said = False  # since the last message: what a retry can't take back
        self._is_empty = True

    def opening(self) -> Iterator[Frame]:
        """The first sign of life, where the client knows one."""
        yield from self._status("Reading the conversation")

    def frames(self, events: Sequence[Event]) -> Iterator[Frame]:
        """What is to be sent of these events; words that follow each other go together."""
        for kind, together in groupby(events, type):
            if kind is TextDelta:
                if self._thought:
                    yield from self._think()
                yield from self._say("".join(event.text for event in together if isinstance(event, TextDelta)))
            elif kind is ThinkingDelta:
                yield from self._think("".join(event.text for event in together if isinstance(event, ThinkingDelta)))
            else:
                for event in together:
                    yield from self._told(event)

    def handed_off(self, call: ClientCall, sealed: str) -> Frame:
        """The call, after which the stream ends; what is `sealed` comes back with its result."""
        asked: dict[str, Any] = {"function": call.function, "input_arguments": call.arguments}
        if sealed:
            asked |= {"extra_state": {"goose_like": sealed}} if self._is_workspace else {"goose_like": sealed}
        return "copilotFunctionCall", asked

    def ending(self, finished: TurnFinished) -> Iterator[Frame]:
        """What comes last: an end that nobody wished for in words, else sources and what may be asked next."""
        yield from self._think()
        match finished:
            case TurnFinished(reason="handed_off"):
                return
            case TurnFinished(reason="stop"):
                if self._is_empty:
                    yield from self._say("The model gave no answer.")
                if self._is_workspace and (cited := citations(self._sources)):
                    yield "copilotCitationCollection", {"citations": cited}
                if self._is_workspace and self._prompts:
                    yield "copilotPromptSuggestions", {"suggestions": list(self._prompts)}
                return
            case TurnFinished(reason="cancelled"):
                told = "Stopped before the end"
            case TurnFinished(reason="step_limit" | "budget", detail=detail):
                told = f"Stopped: {detail}"
            case TurnFinished(detail=detail):
                told = f"The answer failed: {detail or 'nobody knows why'}"
        yield from self._status(told, "ERROR")
        yield from self._paragraph(f"{told}.")

    def _told(self, event: Event) -> Iterator[Frame]:
        match event:
            case MessageCompleted():
                yield from self._think()
                self._gap, self._has_said = ("" if self._is_empty else "\n\n"), False
            case Retrying(text=text):
                yield from self._think()
                if self._has_said:
                    yield from self._paragraph("(The answer broke off here and begins again.)")
                    self._gap, self._has_said = "\n\n", False
                yield from self._status(text, "WARNING")
            case Status(text=text):
                letters = "".join(filter(str.isalpha, text))
                if letters != self._status_words:  # else but its figures are new, and each would stay on the screen
                    self._status_words = letters
                    yield from self._status(text)
            case Logged(text=text):
                yield from self._status(text)
            case ToolStarted(call=call):
                yield from self._think()
                self._names[call.id] = call.name
                yield from self._status(f"Using {call.name}", details=_details(call))
            case ToolFinished(result=result):
                if result.is_error:  # its words are the model's: they may hold what was not meant for people
                    yield from self._status(f"{self._names.get(result.call_id, 'A tool')} failed", "WARNING")
            case Answered(question=question, answer=answer):
                if not answer.is_allowed and question.kind != "words":
                    yield from self._status(f"Not allowed here: {question.subject}", "WARNING")
            case Nested(event={"type": "tool_started", "call": {"name": str(name)}}):
                yield from self._status(f"Using {name}")
            case Nested(event={"type": "logged", "text": str(text)}):
                yield from self._status(text)
            case ArtifactShown(artifact=artifact):
                if self._is_workspace:
                    yield "copilotMessageArtifact", client_artifact(event)
                    self._is_empty = False
                else:
                    yield from self._paragraph(as_markdown(artifact))
                    self._gap = "\n\n"
            case PromptsSuggested(prompts=prompts):
                self._prompts = prompts

    def _say(self, text: str) -> Iterator[Frame]:
        if not text:
            return
        text, self._gap = self._gap + text, ""
        self._has_said, self._is_empty = True, False
        for piece in _FIELD.split(text) if ":" in text else (text,):
            yield "copilotMessageChunk", {"delta": piece}

    def _paragraph(self, text: str) -> Iterator[Frame]:
        """Words of ours, apart from the model's."""
        self._gap = "" if self._is_empty else "\n\n"
        return self._say(text)

    def _think(self, more: str | None = None) -> Iterator[Frame]:
        """Tells of thinking what is whole: its paragraphs, and what is long; all of it when there is no more."""
        if not self._is_workspace:
            return
        *whole, rest = _PARAGRAPH.split(self._thought + (more or ""))
        while len(rest) > _LONG_THOUGHT:
            cut = rest.rfind(" ", 1, _LONG_THOUGHT) + 1 or _LONG_THOUGHT
            whole, rest = [*whole, rest[:cut]], rest[cut:]
        if more is None:
            whole, rest = [*whole, rest], ""
        self._thought = rest
        for thought in whole:
            yield from self._status(thought.strip())

    def _status(
        self,
        text: str,
        kind: Literal["INFO", "WARNING", "ERROR"] = "INFO",
        details: dict[str, str] | None = None,
    ) -> Iterator[Frame]:
        if text and self._is_workspace:
            told: dict[str, Any] = {"eventType": kind, "message": text, "group": "reasoning"}
            yield "copilotStatusUpdate", told | ({"details": [details]} if details else {})


def _details(call: ToolCall) -> dict[str, str]:
    """A call's arguments for people, each on its line."""
    given = arguments_of(call)
    told = {key: words(value) for key, value in given.items() if key.lower() not in UNTOLD | {"url"}}
    return {key: value if len(value) <= _LONG_DETAIL else f"{value[:_LONG_DETAIL]}…" for key, value in told.items()}
