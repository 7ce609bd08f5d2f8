"""PDF files on the wire: each body fits the types of the SDK, which the loopback server checks."""

import base64
from pathlib import Path

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.images import save_image
from goose_like.core.message import Message, Text, ToolCall, ToolResult
from goose_like.providers.anthropic import AnthropicProvider, BedrockProvider, VertexProvider
from goose_like.providers.base import FileLimits, Request
from goose_like.providers.openai import OpenAIProvider
from tests.loopback import Loopback
from tests.providers.vendors import ANTHROPIC, OPENAI, RESPONSES, Vendor

DATA = b"%PDF-1.4 and so on"
URL = f"data:application/pdf;base64,{base64.b64encode(DATA).decode()}"


def find_parts(value: object, kind: str) -> list[object]:
    """Find all objects of a type."""
    found = []
    if isinstance(value, dict):
        if value.get("type") == kind:
            found.append(value)
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            found += find_parts(entry, kind)
    return found


@pytest.mark.parametrize(
    ("vendor", "kind", "expected"),
    [
        (
            ANTHROPIC,
            "document",
            {"source": {"type": "base64", "media_type": "application/pdf", "data": URL.partition(",")[2]}},
        ),
        (OPENAI, "file", {"file": {"filename": "a.pdf", "file_data": URL}}),
        (RESPONSES, "input_file", {"filename": "a.pdf", "file_data": URL}),
    ],
    ids=lambda value: value.name if isinstance(value, Vendor) else "",
)
async def test_a_document_of_the_person_and_of_a_result(tmp_path: Path, vendor, kind, expected):
    document = save_image(DATA, "a.pdf", tmp_path)
    call = ToolCall(id="c1", name="read", arguments="{}")
    messages = [
        Message(role="user", parts=(Text(text="read"), document)),
        Message(role="assistant", parts=(call,)),
        Message(role="tool", parts=(ToolResult(call_id="c1", output="here", images=(document,)),)),
    ]
    async with Loopback([vendor.answer("fine")]) as server:
        await vendor.ask(server.base_url, Request("m1", "", messages, images=tmp_path))
        sent = server.requests[0].json
        (tmp_path / document.name).unlink()
        await vendor.ask(server.base_url, Request("m1", "", messages, images=tmp_path))
        gone = server.requests[1].body.decode()
    parts = find_parts(sent, kind)
    assert len(parts) == 2
    for part in parts:
        assert expected.items() <= part.items()
    assert gone.count("[document a.pdf: its file is gone]") == 2


def find_limits(provider: type, model: str, window: int = 1_000_000, **more: str) -> FileLimits | None:
    return provider(ModelChoice(model=model, **more)).find_file_limits(window)


def test_which_servers_take_documents(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    limits = find_limits(AnthropicProvider, "anthropic:claude-opus-5-5")
    assert limits == FileLimits(max_bytes=32_000_000, max_images=600, large_images=20, max_side_px=2_000)
    assert find_limits(AnthropicProvider, "anthropic:claude-opus-4-5", 200_000).max_images == 100
    assert find_limits(BedrockProvider, "bedrock:anthropic.claude-opus-5-5").max_bytes == 20_000_000
    assert find_limits(VertexProvider, "vertex:claude-opus-5-5").max_bytes == 30_000_000
    assert find_limits(OpenAIProvider, "openai:gpt-6-sol").max_bytes == 50_000_000
    for provider in (AnthropicProvider, OpenAIProvider):
        assert find_limits(provider, "openai:m", base_url="http://127.0.0.1:1/v1") is None
