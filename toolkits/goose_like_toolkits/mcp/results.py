"""What a model reads of a server's results: texts, an image, and the names of saved files."""

import binascii
import hashlib
import json
import mimetypes
import os
import re
from base64 import b64decode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import check_image
from goose_like.toolkit import ImageResult, ToolError

_SUFFIXES = {"audio/wav": ".wav", "audio/mp3": ".mp3"}
"""Those of names that servers use and Python does not know."""
_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class ResultReader:
    """Reads the content of one result. Files that a model cannot read are saved in `outputs`.

    `source` names the tool or resource, for people and for the names of files.
    """

    def __init__(self, outputs: Path, source: str) -> None:
        self._outputs = outputs
        self._source = source
        self._texts: list[str] = []
        self._image: bytes | None = None

    def read_call(self, result: Any, notes: Iterable[str] = ()) -> str | ImageResult:
        """Return the result of a tool call, with notes in brackets at its end.

        Raises:
            ToolError: the server says that the call failed.
        """
        for block in result.content:
            self._add_block(block)
        if result.structured_content is not None and not any(text.strip() for text in self._texts):
            self._texts.append(json.dumps(result.structured_content, ensure_ascii=False))
        self._texts += [f"[{note}]" for note in notes]
        if result.is_error:
            raise ToolError(self._join_texts() or f"{self._source} failed, and the server gave no reason")
        return self._finish()

    def read_resource(self, parts: Iterable[Any]) -> str | ImageResult:
        """Return a resource, which may have several parts."""
        for part in parts:
            self._add_contents(part)
        return self._finish()

    def read_prompt(self, messages: Iterable[Any]) -> str:
        """Return the text of a prompt. Messages of the assistant are marked."""
        for message in messages:
            if message.role == "assistant":
                self._texts.append("The assistant said:")
            self._add_block(message.content)
        if self._image is not None:
            self._texts.append(self._save(self._image, ""))
        return self._join_texts()

    def _finish(self) -> str | ImageResult:
        text = self._join_texts()
        if self._image is None:
            return text or "(no output)"
        return ImageResult(self._image, self._source, text)

    def _join_texts(self) -> str:
        return "\n".join(text for text in self._texts if text)

    def _add_block(self, block: Any) -> None:
        match block.type:
            case "text":
                self._texts.append(block.text)
            case "image" | "audio":
                self._add_data(block.data, block.mime_type)
            case "resource":
                self._add_contents(block.resource)
            case "resource_link":
                about = f" ({block.description})" if block.description else ""
                self._texts.append(f"[resource {block.name}{about}: {block.uri}]")
            case kind:
                self._texts.append(f"[left out: content of the type {kind}]")

    def _add_contents(self, contents: Any) -> None:
        text = getattr(contents, "text", None)
        if text is None:
            self._add_data(contents.blob, contents.mime_type or "")
        else:
            self._texts.append(text)

    def _add_data(self, text: str, media_type: str) -> None:
        """Take the first image that models accept for them, and save everything else."""
        try:
            data = b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            self._texts.append(f"[left out: {media_type or 'data'} that is no base64]")
            return
        if self._image is None and _is_image(data):
            self._image = data
            return
        self._texts.append(self._save(data, media_type))

    def _save(self, data: bytes, media_type: str) -> str:
        """Save data for the model, and return a note about the file."""
        stem = _NAME.sub("-", self._source).strip("-")[:60]
        digest = hashlib.sha256(data).hexdigest()[:12]
        bare_type = media_type.partition(";")[0].strip().lower()
        suffix = _SUFFIXES.get(bare_type) or mimetypes.guess_extension(bare_type) or ".bin"
        file = self._outputs / f"{stem}-{digest}{suffix}"
        kind = media_type or "data"
        try:
            self._outputs.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as written:
                written.write(data)
        except OSError as error:
            return f"[{kind}, {len(data):,} bytes, could not be saved: {error.strerror or error}]"
        return f"[{kind}, {len(data):,} bytes, saved as {file}]"


def _is_image(data: bytes) -> bool:
    """Check that models take an image."""
    try:
        check_image(data, "")
    except GooseLikeError:
        return False
    return True
