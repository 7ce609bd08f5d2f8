"""The output of one cell, in the order in which the kernel publishes it, and the files that the cell leaves."""

import asyncio
import base64
import binascii
import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from goose_like.core.images import detect_media_type
from goose_like.sdk.live_output import LiveOutput
from goose_like.sessions.output_limit import LimitedOutput
from goose_like.toolkit import ImageResult, ToolError

from .channels import Message

MAX_OUTPUT_BYTES = 100_000_000
_MAX_NOTES = 500
FILE_LIMIT_BYTES = 256 << 20
CALL_LIMIT_BYTES = 1 << 30
_CHUNK_BYTES = 1 << 20
_LINE_CHARACTERS = 65_536
_NAME_CHARACTERS = 80
_ARTIFACT_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Follow no link, and never wait for the writer of a pipe."""
_IMAGE_TYPES = ("image/png", "image/jpeg")
_DEFAULT_REPR = re.compile(r"<.*>", re.DOTALL)
_EMPTY_REPR = re.compile(r"<IPython\.core\.display\.\w+ object>|<[\w.]+ (object )?at 0x[0-9a-f]+>")


class CellFiles:
    """The files of one tool call; their names start with the id of the call."""

    def __init__(self, folder: Path, call: str) -> None:
        self.folder = folder
        self._call = call
        self._names: set[str] = set()
        self._left_bytes = CALL_LIMIT_BYTES

    def reserve_path(self, name: str) -> Path:
        """Return a path for a file with this name; no other file of the call gets the same path."""
        safe = re.sub(r"[^\w.-]", "_", name) or "file"
        unique = safe[-_NAME_CHARACTERS:]
        stem, dot, suffix = unique.partition(".")
        number = 1
        while unique in self._names:
            number += 1
            unique = f"{stem}-{number}{dot}{suffix}"
        self._names.add(unique)
        return self.folder / f"{self._call}-{unique}"

    def save_figure(self, data: bytes) -> Path:
        """Save an image under a short name that is new in the session. Raise OSError if the disk is full."""
        self.folder.mkdir(parents=True, exist_ok=True)
        media_type = detect_media_type(data) or "image/png"
        suffix = media_type.removeprefix("image/")
        for number in count(1):
            path = self.folder / f"figure-{number}.{suffix}"
            with suppress(FileExistsError), path.open("xb") as file:
                file.write(data)
                return path
        raise AssertionError

    def save(self, name: str, data: bytes) -> Path:
        """Save a file. Raise OSError if the disk is full."""
        path = self.reserve_path(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def copy_artifact(self, folder: int, name: str) -> Path:
        """Copy a regular file (no link) from a folder descriptor: at most 256 MB, and 1 GB for all files of the call.

        Raises:
            ToolError: There is no such file, or it is too large.
            OSError: The disk is full.
        """
        try:
            source = os.open(name, _ARTIFACT_FLAGS, dir_fd=folder)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", error)
            raise ToolError(f"artifact {name!r} was announced, but its file can't be read: {reason}") from error
        try:
            size = self._check_size(name, os.fstat(source))
            path = self.reserve_path(name)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._left_bytes -= size
            _copy_bytes(source, path, size)
            with suppress(OSError):
                path.chmod(0o600)
            return path
        finally:
            os.close(source)

    def _check_size(self, name: str, status: os.stat_result) -> int:
        """Return the size of an artifact. Raise ToolError if it is no regular file, or too large."""
        if "/" in name or not stat.S_ISREG(status.st_mode):
            raise ToolError(f"artifact {name!r} is not a regular file; write one")
        size = status.st_size
        if size > FILE_LIMIT_BYTES:
            raise ToolError(f"artifact {name!r} has {size:,} bytes, more than {FILE_LIMIT_BYTES:,}")
        if size > self._left_bytes:
            limit = f"the artifacts of one call may have {CALL_LIMIT_BYTES:,} bytes together"
            raise ToolError(f"artifact {name!r} is not saved: {limit}")
        return size


def _copy_bytes(source: int, path: Path, size: int) -> None:
    """Copy at most the first `size` bytes of a descriptor: the file may grow meanwhile."""
    left = size
    with path.open("wb") as target:
        while left > 0:
            chunk = os.read(source, min(_CHUNK_BYTES, left))
            if not chunk:
                break
            left -= target.write(chunk)


class CellOutput:
    """A receiver for the messages of one cell.

    `output` is the text for the model, `notes` name the saved files, and `error` names the type of a raised exception.
    `overflow` is done, with the reason, when the cell sent more than `MAX_OUTPUT_BYTES`, or saves files without end.
    """

    def __init__(self, output: LimitedOutput, live: LiveOutput, files: CellFiles) -> None:
        self.output = output
        self.notes: list[str] = []
        self.error = ""
        self.image: ImageResult | None = None
        self.overflow: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._live = live
        self._is_closed = False
        self._files = files
        self._line = ""
        self._figures: set[bytes] = set()
        self._received_bytes = 0

    def handle(self, message: Message) -> None:
        """Handle a message; see "Messages on the IOPub channel" in Jupyter's protocol."""
        if self._is_closed or self.overflow.done():  # the cell is being stopped: only read what it still sends
            return
        content = message["content"]
        self._received_bytes += sum(map(len, _list_texts(content)))
        if self._received_bytes > MAX_OUTPUT_BYTES:
            self.overflow.set_result(f"it sent more than {MAX_OUTPUT_BYTES:,} bytes of output")
        elif len(self.notes) > _MAX_NOTES:
            self.overflow.set_result(f"it saved more than {_MAX_NOTES} figures, tables and pages")
        match message["msg_type"]:
            case "stream":
                self._write(str(content["text"]))
            case "execute_result":
                name = str(content["metadata"].get("name", ""))
                self._show(content["data"], name, is_displayed=False)
            case "display_data":
                self._show(content["data"], "", is_displayed=True)
            case "error":
                self.error = str(content["ename"])
                lines = map(str, content["traceback"])
                self.write_block("\n".join(lines))

    def write_block(self, text: str) -> None:
        """Write text on lines of its own."""
        if not text:
            return
        if self._line:
            text = f"\n{text}"
        self._write(f"{text}\n")

    def close(self) -> None:
        """Finish the output; later messages are ignored."""
        self._is_closed = True
        self._keep(_apply_carriage_return(self._line))
        self._line = ""
        self._live.close()
        self.output.close()

    def _write(self, text: str) -> None:
        """Write printed text. The model gets only the last state of a line with carriage returns (a progress bar)."""
        self._live.write(text.encode(errors="replace"))
        *lines, self._line = (self._line + text).split("\n")
        if lines:
            complete = "\n".join(map(_apply_carriage_return, lines))
            self._keep(f"{complete}\n")
        if len(self._line) > _LINE_CHARACTERS:
            rest = _apply_carriage_return(self._line)
            if len(rest) > _LINE_CHARACTERS:
                self._keep(rest)
                rest = ""
            self._line = rest

    def _keep(self, text: str) -> None:
        text = text.replace("\0", "\\0")  # NUL would mean binary output
        self.output.write(text.encode(errors="replace"))

    def _show(self, data: Mapping[str, Any], name: str, *, is_displayed: bool) -> None:
        """Show a value: save an image or a document as a file, and write anything else as text."""
        plain = str(data.get("text/markdown", data.get("text/plain", "")))
        try:
            plain = self._save_value(data, plain, name, is_displayed=is_displayed)
            if "text/csv" in data:
                self._save(f"{name or 'table'}.csv", str(data["text/csv"]), "the whole table")
        except OSError as error:
            self.notes.append(f"a file could not be saved: {error.strerror}")
        if plain and name:
            gap = "\n" if "\n" in plain else " "
            plain = f"{name} ={gap}{plain}"
        self.write_block(plain)

    def _save_value(self, data: Mapping[str, Any], plain: str, name: str, *, is_displayed: bool) -> str:
        """Save an image or a document as a file. Return the text to show: `plain`, or "" if it says nothing more."""
        image = _find_image(data)
        if image:
            self._save_figure(image)
            return "" if _DEFAULT_REPR.fullmatch(plain) else plain
        if "image/svg+xml" in data:
            self._save("figure.svg", str(data["image/svg+xml"]), "figure")
            return ""
        is_empty = _EMPTY_REPR.fullmatch(plain) is not None
        if "text/html" in data and (is_displayed or is_empty):
            self._save(f"{name or 'page'}.html", str(data["text/html"]), "HTML")
            return "" if is_empty else plain
        return plain

    def _save_figure(self, encoded: str) -> None:
        """Save each figure once: a cell may display a figure and also end with its name."""
        try:
            data = base64.b64decode(encoded)
        except binascii.Error:
            return
        if data not in self._figures:
            self._figures.add(data)
            path = self._files.save_figure(data)
            self.notes.append(f"figure: {path}")
            self.image = ImageResult(data, str(path))

    def _save(self, name: str, text: str, label: str) -> None:
        path = self._files.save(name, text.encode(errors="replace"))
        self.notes.append(f"{label}: {path}")


def _find_image(data: Mapping[str, Any]) -> str:
    """Return the first image of a value, encoded, or ""."""
    for kind in _IMAGE_TYPES:
        if kind in data:
            return str(data[kind])
    return ""


def _list_texts(content: Mapping[str, Any]) -> list[str]:
    """List the texts of a message: printed text, or a displayed value in several formats."""
    printed = content.get("text")
    formats = content.get("data", {})
    return [text for text in (printed, *formats.values()) if isinstance(text, str)]


def _apply_carriage_return(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
