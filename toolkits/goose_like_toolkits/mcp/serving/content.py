"""Results and messages of goose_like as content of the protocol."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import mcp_types as types

from goose_like.core.message import Image, Message, Text, ToolResult


def convert_result(result: ToolResult, outputs: Path, files: Sequence[types.ContentBlock] = ()) -> types.CallToolResult:
    """Convert a result to its text, then its images and documents, which are in `outputs`, then other files."""
    content: list[types.ContentBlock] = [types.TextContent(text=result.output)]
    content += [_convert_file(image, outputs) for image in result.images]
    content += files
    return types.CallToolResult(content=content, is_error=result.is_error)


def convert_message(message: Message, outputs: Path) -> list[types.PromptMessage]:
    """Convert a message of a person to one message for each of its parts."""
    messages = []
    for part in message.parts:
        match part:
            case Text(text=text):
                messages.append(types.PromptMessage(role="user", content=types.TextContent(text=text)))
            case Image():
                messages.append(types.PromptMessage(role="user", content=_convert_file(part, outputs)))
    return messages


def read_image(image: Image, outputs: Path) -> types.BlobResourceContents:
    """Read an image or a document, which is in `outputs`. Raise OSError if it is unreadable."""
    file = outputs / image.name
    data = b64encode(file.read_bytes()).decode()
    return types.BlobResourceContents(uri=file.as_uri(), mime_type=image.media_type, blob=data)


def _convert_file(image: Image, outputs: Path) -> types.ContentBlock:
    blob = read_image(image, outputs)
    if image.is_document:
        return types.EmbeddedResource(resource=blob)
    return types.ImageContent(data=blob.blob, mime_type=image.media_type)
