"""Sessions as Jupyter notebooks."""

import json
from base64 import b64decode

import nbformat
from markdown_it import MarkdownIt

from goose_like.core.events import MessageCompleted, ToolFinished, TurnStarted
from goose_like.core.message import Image, Message, ToolCall, ToolResult
from goose_like.sessions.export_notebook import export_notebook
from goose_like.sessions.index import find_session
from goose_like.sessions.transcript import Transcript
from tests.sessions.session_files import write_events, write_full_session

FIGURE = "/home/me/sessions/one/outputs/f.png"
PNG = b"\x89PNG\r\n\x1a\n1"


def read_notebook(name: str) -> nbformat.NotebookNode:
    notebook = nbformat.reads(export_notebook(Transcript.read(find_session(name))), as_version=4)
    nbformat.validate(notebook)
    return notebook


def run_cells(*cells: tuple[str, str]) -> nbformat.NotebookNode:
    """Return the notebook of a session whose model ran these cells, with their outputs."""
    calls = [
        ToolCall(id=str(at), name="evaluate", arguments=json.dumps({"code": code, "timeout_s": 9}))
        for at, (code, _) in enumerate(cells)
    ]
    images = (Image(name="h.png", media_type="image/png", source=FIGURE),)  # the model sees the figure too
    session = write_events(
        "one",
        TurnStarted(message=Message.user("count the *orders*")),
        MessageCompleted(message=Message(role="assistant", parts=tuple(calls))),
        *(
            ToolFinished(result=ToolResult(call_id=str(at), output=output, images=images if FIGURE in output else ()))
            for at, (_, output) in enumerate(cells)
        ),
        MessageCompleted(message=Message.assistant("There are **3**.")),
    )
    session.outputs.mkdir()
    for name in ("f.png", "h.png"):
        (session.outputs / name).write_bytes(PNG)
    return read_notebook("one")


def test_cells_have_their_outputs_and_pictures():
    notebook = run_cells(
        ("x = 1\nx", "x = 1\n"),
        ("plot()", f"drawn\n[figure: {FIGURE}]\n[figure: /gone.png]"),
        ("y", "Traceback (most recent call last):\n  cell line 1\nNameError: name 'y'\n[raised NameError]"),
        ("None", "[no output]"),
    )
    title, _profile, request, first, second, third, fourth, answer = notebook.cells
    assert title.source.startswith("# one")
    assert "count the *orders*" in request.source
    assert answer.source == "There are **3**."
    assert [cell.execution_count for cell in (first, second, third, fourth)] == [1, 2, 3, 4]
    assert (first.source, first.outputs[0].text) == ("x = 1\nx", "x = 1\n")
    text, picture = second.outputs
    assert text.text == "drawn\n[figure: /gone.png]\n"
    assert b64decode(picture.data["image/png"]) == PNG
    (error,) = third.outputs
    assert (error.ename, error.evalue, len(error.traceback)) == ("NameError", "name 'y'", 3)
    assert fourth.outputs == []


def test_all_kinds_of_entries_are_valid():
    session = write_full_session()
    (session.outputs / "a.png").write_bytes(PNG)
    notebook = read_notebook("one")
    assert {cell.cell_type for cell in notebook.cells} == {"markdown"}
    tokens = [token for cell in notebook.cells for token in MarkdownIt().parse(cell.source)]
    kinds = {inner.type for token in tokens for inner in (token, *(token.children or ()))}
    assert not kinds & {"html_block", "html_inline"}
    (picture,) = [cell for cell in notebook.cells if "attachments" in cell]
    assert "![image](attachment:1-a.png)" in picture.source
