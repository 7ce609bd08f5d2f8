"""A turn's events in the form of the protocol: text, statuses, artifacts, citations and function calls."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, assert_never
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from goose_like.core.events import (
    Answered,
    ArtifactShown,
    Asked,
    Chart,
    Compacted,
    Event,
    Interjected,
    Logged,
    MessageCompleted,
    PlanUpdated,
    PromptsSuggested,
    Reminded,
    Retrying,
    Rewound,
    RunFinished,
    SessionStarted,
    StateSaved,
    Status,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageRecorded,
)
from goose_like.core.message import ToolCall
from goose_like.serve.sse import Frame
from goose_like.sessions.artifact_text import list_columns, render_artifact, simplify_cell

from .client_tools import ClientCall
from .query import DataSource, Query, to_text
from .request import STATE_KEY

FRAME_PREFIX = b"event: copilot"
"""The bytes that every event of the protocol starts with."""

MASKED_WORDS = ("copilotFunctionCall",)
"""Words that must not occur in data: a client takes a stream that contains one anywhere for a function call."""

HIDDEN_DETAILS = frozenset(
    {
        "lastupdated",
        "source",
        "id",
        "uuid",
        "storedfileuuid",
        "datakey",
        "originalfilename",
        "extension",
        "category",
        "subcategory",
        "transcript_url",
    }
)
"""Details, in lower case, that openbb-ai leaves out of citations; it leaves `url` out of statuses, too."""

# The place between a field name and its colon: some clients parse fields again in text that they have decoded.
_FIELD = re.compile(r"(?:(?<=data)|(?<=event)|(?<=\bid)|(?<=retry))(?=:)")

_PARAGRAPH = re.compile(r"\n\s*\n")
_MAX_THOUGHT_CHARACTERS = 800
_MAX_DETAIL_CHARACTERS = 200


# --- events


class EventTranslator:
    """A translator of one turn's events to frames.

    The dialect `copilot` has only text and function calls; anything else becomes text or is left out.
    """

    def __init__(self, query: Query, sources: Sequence[DataSource] = ()) -> None:
        self._is_workspace = query.dialect == "workspace"
        self._sources = sources
        self._thought = ""
        self._last_status_letters = ""
        self._tool_names: dict[str, str] = {}
        self._prompts: tuple[str, ...] = ()
        self._gap = ""
        self._has_text = False  # text since the last message, which a retry cannot take back
        self._is_empty = True

    def opening_frames(self) -> Iterator[Frame]:
        """Return the first frames, which show that the server works, in the dialect that has statuses."""
        yield from self._send_status("Reading the conversation")

    def translate(self, events: Sequence[Event]) -> Iterator[Frame]:
        """Translate events; text that arrived at once becomes one frame."""
        for event in _join_deltas(events):
            yield from self._translate(event)

    def function_call_frame(self, call: ClientCall, signed_state: str) -> Frame:
        """Return the frame of a call for the client, which must be the last; the state comes back with its result."""
        data: dict[str, Any] = {"function": call.function, "input_arguments": call.arguments}
        if signed_state:
            state = {STATE_KEY: signed_state}
            data |= {"extra_state": state} if self._is_workspace else state
        return "copilotFunctionCall", data

    def closing_frames(self, finished: TurnFinished) -> Iterator[Frame]:
        """Return the last frames: sources and suggested prompts, or the reason why the turn ended early."""
        yield from self._flush_thinking()
        match finished.reason:
            case "handed_off":
                return
            case "stop":
                if self._is_empty:
                    yield from self._send_text("The model gave no answer.")
                if self._is_workspace and (citations := build_citations(self._sources)):
                    yield "copilotCitationCollection", {"citations": citations}
                if self._is_workspace and self._prompts:
                    yield "copilotPromptSuggestions", {"suggestions": list(self._prompts)}
                return
            case "cancelled":
                text = "Stopped before the end"
            case "step_limit" | "budget":
                text = f"Stopped: {finished.detail}"
            case "error":
                text = f"The answer failed: {finished.detail or 'the reason is unknown'}"
            case _:
                assert_never(finished.reason)
        yield from self._send_status(text, "ERROR")
        yield from self._send_paragraph(f"{text}.")

    def _translate(self, event: Event) -> Iterator[Frame]:
        match event:
            case TextDelta(text=text):
                if self._thought:
                    yield from self._flush_thinking()
                yield from self._send_text(text)
            case ThinkingDelta(text=text):
                yield from self._add_thinking(text)
            case MessageCompleted():
                yield from self._flush_thinking()
                self._gap, self._has_text = ("" if self._is_empty else "\n\n"), False
            case Retrying(text=text):
                yield from self._restart_answer(text)
            case Status(text=text):
                yield from self._send_new_status(text)
            case Logged(text=text):
                yield from self._send_status(text)
            case ToolStarted(call=call):
                yield from self._flush_thinking()
                self._tool_names[call.id] = call.name
                yield from self._send_status(f"Using {call.name}", details=_format_details(call))
            case ToolFinished(result=result):
                if result.is_error:  # without the output, which is for the model and may contain secrets
                    yield from self._send_status(f"{self._tool_names.get(result.call_id, 'A tool')} failed", "WARNING")
            case Answered(question=question, answer=answer):
                if not answer.is_allowed and question.kind != "text":
                    yield from self._send_status(f"Not allowed here: {question.subject}", "WARNING")
            case SubagentEvent(event=ToolStarted(call=call)):
                yield from self._send_status(f"Using {call.name}")
            case SubagentEvent(event=Logged(text=text)):
                yield from self._send_status(text)
            case ArtifactShown():
                yield from self._show_artifact(event)
            case PromptsSuggested(prompts=prompts):
                self._prompts = prompts
            case (
                TurnFinished()  # see closing_frames
                | ToolProgress()  # would hide everything else
                | SubagentEvent()
                | SessionStarted()
                | TurnStarted()
                | PlanUpdated()
                | Asked()
                | Reminded()
                | Interjected()
                | UsageRecorded()
                | Compacted()
                | Rewound()
                | StateSaved()
                | RunFinished()
            ):
                pass
            case _:
                assert_never(event)

    def _restart_answer(self, text: str) -> Iterator[Frame]:
        yield from self._flush_thinking()
        if self._has_text:
            yield from self._send_paragraph("(The answer broke off here and begins again.)")
            self._gap, self._has_text = "\n\n", False
        yield from self._send_status(text, "WARNING")

    def _send_new_status(self, text: str) -> Iterator[Frame]:
        """Send a status unless only its numbers changed: clients keep every status on the screen."""
        letters = "".join(filter(str.isalpha, text))
        if letters != self._last_status_letters:
            self._last_status_letters = letters
            yield from self._send_status(text)

    def _show_artifact(self, event: ArtifactShown) -> Iterator[Frame]:
        if self._is_workspace:
            yield "copilotMessageArtifact", encode_artifact(event)
            self._is_empty = False
        else:
            yield from self._send_paragraph(render_artifact(event.artifact))
            self._gap = "\n\n"

    def _send_text(self, text: str) -> Iterator[Frame]:
        if not text:
            return
        text, self._gap = self._gap + text, ""
        self._has_text, self._is_empty = True, False
        for piece in _FIELD.split(text) if ":" in text else (text,):
            yield "copilotMessageChunk", {"delta": piece}

    def _send_paragraph(self, text: str) -> Iterator[Frame]:
        """Send text of the server as a paragraph apart from the model's text."""
        self._gap = "" if self._is_empty else "\n\n"
        return self._send_text(text)

    def _add_thinking(self, text: str) -> Iterator[Frame]:
        """Send complete paragraphs of thinking as statuses, and long ones in pieces."""
        if not self._is_workspace:
            return
        *complete, rest = _PARAGRAPH.split(self._thought + text)
        while len(rest) > _MAX_THOUGHT_CHARACTERS:
            cut = rest.rfind(" ", 1, _MAX_THOUGHT_CHARACTERS) + 1 or _MAX_THOUGHT_CHARACTERS
            complete, rest = [*complete, rest[:cut]], rest[cut:]
        self._thought = rest
        for thought in complete:
            yield from self._send_status(thought.strip())

    def _flush_thinking(self) -> Iterator[Frame]:
        thought, self._thought = self._thought, ""
        yield from self._send_status(thought.strip())

    def _send_status(
        self,
        text: str,
        kind: Literal["INFO", "WARNING", "ERROR"] = "INFO",
        details: dict[str, str] | None = None,
    ) -> Iterator[Frame]:
        if text and self._is_workspace:
            data: dict[str, Any] = {"eventType": kind, "message": text, "group": "reasoning"}
            yield "copilotStatusUpdate", data | ({"details": [details]} if details else {})


