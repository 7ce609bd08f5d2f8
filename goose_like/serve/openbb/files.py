"""Files of a query: fetched if they come as URLs, and documents read as text."""

import base64
from itertools import chain
from typing import TypeVar
from urllib.parse import urlsplit

from goose_like.core.errors import GooseLikeError
from goose_like.core.threads import run_in_thread
from goose_like.serve.body import decode_base64
from goose_like.serve.documents.reader import DocumentReader
from goose_like.workspace.documents.document import Document
from goose_like.workspace.documents.reader import DOCUMENT_KINDS

from .query import AddedContext, DataItem, FunctionResult, Outcome, Query, QueryMessage

_Part = TypeVar("_Part", AddedContext, Outcome)


def has_files(query: Query) -> bool:
    """Tell whether a query has files that must be fetched or read."""
    parts: list[AddedContext | Outcome] = [*query.context]
    for message in query.messages:
        if isinstance(message, FunctionResult):
            parts += message.outcomes
    items = chain.from_iterable(part.items for part in parts)
    return any(map(_is_file, items))


async def read_files(query: Query, reader: DocumentReader) -> Query:
    """Fetch and read the files of a query. An item whose file cannot be read gets a document with a problem."""
    contexts = [await _read_items(each, reader) for each in query.context]
    messages = [await _read_message(each, reader) for each in query.messages]
    return query.model_copy(update={"context": tuple(contexts), "messages": tuple(messages)})


def _is_file(item: DataItem) -> bool:
    return bool(item.url) or item.kind in DOCUMENT_KINDS


async def _read_message(message: QueryMessage, reader: DocumentReader) -> QueryMessage:
    if not isinstance(message, FunctionResult):
        return message
    outcomes = [await _read_items(each, reader) for each in message.outcomes]
    return message.model_copy(update={"outcomes": tuple(outcomes)})


async def _read_items(part: _Part, reader: DocumentReader) -> _Part:
    items = [await _read_item(item, reader) for item in part.items]
    return part.model_copy(update={"items": tuple(items)})


async def _read_item(item: DataItem, reader: DocumentReader) -> DataItem:
    if not _is_file(item):
        return item
    path = urlsplit(item.url).path
    is_unknown = item.kind in ("object", "")
    kind = item.kind
    if is_unknown:
        kind = path.rpartition(".")[2].lower()
    name = item.filename or path.rpartition("/")[2] or f"document.{kind}"
    try:
        data = await _load_bytes(item, reader)
    except GooseLikeError as error:
        return item.model_copy(update={"filename": name, "document": Document(problem=str(error))})
    if kind in DOCUMENT_KINDS:
        document = await reader.read(data, kind)
        return item.model_copy(update={"content": "", "url": "", "kind": kind, "filename": name, "document": document})
    if is_unknown:
        content = data.decode(errors="replace")
    else:
        content = base64.b64encode(data).decode()
    return item.model_copy(update={"content": content, "url": "", "filename": name})


async def _load_bytes(item: DataItem, reader: DocumentReader) -> bytes:
    if item.url:
        return await reader.fetch(item.url)
    return await run_in_thread(_decode, item.content)


def _decode(content: str) -> bytes:
    if content.startswith("data:"):
        content = content.partition(",")[2]
    try:
        return decode_base64(content)
    except ValueError:
        raise GooseLikeError("its data is not base64") from None
