"""Export of a session as a Jupyter notebook: code cells with their outputs, and the conversation between them."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goose_like.core.images import detect_media_type
from goose_like.core.message import ToolResult
from goose_like.terminal.escape import escape_controls

from .export_markdown import render_entry, render_head
from .transcript import Entry, Transcript

_FIGURE = re.compile(r"^\[figure: (.+)\]\n?", re.MULTILINE)
_RAISED = re.compile(r"^\[raised (\w+)\]\n?", re.MULTILINE)

_Cell = dict[str, Any]


def export_notebook(transcript: Transcript) -> str:
    """Render the notebook, in nbformat 4.5. Texts are the Markdown of `export_markdown`, so nothing in them is HTML."""
    outputs = transcript.info.folder / "outputs"
    cells = [_make_text_cell(render_head(transcript))]
    for entry in transcript.iterate_entries():
        code = None
        if entry.call:
            code = entry.call.parse_arguments().get("code")
        if isinstance(code, str) and entry.result:
            cells.append(_make_code_cell(code, entry.result, outputs))
        else:
            cells.append(_make_entry_cell(entry, outputs))
    count = 0
    for number, cell in enumerate(cells, 1):
        cell["id"] = f"cell-{number}"
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1) + "\n"


def _make_text_cell(text: str) -> _Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": escape_controls(text)}


def _make_entry_cell(entry: Entry, outputs: Path) -> _Cell:
    """Make a Markdown cell. Its images are attachments."""
    blocks = list(render_entry(entry))
    attached = {}
    for number, image in enumerate(entry.images, 1):
        data = _read_image(outputs, image.name)
        if data:
            name = f"{number}-{Path(image.name).name}"
            attached[name] = data
    for name in attached:
        blocks.append(f"![image](attachment:{name})")
    cell = _make_text_cell("\n\n".join(blocks))
    if attached:
        cell["attachments"] = attached
    return cell


def _make_code_cell(code: str, result: ToolResult, outputs: Path) -> _Cell:
    made = list(_make_outputs(result, outputs))
    return {"cell_type": "code", "metadata": {}, "source": code, "outputs": made}


def _make_outputs(result: ToolResult, outputs: Path) -> Iterator[_Cell]:
    """Make the outputs of a cell: printed text or an error, then the figures that the text names."""
    figures = {}  # by the paths in the text
    for path in _FIGURE.findall(result.output):
        data = _read_image(outputs, path)
        if data:
            figures[path] = data

    def leave_out_figure(found: re.Match[str]) -> str:
        return "" if found[1] in figures else found[0]

    text = _FIGURE.sub(leave_out_figure, result.output)
    yield from _make_text_output(text, is_error=result.is_error)
    images = list(figures.values())
    for image in result.images:
        if image.source not in figures:
            images.append(_read_image(outputs, image.name))
    for data in filter(None, images):
        yield {"output_type": "display_data", "metadata": {}, "data": data}


def _make_text_output(text: str, *, is_error: bool) -> Iterator[_Cell]:
    raised = _RAISED.search(text)
    text = _RAISED.sub("", text)
    printed = text.strip()
    if raised or is_error:
        name = raised[1] if raised else "Error"
        last_line = printed.rpartition("\n")[2]
        yield {
            "output_type": "error",
            "ename": name,
            "evalue": last_line.removeprefix(f"{name}: "),
            "traceback": text.rstrip("\n").split("\n"),
        }
    elif printed and printed != "[no output]":
        yield {"output_type": "stream", "name": "stdout", "text": text.removesuffix("\n") + "\n"}


def _read_image(outputs: Path, path: str) -> dict[str, str]:
    """Read an image of the session, as a MIME bundle; empty if the file is gone or no image."""
    try:
        data = (outputs / Path(path).name).read_bytes()
    except OSError:
        return {}
    kind = detect_media_type(data)
    if kind is None:
        return {}
    return {kind: b64encode(data).decode()}
