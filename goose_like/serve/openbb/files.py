"""Files of a query: fetched if they come as URLs, and documents read as text."""

import base64
from collections.abc import Iterable
from urllib.parse import urlsplit

from goose_like.core.errors import GooseLikeError
from goose_like.serve.documents.document import Document
from goose_like.serve.documents.reader import DOCUMENT_KINDS, DocumentReader

from .query import DataItem, FunctionResult, Query, QueryMessage


def has_files(query: Query) -> bool:
    """Tell whether a query has files that must be fetched or read."""
    for message in query.messages:
        if isinstance(message, FunctionResult):
            for outcome in message.outcomes:
                if any(map(_is_file, outcome.items)):
                    return True
    return any(_is_file(item) for context in query.context for item in context.items)


async def read_files(query: Query, reader: DocumentReader) -> Query:
    """Fetch and read the files of a query. An item whose file cannot be read gets a document with a problem."""
    contexts = [each.model_copy(update={"items": await _read_items(each.items, reader)}) for each in query.context]
    messages = [await _read_message(each, reader) for each in query.messages]
    return query.model_copy(update={"context": tuple(contexts), "messages": tuple(messages)})


def _is_file(item: DataItem) -> bool:
    return bool(item.url) or item.kind in DOCUMENT_KINDS


async def _read_message(message: QueryMessage, reader: DocumentReader) -> QueryMessage:
    if not isinstance(message, FunctionResult):
        return message
    outcomes = [each.model_copy(update={"items": await _read_items(each.items, reader)}) for each in message.outcomes]
    return message.model_copy(update={"outcomes": tuple(outcomes)})


async def _read_items(items: Iterable[DataItem], reader: DocumentReader) -> tuple[DataItem, ...]:
    return tuple([await _read_item(item, reader) if _is_file(item) else item for item in items])


async def _read_item(item: DataItem, reader: DocumentReader) -> DataItem:
    path = urlsplit(item.url).path
    kind = path.rpartition(".")[2].lower() if item.kind in ("object", "") else item.kind
    name = item.filename or path.rpartition("/")[2] or f"document.{kind}"
    try:
        data = await reader.fetch(item.url) if item.url else _decode(item.content)
    except GooseLikeError as error:
        return item.model_copy(update={"filename": name, "document": Document(problem=str(error))})
    if kind in DOCUMENT_KINDS:
        document = await reader.read(data, kind)
        return item.model_copy(update={"content": "", "url": "", "kind": kind, "filename": name, "document": document})
    content = data.decode(errors="replace") if item.kind in ("object", "") else base64.b64encode(data).decode()
    return item.model_copy(update={"content": content, "url": "", "filename": name})


def _decode(content: str) -> bytes:
    head, _, tail = content.partition(",")
    try:
        return base64.b64decode(tail if head.startswith("data:") else content, validate=True)
    except ValueError:
        raise GooseLikeError("its data is not base64") from None
