"""What the client gave, as a model reads it: data as text, pictures as images, other files by name and size."""

import base64
from collections.abc import Sequence

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import named_image
from goose_like.core.message import Image, ToolResult

from .query import Given, Item

NOTHING = "no data came for this call; ask for it again, or go on without it"

LIMIT_CHARACTERS = 200_000
"""How much of one result a model is shown."""

_PICTURES = ("png", "jpg", "jpeg")
_TEXTS = ("txt", "md", "html", "csv")

Picture = tuple[bytes, str]
"""An image's bytes, and where they came from."""


def result(call_id: str, outcomes: Sequence[Given.One]) -> tuple[ToolResult, list[Picture]]:
    """The result of a call, and its pictures: their bytes are to be kept where requests to a model look for them."""
    pictures: list[Picture] = []
    images: list[Image] = []
    told: list[str] = []
    for outcome in outcomes:
        told += [outcome.message] if outcome.message else []
        for item in outcome.items:
            if picture := _picture(item):
                try:
                    images.append(named_image(*picture))
                    pictures.append(picture)
                except GooseLikeError as error:
                    told.append(f"[{error}]")
            else:
                told.append(in_words(item))
    output = "\n\n".join(filter(None, told))
    is_empty = not output and not images
    return ToolResult(
        call_id=call_id,
        output=NOTHING if is_empty else shown(output, LIMIT_CHARACTERS),
        is_error=is_empty or all(outcome.is_error for outcome in outcomes),
        images=tuple(images),
    ), pictures


def in_words(item: Item) -> str:
    """A piece of data as text: itself where it is some, else what it is."""
    name = f"{'data' if item.kind == 'object' else item.kind} {item.filename}".rstrip()
    if item.url:
        return f"[{name} at {item.url}, not fetched]"
    if item.kind == "object":
        return item.content
    if item.kind in _TEXTS:
        title = f"[{item.filename}]\n" if item.filename else ""
        return title + (_text_of(item.content) or item.content)
    size = len(item.content) * 3 // 4 - item.content[-2:].count("=")
    return f"[{name}, {size:,} bytes, which can't be read here]"


def shown(text: str, limit_characters: int) -> str:
    """The text, or its beginning and how much more there is."""
    if len(text) <= limit_characters:
        return text
    return f"{text[:limit_characters]}\n[{len(text) - limit_characters:,} more characters are left out here]"


def _text_of(content: str) -> str | None:
    """The text that a file in base64 holds. Which come so is not said: what reads as text then is taken for it."""
    data = _bytes_of(content)
    try:
        text = data.decode() if data else ""
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() or {"\n", "\t"} & set(text) else None


def _bytes_of(content: str) -> bytes | None:
    try:
        return base64.b64decode(content, validate=True)
    except ValueError:
        return None


def _picture(item: Item) -> Picture | None:
    if item.kind not in _PICTURES or item.url:
        return None
    head, _, tail = item.content.partition(",")
    data = _bytes_of(tail if head.startswith("data:") else item.content)
    return (data, item.filename or f"picture.{item.kind}") if data else None