def _join_deltas(events: Sequence[Event]) -> Iterator[Event]:
    """Join neighbouring deltas of the same kind."""
    for kind, group in groupby(events, type):
        if kind is TextDelta or kind is ThinkingDelta:
            yield kind(text="".join(event.text for event in group if isinstance(event, TextDelta | ThinkingDelta)))
        else:
            yield from group


def _format_details(call: ToolCall) -> dict[str, str]:
    hidden = HIDDEN_DETAILS | {"", "url"}
    arguments = call.parse_arguments().items()
    texts = {key: to_text(value) for key, value in arguments if key.lower() not in hidden}
    limit = _MAX_DETAIL_CHARACTERS
    return {key: text if len(text) <= limit else f"{text[:limit]}…" for key, text in texts.items()}


# --- artifacts


def encode_artifact(event: ArtifactShown) -> dict[str, Any]:
    """Encode an artifact as the Workspace expects it; the same artifact of the same call has the same uuid."""
    artifact = event.artifact
    uuid = uuid5(NAMESPACE_URL, f"artifact:{event.call_id}:{json.dumps(artifact.model_dump())}")
    data: dict[str, Any] = {
        "type": artifact.kind,
        "name": artifact.name,
        "description": artifact.description,
        "uuid": str(uuid),
        "content": artifact.text,
    }
    if artifact.kind == "chart" and artifact.chart:
        points = [_encode_point(row) for row in artifact.rows]
        return data | {"content": points, "chart_params": _encode_chart(artifact.chart)}
    if artifact.kind in ("table", "chart"):  # a chart without parameters is shown as a table
        keys = list_columns(artifact.rows)
        rows = [{key: simplify_cell(row.get(key)) for key in keys} for row in artifact.rows]
        return data | {"type": "table", "content": rows}
    return data


