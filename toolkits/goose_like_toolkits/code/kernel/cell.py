"""Cell: what came of one cell, as it is published, in the order in which it came."""

import asyncio
import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from goose_like.core.output_limit import LimitedOutput, LiveOutput
from goose_like.toolkit import ImageResult

from .channels import Message
from .outputs import Outputs

MAX_OUTPUT_BYTES = 1 << 30
_LINE_CHARACTERS = 65_536
_IMAGES = ("image/png", "image/jpeg")
_BARE = re.compile(r"<.*>", re.DOTALL)
_SAYS_NOTHING = re.compile(r"<IPython\.core\.display\.\w+ object>|<[\w.]+ (object )?at 0x[0-9a-f]+>")


class Cell:
    """Takes the messages of a cell. `output` is what the model reads of it, `notes` are on files that it left.

    `error` names what it raised; `flooded` is done when it has printed more than is kept.
    """

    def __init__(self, output: LimitedOutput, live: LiveOutput, outputs: Outputs) -> None:
        self.output = output
        self.notes: list[str] = []
        self.error = ""
        self.picture: ImageResult | None = None
        self.flooded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._live = live
        self._is_over = False
        self._outputs = outputs
        self._line = ""
        self._figures: set[bytes] = set()

    def take(self, message: Message) -> None:
        """One message; see "Messages on the IOPub channel" in Jupyter's protocol."""
        if self._is_over:  # it was cancelled
            return
        content = message["content"]
        match message["msg_type"]:
            case "stream":
                self._write(str(content["text"]))
            case "execute_result":
                self._show(content["data"], str(content["metadata"].get("name", "")), is_displayed=False)
            case "display_data":
                self._show(content["data"], "", is_displayed=True)
            case "error":
                self.error = str(content["ename"])
                self.add("\n".join(map(str, content["traceback"])))

    def add(self, text: str) -> None:
        """Text that was not printed, on lines of its own."""
        if text:
            self._write(("\n" if self._line else "") + text + "\n")

    def close(self) -> None:
        """Nothing more will come."""
        self._is_over = True
        self._keep(_after_return(self._line))
        self._line = ""
        self._live.close()
        self.output.close()

    def _write(self, text: str) -> None:
        """Printed text. Of what a carriage return takes back (a progress bar) the model reads the last state only."""
        self._live.write(text.encode(errors="replace"))
        *whole, self._line = (self._line + text).split("\n")
        if whole:
            self._keep("".join(f"{_after_return(line)}\n" for line in whole))
        if len(self._line) > _LINE_CHARACTERS:
            rest = _after_return(self._line)
            if len(rest) > _LINE_CHARACTERS:
                self._keep(rest)
                rest = ""
            self._line = rest

    def _keep(self, text: str) -> None:
        self.output.write(text.encode(errors="replace"))
        if self.output.size_bytes > MAX_OUTPUT_BYTES and not self.flooded.done():
            self.flooded.set_result(None)

    def _show(self, data: Mapping[str, Any], name: str, *, is_displayed: bool) -> None:
        """A value in all the forms that it has: an image or a document as a file, the rest as text."""
        plain = str(data.get("text/markdown", data.get("text/plain", "")))
        says_nothing = _SAYS_NOTHING.fullmatch(plain) is not None
        image = next((str(data[kind]) for kind in _IMAGES if kind in data), "")
        try:
            if image:
                self._show_figure(image)
                plain = "" if _BARE.fullmatch(plain) else plain
            elif "image/svg+xml" in data:
                self._save("figure.svg", str(data["image/svg+xml"]), "figure")
                plain = ""
            elif "text/html" in data and (is_displayed or says_nothing):
                self._save(f"{name or 'page'}.html", str(data["text/html"]), "HTML")
                plain = "" if says_nothing else plain
            if "text/csv" in data:
                self._save(f"{name or 'table'}.csv", str(data["text/csv"]), "all of the table")
        except OSError as error:
            self.notes.append(f"a file could not be saved: {error.strerror}")
        if plain:
            gap = "\n" if "\n" in plain else " "
            self.add(f"{name} ={gap}{plain}" if name else plain)

    def _show_figure(self, encoded: str) -> None:
        """Each figure once, though a cell may show it and then name it."""
        try:
            data = base64.b64decode(encoded)
        except binascii.Error:
            return
        if data not in self._figures:
            self._figures.add(data)
            path = self._outputs.figure(data, "a figure")
            self.notes.append(f"figure: {path}")
            self.picture = ImageResult(data, str(path))

    def _save(self, name: str, text: str, what: str) -> None:
        self.notes.append(f"{what}: {self._outputs.save(name, text.encode(errors='replace'))}")


def _after_return(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
