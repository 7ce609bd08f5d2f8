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
        stem, dot, suffix = (re.sub(r"[^\w.-]", "_", name) or "file")[-80:].partition(".")
        unique, number = f"{stem}{dot}{suffix}", 1
        while unique in self._names:
            number += 1
            unique = f"{stem}-{number}{dot}{suffix}"
        self._names.add(unique)
        return self.folder / f"{self._call}-{unique}"

    def save_figure(self, data: bytes) -> Path:
        """Save an image under a short name that is new in the session. Raise OSError if the disk is full."""
        self.folder.mkdir(parents=True, exist_ok=True)
        suffix = (detect_media_type(data) or "image/png").removeprefix("image/")
        for number in count(1):
            with suppress(FileExistsError), (path := self.folder / f"figure-{number}.{suffix}").open("xb") as file:
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
            source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", error)
            raise ToolError(f"artifact {name!r} was announced, but its file can't be read: {reason}") from error
        try:
            status = os.fstat(source)
            if "/" in name or not stat.S_ISREG(status.st_mode):
                raise ToolError(f"artifact {name!r} is not a regular file; write one")
            if status.st_size > FILE_LIMIT_BYTES:
                raise ToolError(f"artifact {name!r} has {status.st_size:,} bytes, more than {FILE_LIMIT_BYTES:,}")
            if status.st_size > self._left_bytes:
                limit = f"the artifacts of one call may have {CALL_LIMIT_BYTES:,} bytes together"
                raise ToolError(f"artifact {name!r} is not saved: {limit}")
            path = self.reserve_path(name)
            self.folder.mkdir(parents=True, exist_ok=True)
            left = status.st_size  # the file may grow meanwhile
            self._left_bytes -= left
            with path.open("wb") as target:
                while left > 0 and (chunk := os.read(source, min(_CHUNK_BYTES, left))):
                    left -= target.write(chunk)
            with suppress(OSError):
                path.chmod(0o600)
            return path
        finally:
            os.close(source)


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
        self._received_bytes += sum(len(part) for part in _list_texts(content))
        if self._received_bytes > MAX_OUTPUT_BYTES:
            self.overflow.set_result(f"it sent more than {MAX_OUTPUT_BYTES:,} bytes of output")
        elif len(self.notes) > _MAX_NOTES:
            self.overflow.set_result(f"it saved more than {_MAX_NOTES} figures, tables and pages")
        match message["msg_type"]:
            case "stream":
                self._write(str(content["text"]))
            case "execute_result":
                self._show(content["data"], str(content["metadata"].get("name", "")), is_displayed=False)
            case "display_data":
                self._show(content["data"], "", is_displayed=True)
            case "error":
                self.error = str(content["ename"])
                self.write_block("\n".join(map(str, content["traceback"])))

    def write_block(self, text: str) -> None:
        """Write text on lines of its own."""
        if text:
            self._write(("\n" if self._line else "") + text + "\n")

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
            self._keep("".join(f"{_apply_carriage_return(line)}\n" for line in lines))
        if len(self._line) > _LINE_CHARACTERS:
            rest = _apply_carriage_return(self._line)
            if len(rest) > _LINE_CHARACTERS:
                self._keep(rest)
                rest = ""
            self._line = rest

    def _keep(self, text: str) -> None:
        self.output.write(text.replace("\0", "\\0").encode(errors="replace"))  # NUL would mean binary output

    def _show(self, data: Mapping[str, Any], name: str, *, is_displayed: bool) -> None:
        """Show a value: save an image or a document as a file, and write anything else as text."""
        plain = str(data.get("text/markdown", data.get("text/plain", "")))
        is_empty = _EMPTY_REPR.fullmatch(plain) is not None
        image = next((str(data[kind]) for kind in _IMAGE_TYPES if kind in data), "")
        try:
            if image:
                self._save_figure(image)
                plain = "" if _DEFAULT_REPR.fullmatch(plain) else plain
            elif "image/svg+xml" in data:
                self._save("figure.svg", str(data["image/svg+xml"]), "figure")
                plain = ""
            elif "text/html" in data and (is_displayed or is_empty):
                self._save(f"{name or 'page'}.html", str(data["text/html"]), "HTML")
                plain = "" if is_empty else plain
            if "text/csv" in data:
                self._save(f"{name or 'table'}.csv", str(data["text/csv"]), "the whole table")
        except OSError as error:
            self.notes.append(f"a file could not be saved: {error.strerror}")
        if plain:
            gap = "\n" if "\n" in plain else " "
            self.write_block(f"{name} ={gap}{plain}" if name else plain)

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
        self.notes.append(f"{label}: {self._files.save(name, text.encode(errors='replace'))}")


def _list_texts(content: Mapping[str, Any]) -> list[str]:
    """List the texts of a message: printed text, or a displayed value in several formats."""
    return [text for text in (content.get("text"), *content.get("data", {}).values()) if isinstance(text, str)]


def _apply_carriage_return(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
