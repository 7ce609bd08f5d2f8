"""Tests of files in a conversation: what the model reads of them, and the pages that an answer cites."""

import base64
import json

from openbb_ai.models import Citation, QueryRequest

from goose_like.core.notifier import Notifier
from goose_like.serve.documents.reader import DocumentReader
from goose_like.serve.openbb.citations import cite_outcomes
from goose_like.serve.openbb.files import has_files, read_files
from goose_like.serve.openbb.history import build_conversation
from goose_like.serve.service import EmptyWorkspace
from tests.loopback import Loopback, Response
from tests.serve.documents.sample_files import build_docx, build_pdf
from tests.serve.openbb.conversations import SIGNER, start_turn
from tests.serve.openbb.test_prompt import PNG
from tests.serve.request_bodies import build_query, human

UUID = "123e4567-e89b-12d3-a456-426614174000"
PDF = build_pdf(["Annual report", "by Jane Doe"], ["Revenue rose to 1,234 million dollars", "Costs fell"])
WIDGETS = {"primary": [{"uuid": UUID, "origin": "openbb", "widget_id": "report", "name": "Report"}]}


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def build_body(*items):
    """Build the body that brings these items as the data of a widget."""
    source = {"data_sources": [{"widget_uuid": UUID, "origin": "openbb", "id": "report", "input_args": {}}]}
    call = {"role": "ai", "content": json.dumps({"function": "get_widget_data", "input_arguments": source})}
    data = {"role": "tool", "function": "get_widget_data", "input_arguments": source, "data": [{"items": [*items]}]}
    return [human("How much was the revenue?"), call, data]


async def fold(tmp_path, *messages, hosts=(), **fields):
    """Return a query with its files read, and its conversation."""
    query = build_query(*messages, **fields)
    assert has_files(query)
    workspace = EmptyWorkspace(tmp_path, mode="read-only", approval="auto", notifier=Notifier())
    try:
        query = await read_files(query, DocumentReader(workspace, hosts))
    finally:
        await workspace.close()
    return query, build_conversation(query, SIGNER)


async def test_a_pdf_is_read_and_cited_by_page(tmp_path):
    item = {"content": encode(PDF), "data_format": {"data_type": "pdf", "filename": "report.pdf"}}
    messages = build_body(item)
    QueryRequest.model_validate({"messages": messages})
    query, conversation = await fold(tmp_path, *messages, widgets=WIDGETS)
    output = start_turn(conversation).messages[-1].tool_results[0].output
    assert output.startswith("[pdf report.pdf]\n[page 1]\nAnnual report")
    widget, page = cite_outcomes(conversation.outcomes, query, "The revenue was 1,234 million dollars.")
    assert page["details"] == [{"Name": "Report", "File": "report.pdf", "Page": 2}]
    assert "quote_bounding_boxes" not in widget
    ((box,),) = page["quote_bounding_boxes"]
    assert (box["page"], box["text"]) == (2, "Revenue rose to 1,234 million dollars")
    assert 0 < box["x0"] < box["x1"] < 612
    assert 0 < box["top"] < box["bottom"] < 792
    for citation in (widget, page):
        Citation.model_validate(citation)


async def test_a_file_at_an_address_is_fetched(tmp_path):
    async with Loopback([Response(pieces=[PDF])]) as server:
        url = f"http://127.0.0.1:{server.port}/files/report.pdf?signature=x"
        items = [{"url": url, "data_format": {"data_type": "pdf"}}, {"url": "http://127.0.0.2/other.pdf"}]
        _, conversation = await fold(tmp_path, *build_body(*items), widgets=WIDGETS, hosts=["127.0.0.1"])
    output = start_turn(conversation).messages[-1].tool_results[0].output
    assert "Revenue rose to 1,234" in output
    assert "other.pdf, which can't be read here: 127.0.0.2 is not on the open internet" in output


async def test_files_that_the_person_adds(tmp_path):
    formats = (
        {"data_type": "docx", "filename": "a.docx"},
        {"data_type": "png", "filename": "b.png"},
        {"data_type": "pdf"},
    )
    contents = (f"data:application/x;base64,{encode(build_docx('Dear Jane'))}", PNG, "no base64")
    items = [{"content": text, "data_format": kind} for text, kind in zip(contents, formats, strict=True)]
    query, conversation = await fold(tmp_path, human("Look."), context=[{"name": "files", "data": {"items": items}}])
    assert "[docx a.docx]\nDear Jane\n[picture b.png]\n[pdf document.pdf, which can't be read" in (
        "".join(part.text for part in conversation.message.parts if part.type == "text")
    )
    assert [image.source for image in conversation.message.images] == ["b.png"]
    assert conversation.images == ((base64.b64decode(PNG), "b.png"),)
    assert cite_outcomes((), query, "Dear Jane") == []  # no pages
