"""PDF files of OpenAI's clients."""

import base64
import binascii
import json
import re
from typing import Any

import openai
import pytest

from goose_like.serve.body import decode_base64
from goose_like.serve.openai.chat_body import ChatBody
from goose_like.serve.openai.history import build_turn
from goose_like.serve.openai.request import RequestError
from goose_like.serve.openai.responses_body import ResponsesBody
from goose_like.serve.state import StateSigner
from tests.loopback import said, sse
from tests.serve.documents.sample_files import build_pdf
from tests.serve.openai_server import serving_openai

PDF = build_pdf(["The total is 42."])
DATA = f"data:application/pdf;base64,{base64.b64encode(PDF).decode()}"
RESPONSES_FILE = {"type": "input_file", "filename": "bill.pdf", "file_data": DATA}
CHAT_FILE = {"type": "file", "file": {"filename": "bill.pdf", "file_data": DATA}}


def ask_responses(*content: Any) -> bytes:
    return json.dumps({"model": "openbb", "input": [{"role": "user", "content": content}]}).encode()


def ask_chat(*content: Any) -> bytes:
    return json.dumps({"model": "openbb", "messages": [{"role": "user", "content": content}]}).encode()


@pytest.mark.parametrize(
    "body",
    [ResponsesBody.parse(ask_responses(RESPONSES_FILE)), ChatBody.parse(ask_chat(CHAT_FILE))],
    ids=["responses", "chat"],
)
def test_a_model_that_takes_pdf_files_gets_the_file(body: ResponsesBody | ChatBody) -> None:
    turn = build_turn(body.convert(), StateSigner(b"k" * 32))
    assert turn.images == ((PDF, "bill.pdf"),)
    (image,) = turn.message.images
    assert image.is_document


@pytest.mark.parametrize("count", [0, 1, 2, 3, 299_999, 300_000, 300_001, 1_000_000])
def test_base64_is_decoded_piece_by_piece(count: int) -> None:
    data = PDF * (count // len(PDF)) + PDF[: count % len(PDF)]
    encoded = base64.b64encode(data).decode()
    assert decode_base64(encoded) == data
    for wrong in (encoded + "A", encoded + "%", "%" + encoded):
        with pytest.raises(binascii.Error):
            decode_base64(wrong)


@pytest.mark.parametrize("body", [RESPONSES_FILE, CHAT_FILE["file"] | {"type": "file"}, CHAT_FILE])
def test_a_file_needs_no_name(body: dict[str, Any]) -> None:
    unnamed = json.loads(json.dumps(body).replace('"bill.pdf"', "null"))
    for parsed in (ResponsesBody.parse(ask_responses(unnamed)), ChatBody.parse(ask_chat(unnamed))):
        assert build_turn(parsed.convert(), StateSigner(b"k" * 32)).images == ((PDF, "file.pdf"),)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"type": "input_file", "file": {"file_data": DATA}}, "a part 'input_file' has no 'file'; put 'file_data'"),
        ({"type": "input_file", "file": "x", "file_data": DATA}, "a part 'input_file' has no 'file'; put 'file_data'"),
        ({"type": "file", "file": "x"}, "expected an object in 'file', with 'file_data', not text"),
        ({"type": "file", "file": []}, "expected an object in 'file', with 'file_data', not a list"),
        ({"type": "file", "filename": 3}, "expected text, not a number"),
    ],
)
def test_a_file_in_the_wrong_place_is_one_sentence(part: dict[str, Any], reason: str) -> None:
    with pytest.raises(RequestError) as caught:
        ResponsesBody.parse(ask_responses(part))
    assert str(caught.value).startswith("input[0].content[0]")
    assert reason in str(caught.value)
    with pytest.raises(RequestError, match=re.escape(reason)):
        ChatBody.parse(ask_chat(part))


async def test_another_model_gets_the_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    async with serving_openai(monkeypatch, tmp_path, [sse(said("42"))]) as server:
        question = {"type": "input_text", "text": "how much?"}
        given: Any = [{"role": "user", "content": [RESPONSES_FILE, question]}]
        answer = await server.client.responses.create(model="openbb", input=given)
        assert answer.output_text == "42"
        asked: Any = {"role": "user", "content": [CHAT_FILE]}
        await server.ask(asked)
        bodies = [request.body.decode() for request in server.model.requests]
        damaged = base64.b64encode(b"%PDF-1.7 broken").decode()
        wrong = [
            ({"file_id": "file-1"}, "keeps and fetches no files"),
            ({"file_url": "https://example.com/a.pdf"}, "keeps and fetches no files"),
            ({"file_data": "data:application/pdf;base64,%%%"}, "not base64"),
            ({"file_data": "data:application/pdf;base64,aGVsbG8="}, "no PDF file"),
            ({"file_data": f"data:application/pdf;base64,{damaged}"}, "cannot be read"),
        ]
        for fields, reason in wrong:
            bad: Any = [{"role": "user", "content": [{"type": "input_file", **fields}]}]
            with pytest.raises(openai.BadRequestError, match=reason) as caught:
                await server.client.responses.create(model="openbb", input=bad)
            assert (caught.value.code, caught.value.param) == ("invalid_file", "input[0].content")
        system: Any = [{"role": "developer", "content": [RESPONSES_FILE]}]
        with pytest.raises(openai.BadRequestError, match="only messages of the user"):
            await server.client.responses.create(model="openbb", input=system)
    assert ["The total is 42." in body and "[bill.pdf]" in body for body in bodies] == [True, True]
