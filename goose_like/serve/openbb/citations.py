"""Where an answer's data came from, in the protocol's form."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from .query import Source

UNTOLD = frozenset(
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
"""Details that upstream leaves out of citations, in small letters; of statuses it leaves out `url` as well."""


class _Given(BaseModel):
    """What a client sends is taken as far as it is known."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Box(_Given):
    """A quote's place on a page of a document."""

    text: str
    page: int
    x0: float
    top: float
    x1: float
    bottom: float


class SourceInfo(_Given):
    """What is cited."""

    type: Literal["widget", "direct retrieval", "web", "artifact"]
    uuid: UUID | None = None
    origin: str | None = None
    widget_id: str | None = None
    name: str | None = None
    description: str | None = None
    metadata: dict[str, Any] = {}
    citable: bool = True


class Citation(_Given):
    """One citation; `details` are shown with it."""

    id: UUID | None = None
    source_info: SourceInfo
    details: list[dict[str, Any]] | None = Field(default=None)
    quote_bounding_boxes: list[list[Box]] | None = None

    @field_validator("details")
    @classmethod
    def _told(cls, details: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        told = [{key: value for key, value in entry.items() if key.lower() not in UNTOLD} for entry in details or []]
        return [entry for entry in told if entry] or None


def citations(sources: Iterable[Source]) -> list[dict[str, Any]]:
    """A citation for each source that may be cited, and the client's own; each once, with the same id every time."""
    found = {citation["id"]: citation for source in sources for citation in _of(source)}
    return list(found.values())


def _of(source: Source) -> Iterator[dict[str, Any]]:
    if source.is_citable and (source.widget_id or source.uuid or source.name):
        info: dict[str, Any] = {
            "type": "widget",
            "uuid": _uuid(source.uuid),
            "origin": source.origin or None,
            "widget_id": source.widget_id or None,
            "name": source.name or None,
            "description": source.description or None,
            "metadata": {"input_args": source.arguments},
        }
        named = {"Name": source.name} if source.name else {}
        yield _written(Citation(source_info=SourceInfo(**info), details=[named | source.arguments]))
    for given in source.citations:
        try:
            citation = Citation.model_validate(given)
        except ValidationError:
            continue  # what the client would not take back
        if citation.source_info.citable:
            yield _written(citation)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _written(citation: Citation) -> dict[str, Any]:
    written = citation.model_dump(mode="json", exclude_none=True, exclude={"id"})
    uuid = citation.id or uuid5(NAMESPACE_URL, f"citation:{citation.model_dump_json(exclude={'id'})}")
    return {"id": str(uuid), **written}
