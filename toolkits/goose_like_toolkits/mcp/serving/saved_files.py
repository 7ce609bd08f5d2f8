"""Files that a call saves for the person. A client may be elsewhere, so results bring them along."""

import hashlib
import mimetypes
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import mcp_types as types

from goose_like.core.images import detect_media_type
from goose_like.core.masking import mask_bytes
from goose_like.core.message import ToolResult

_MAX_BYTES = 10_000_000
"""The most bytes of all files of one result. Its text names the others."""

_MAX_CHARACTERS = 50_000
"""The most characters of a text file: the client's model may read it at once."""

_AUDIO_TYPES = {".wav": "audio/wav"}
"""The names of the protocol, where Python has others."""


class SavedFiles:
    """The files in the folder `outputs` of a session that are new since the start of a call.

    Only those count that the result names: in this way a tool tells of a file. Plain texts are left out, such as the
    whole of an output that was cut.
    """

    def __init__(self, outputs: Path) -> None:
        self._outputs = outputs
        self._before = dict(self._list())

    def convert(self, result: ToolResult) -> list[types.ContentBlock]:
        """Convert the files that a result names, without those that are images of the result already."""
        shown = [image.name.partition(".")[0] for image in result.images]
        content = []
        left = _MAX_BYTES
        for file, media_type in self._find_new(result.output):
            size = file.stat().st_size
            if size > left:
                continue
            data = file.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            is_shown = any(digest.startswith(stem) for stem in shown)
            block = _convert_data(data, media_type, file.as_uri())
            if not is_shown and not _is_long_text(block):
                left -= size
                content.append(block)
        return content

    def _find_new(self, text: str) -> Iterator[tuple[Path, str]]:
        """Find the new files that a text names, with their media types."""
        for file, changed_at in sorted(self._list()):
            is_new = self._before.get(file) != changed_at
            if not is_new or str(file) not in text:
                continue
            media_type = _guess_media_type(file)
            if media_type and media_type != "text/plain":
                yield file, media_type

    def _list(self) -> Iterator[tuple[Path, int]]:
        for file in self._outputs.rglob("*"):
            if file.is_file() and not file.is_symlink():
                yield file, file.stat().st_mtime_ns


def _guess_media_type(file: Path) -> str:
    """Guess the media type of a file by its suffix. It is empty for an unknown one."""
    known = _AUDIO_TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0]
    return known or ""


def _convert_data(data: bytes, media_type: str, uri: str) -> types.ContentBlock:
    """Convert a file to an image that models take, to audio, or to a resource."""
    encoded = b64encode(data).decode()
    image_type = detect_media_type(data)
    if image_type:
        return types.ImageContent(data=encoded, mime_type=image_type)
    if media_type.startswith("audio/"):
        return types.AudioContent(data=encoded, mime_type=media_type)
    return types.EmbeddedResource(resource=_make_resource(data, media_type, uri))


def _make_resource(data: bytes, media_type: str, uri: str) -> types.TextResourceContents | types.BlobResourceContents:
    """Make a resource: a text without secrets if it is one, else a blob."""
    try:
        text = mask_bytes(data).decode()
    except UnicodeDecodeError:
        return types.BlobResourceContents(uri=uri, mime_type=media_type, blob=b64encode(data).decode())
    return types.TextResourceContents(uri=uri, mime_type=media_type, text=text)


def _is_long_text(block: types.ContentBlock) -> bool:
    if not isinstance(block, types.EmbeddedResource):
        return False
    resource = block.resource
    return isinstance(resource, types.TextResourceContents) and len(resource.text) > _MAX_CHARACTERS
