"""Files that a call saves for the person. A client may be elsewhere, so results bring them along."""

import hashlib
import mimetypes
import stat
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import mcp_types as types

from goose_like.config.paths import read_user_bytes
from goose_like.core.images import detect_media_type
from goose_like.core.masking import mask_bytes, mask_text
from goose_like.core.message import ToolResult
from goose_like.core.text_file import TextFile

ResourceContents = types.TextResourceContents | types.BlobResourceContents

_MAX_BYTES = 10_000_000
"""The most bytes of all files of one result. Its text names the others."""

_MAX_CHARACTERS = 50_000
"""The most characters of a text file: the client's model may read it at once."""

_AUDIO_TYPES = {".wav": "audio/wav"}
"""The names of the protocol, where Python has others."""


class SavedFiles:
    """The files in the folder `outputs` of a session that are new since the start of a call.

    Only those count that the result names: in this way a tool tells of a file.
    """

    def __init__(self, outputs: Path) -> None:
        self._outputs = outputs
        self._before = dict(self._list())

    def convert(self, result: ToolResult) -> list[types.ContentBlock]:
        """Convert the files that a result names, without those that are images of the result already.

        Plain texts are left out, such as the whole of an output that was cut.
        """
        content = []
        left = _MAX_BYTES
        for file in self._find_new(result.output):
            media_type = _guess_media_type(file)
            if media_type in ("", "text/plain"):
                continue
            try:
                data = read_user_bytes(file, left)
            except (OSError, ValueError):
                continue  # it is too large, or gone meanwhile
            block = _convert_data(data, media_type, file.as_uri())
            if not _is_shown(data, result) and not _is_long_text(block):
                left -= len(data)
                content.append(block)
        return content

    def read_all(self, result: ToolResult) -> dict[Path, ResourceContents]:
        """Read the files that are the content of a resource, which was asked for: plain texts and large ones, too.

        Raises:
            OSError: a file is unreadable.
            ValueError: it is larger than all that a server can send.
        """
        contents = {}
        for file in self._find_new(result.output):
            data = read_user_bytes(file)
            if not _is_shown(data, result):
                media_type = _guess_media_type(file) or "application/octet-stream"
                contents[file] = _make_resource(data, media_type, file.as_uri())
        return contents

    def _find_new(self, text: str) -> Iterator[Path]:
        """Find the new files that a text names."""
        for file, changed_at in sorted(self._list()):
            is_new = self._before.get(file) != changed_at
            if is_new and str(file) in text:
                yield file

    def _list(self) -> Iterator[tuple[Path, int]]:
        for file in self._outputs.rglob("*"):
            try:
                status = file.lstat()
            except OSError:
                continue  # it is gone meanwhile
            if stat.S_ISREG(status.st_mode):
                yield file, status.st_mtime_ns


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


def _make_resource(data: bytes, media_type: str, uri: str) -> ResourceContents:
    """Make a resource: a text without secrets if the encoding is sure, else a blob. That of a text has none, either."""
    is_media = detect_media_type(data) is not None or media_type.startswith("audio/")
    text = None if is_media else TextFile.decode(data)
    if text and not text.is_guess:
        return types.TextResourceContents(uri=uri, mime_type=media_type, text=mask_text(text.exact))
    if text or _is_text_type(media_type):
        data = mask_bytes(data)
    return types.BlobResourceContents(uri=uri, mime_type=media_type, blob=b64encode(data).decode())


def _is_text_type(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.endswith(("json", "xml"))


def _is_shown(data: bytes, result: ToolResult) -> bool:
    """Check whether a file is an image of a result. The name of such an image is the start of its hash."""
    digest = hashlib.sha256(data).hexdigest()
    return any(digest.startswith(image.name.partition(".")[0]) for image in result.images)


def _is_long_text(block: types.ContentBlock) -> bool:
    if not isinstance(block, types.EmbeddedResource):
        return False
    resource = block.resource
    return isinstance(resource, types.TextResourceContents) and len(resource.text) > _MAX_CHARACTERS
