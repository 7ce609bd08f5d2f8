"""The prompts of an editor as messages, and the parts of a tool call's content."""

import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from goose_like.agent.mentions import format_mention, format_pasted_image
from goose_like.core.errors import UsageError
from goose_like.core.images import save_image

Json = dict[str, Any]
Send = Callable[[str, Json], Awaitable[Any]]
"""Sends a notification or a request of a method to the editor."""

Block = TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock

_HUNK = re.compile(r"^@@ .*? @@.*$", re.MULTILINE)


def format_prompt(blocks: Sequence[Block], outputs: Path) -> str:
    """Write the blocks of a prompt as the text that a person would type: files and images are mentions.

    `outputs` is the folder of the session for images.

    Raises:
        UsageError: a block is of a kind that goose_like does not take.
    """
    parts = []
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                parts.append(text)
            case ResourceContentBlock(uri=uri):
                parts.append(_format_link(uri))
            case ImageContentBlock():
                parts.append(_format_image(block, outputs))
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                parts.append(f"\n<file uri={uri!r}>\n{text}\n</file>\n")
            case _:
                raise UsageError(f"goose-like takes no {block.type} of this kind in a prompt; send text or images")
    return "".join(parts)


def _format_link(uri: str) -> str:
    """Write a link as a mention, so that the text of a file is attached. Other links stay as they are."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return format_mention(unquote(parts.path))
    return uri


def _format_image(block: ImageContentBlock, outputs: Path) -> str:
    try:
        data = base64.b64decode(block.data, validate=True)
    except binascii.Error as error:
        raise UsageError("an image in the prompt is no base64; send it again") from error
    image = save_image(data, block.uri or "an image from the editor", outputs)
    return f" {format_pasted_image(image)} "


def make_text(text: str) -> Json:
    """Make a block of text."""
    return {"type": "text", "text": text}


def make_content(text: str) -> Json:
    """Make a part of a tool call's content from a text."""
    return {"type": "content", "content": make_text(text)}


def make_diffs(path: str, diff: str) -> list[Json]:
    """Make a part of a tool call's content for each hunk of a unified diff: the lines before, and those after."""
    parts = []
    for hunk in _split_hunks(diff):
        old = [line[1:] for line in hunk if line[:1] in (" ", "-")]
        new = [line[1:] for line in hunk if line[:1] in (" ", "+")]
        part: Json = {"type": "diff", "path": path, "newText": _join(new)}
        if old:
            part["oldText"] = _join(old)
        parts.append(part)
    return parts


def _split_hunks(diff: str) -> Iterator[list[str]]:
    _, *hunks = _HUNK.split(diff)
    for hunk in hunks:
        yield hunk.strip("\n").split("\n")


def _join(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
