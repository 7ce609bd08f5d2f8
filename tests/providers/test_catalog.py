"""Tests of the models that a person can use: from servers, from the offline table, and the embedded one."""

import json

import pytest

from goose_like.providers.catalog import ModelOffer, list_offers, refresh_offers
from tests.loopback import Loopback, listed, refusal

VARIABLES = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "OLLAMA_HOST", "HTTP_PROXY", "http_proxy")


@pytest.fixture(autouse=True)
def keys(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")


def find(offers, label):
    return next((offer for offer in offers if offer.label == label), None)


def test_the_offline_table_has_windows_and_prices():
    offers = list_offers()
    assert find(offers, "openai:gpt-4o") == ModelOffer("openai:gpt-4o", 128_000, "$2.5 / $10")
    assert find(offers, "openai:gpt-4o").describe() == "128k · $2.5 / $10"
    assert not {offer.label.partition(":")[0] for offer in offers} & {"anthropic", "groq", "scripted"}
    assert not any("embedding" in offer.label or "whisper" in offer.label for offer in offers)


async def test_a_servers_list_replaces_the_table_and_is_kept(monkeypatch):
    async with Loopback([listed("house-7b", "gpt-4o-2024-05-13", "text-embedding-9")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        offers = await refresh_offers()
    assert find(offers, "openai:house-7b") == ModelOffer("openai:house-7b")
    assert find(offers, "openai:gpt-4o-2024-05-13").price
    assert find(offers, "openai:gpt-4.1") is None
    assert list_offers() == offers
    async with Loopback([refusal(500)]) as server:  # out of reach: the kept list stays
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert await refresh_offers() == offers


async def test_a_server_on_this_machine_that_stopped_offers_nothing(monkeypatch):
    async with Loopback([listed("qwen3")]) as server:
        monkeypatch.setenv("OLLAMA_HOST", f"http://127.0.0.1:{server.port}")
        assert find(await refresh_offers(), "ollama:qwen3") == ModelOffer("ollama:qwen3", None, "free")
    assert find(await refresh_offers(), "ollama:qwen3") is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"openai": 3}', json.dumps({"openai": ["a\x1bb"]})])
def test_a_broken_file_of_lists_is_ignored(home, text):
    (home / "state").mkdir(parents=True)
    (home / "state/models.json").write_text(text)
    assert not any("\x1b" in offer.label for offer in list_offers())