def _encode_chart(chart: Chart) -> dict[str, Any]:
    if chart.kind in ("pie", "donut"):
        return {"chartType": chart.kind, "angleKey": chart.y[0], "calloutLabelKey": chart.x}
    return {"chartType": chart.kind, "xKey": chart.x, "yKey": list(chart.y)}


def _encode_point(row: dict[str, Any]) -> dict[str, Any]:
    """Encode a row of a chart without its empty cells, which the chart shows as gaps."""
    return {key: cell for key, value in row.items() if (cell := simplify_cell(value)) != ""}


# --- citations


class _ClientModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SourceInfo(_ClientModel):
    """The source that a citation names."""

    type: Literal["widget", "direct retrieval", "web", "artifact"]
    uuid: UUID | None = None
    origin: str | None = None
    widget_id: str | None = None
    name: str | None = None
    description: str | None = None
    metadata: dict[str, Any] = {}
    citable: bool = True


class Citation(_ClientModel):
    """One citation and the details that the client shows with it."""

    id: UUID | None = None
    source_info: SourceInfo
    details: list[dict[str, Any]] | None = Field(default=None)
    quote_bounding_boxes: list[list[dict[str, str | float]]] | None = None

    @field_validator("details")
    @classmethod
    def _hide_details(cls, details: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        shown = [
            {key: value for key, value in entry.items() if key.lower() not in HIDDEN_DETAILS} for entry in details or []
        ]
        return [entry for entry in shown if entry] or None


def build_citations(sources: Iterable[DataSource]) -> list[dict[str, Any]]:
    """Build one citation for each citable source, and add the client's own; equal citations have equal ids."""
    citations = {citation["id"]: citation for source in sources for citation in _cite_source(source)}
    return list(citations.values())


def _cite_source(source: DataSource) -> Iterator[dict[str, Any]]:
    if source.is_citable and (source.widget_id or source.uuid or source.name):
        info: dict[str, Any] = {
            "type": "widget",
            "uuid": _parse_uuid(source.uuid),
            "origin": source.origin or None,
            "widget_id": source.widget_id or None,
            "name": source.name or None,
            "description": source.description or None,
            "metadata": {"input_args": source.arguments},
        }
        name = {"Name": source.name} if source.name else {}
        yield _encode_citation(Citation(source_info=SourceInfo(**info), details=[name | source.arguments]))
    for fields in source.citations:
        try:
            citation = Citation.model_validate(fields)
        except ValidationError:
            continue  # the client would refuse its own citation
        if citation.source_info.citable:
            yield _encode_citation(citation)


def _parse_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _encode_citation(citation: Citation) -> dict[str, Any]:
    encoded = citation.model_dump(mode="json", exclude_none=True, exclude={"id"})
    uuid = citation.id or uuid5(NAMESPACE_URL, f"citation:{citation.model_dump_json(exclude={'id'})}")
    return {"id": str(uuid), **encoded}
