"""Text of documents, read in a sandboxed process, because a malicious file may use any fault of a parser."""

import asyncio
import json
import sys
from importlib.resources import files
from tempfile import TemporaryFile
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.sandbox.scope import SandboxScope
from goose_like.workspace.workspace import Workspace

from .document import Document, Line

DOCUMENT_KINDS = ("pdf", "xlsx", "xls", "docx")
"""The kinds of documents that can be read."""

_TIMEOUT_S = 30.0
_MAX_OUTPUT_BYTES = 20_000_000
_PACKAGES = {"pdf": "pypdfium2", "xlsx": "python-calamine", "xls": "python-calamine", "docx": "mammoth"}


async def read_document(workspace: Workspace, data: bytes, kind: str) -> Document:
    """Read a document of a kind. A document without text has a `problem`.

    Raises:
        GooseLikeError: it cannot be read.
    """
    return _build_document(await _run_worker(workspace, data, kind))


async def _run_worker(workspace: Workspace, data: bytes, kind: str) -> dict[str, Any]:
    source = files(__package__).joinpath("worker.py").read_text(encoding="utf-8")
    with TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        process = await workspace.spawn(
            [sys.executable, "-I", "-c", source, kind],
            writes=False,
            descriptors={0: file.fileno()},
            subject="read a document",
            scope=SandboxScope(is_read_only=True),
        )
    output = b""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            while len(output) < _MAX_OUTPUT_BYTES and (chunk := await process.read()):
                output += chunk
            status = 1
            if len(output) < _MAX_OUTPUT_BYTES:
                status = await process.wait()
    except TimeoutError:
        raise GooseLikeError(f"it took longer than {_TIMEOUT_S:g} s to read") from None
    finally:
        await asyncio.shield(process.stop(0))
    if status:
        raise GooseLikeError(_describe_failure(output.decode(errors="replace"), kind))
    parts: dict[str, Any] = json.loads(output)
    return parts


def _describe_failure(output: str, kind: str) -> str:
    last_line = output.strip().rpartition("\n")[2]
    if last_line.startswith("ModuleNotFoundError"):
        return f"the package {_PACKAGES[kind]} is missing: pip install 'goose-like[documents]'"
    if "password" in last_line.lower():
        return "it is protected by a password"
    return f"it is damaged, too large, or no {kind} file"


def _build_document(output: dict[str, Any]) -> Document:
    texts: list[str] = []
    lines: list[Line] = []
    for number, part in enumerate(output["parts"], 1):
        if part["title"]:
            texts.append(f"[{part['title']}]")
        for text, *box in part["lines"]:
            texts.append(text)
            if box:
                x0, top, x1, bottom = box
                lines.append(Line(page=number, text=text, x0=x0, top=top, x1=x1, bottom=bottom))
    if not any(part["lines"] for part in output["parts"]):
        return Document(problem="it has no text; the pages of a scan can be sent as pictures")
    if output["is_cut"]:
        texts.append("[the rest is left out here]")
    return Document(text="\n".join(texts), lines=tuple(lines))
