"""Export of a session as a Jupyter notebook: code cells with their outputs, and the conversation between them."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goose_like.core.images import detect_media_type
from goose_like.core.message import ToolCall, ToolResult
from goose_like.terminal.escape import escape_controls

from .export_markdown import render_entry, render_head
from .transcript import Entry, Transcript

_CODE_TOOL = "run_python"
_FIGURE = re.compile(r"^\[figure: (.+)\]\n?", re.MULTILINE)
_RAISED = re.compile(r"^\[raised (\w+)\]\n?", re.MULTILINE)

_Cell = dict[str, Any]


def export_notebook(transcript: Transcript) -> str:
    """Render the notebook, in nbformat 4.5. Texts are the Markdown of `export_markdown`, so nothing in them is HTML."""
    outputs = transcript.info.folder / "outputs"
    cells = [_make_text_cell(render_head(transcript))]
    for entry in transcript.iterate_entries():
        if entry.call and entry.call.name == _CODE_TOOL and entry.result:
            cells.append(_make_code_cell(entry.call, entry.result, outputs))
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
    images = [(f"{number}-{Path(image.name).name}", image) for number, image in enumerate(entry.images, 1)]
    attached = {name: data for name, image in images if (data := _read_image(outputs, image.name))}
    links = [f"![image](attachment:{name})" for name in attached]
    cell = _make_text_cell("\n\n".join([*render_entry(entry), *links]))
    return cell | ({"attachments": attached} if attached else {})


def _make_code_cell(call: ToolCall, result: ToolResult, outputs: Path) -> _Cell:
    source = str(call.parse_arguments().get("code", call.arguments))
    made = list(_make_outputs(result, outputs))
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": made}


def _make_outputs(result: ToolResult, outputs: Path) -> Iterator[_Cell]:
    """Make the outputs of a cell: printed text or an error, then the figures that the text names."""
    figures = {path: data for path in _FIGURE.findall(result.output) if (data := _read_image(outputs, path))}
    others = [image.name for image in result.images if image.source not in figures]
    text = _FIGURE.sub(lambda found: "" if found[1] in figures else found[0], result.output)
    raised = _RAISED.search(text)
    text = _RAISED.sub("", text)
    if raised or result.is_error:
        last = text.strip().rpartition("\n")[2]
        name = raised[1] if raised else "Error"
        yield {
            "output_type": "error",
            "ename": name,
            "evalue": last.removeprefix(f"{name}: "),
            "traceback": text.rstrip("\n").split("\n"),
        }
    elif text.strip() and text.strip() != "[no output]":
        yield {"output_type": "stream", "name": "stdout", "text": text.removesuffix("\n") + "\n"}
    for data in [*figures.values(), *filter(None, (_read_image(outputs, name) for name in others))]:
        yield {"output_type": "display_data", "metadata": {}, "data": data}


def _read_image(outputs: Path, path: str) -> dict[str, str]:
    """Read an image of the session, as a MIME bundle; empty if the file is gone or no image."""
    try:
        data = (outputs / Path(path).name).read_bytes()
    except OSError:
        return {}
    return {kind: b64encode(data).decode()} if (kind := detect_media_type(data)) else {}
