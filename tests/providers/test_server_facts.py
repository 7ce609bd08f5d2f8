"""Tests of the facts that a server tells of itself: its window, and images."""

import json
from typing import Any

import pytest

from goose_like.agent.build import build_exchange
from goose_like.config.profile import ModelChoice, Profile
from goose_like.core.events import Retrying
from goose_like.core.notifier import Recorder
from goose_like.providers.base import ServerFacts
from goose_like.providers.registry import open_model
from goose_like.providers.server_facts import parse_facts
from tests.loopback import Asked, Loopback, Response, refusal, said, sse


class ServerWithFacts(Loopback):
    """Answers `/api/ps` and `/props` with the next of `told`, and everything else as `Loopback`."""

    def __init__(self, told: list[Any], responses: list[Response]) -> None:
        super().__init__(responses)
        self._told = told
        self.paths: list[str] = []

    def _response(self, asked: Asked) -> Response:
        path = asked.head.split()[1].decode()
        self.paths.append(path)
        if path not in ("/api/ps", "/props"):
            return super()._response(asked)
        told = self._told.pop(0) if len(self._told) > 1 else self._told[0]
        if told is None:
            return refusal(404)
        body = json.dumps(told).encode()
        return Response(200, {"content-type": "application/json", "content-length": str(len(body))}, [body])


def load(window: Any, name: str = "m1:latest") -> dict[str, Any]:
    return {"models": [{"name": "other", "context_length": 1}, {"name": name, "model": name, "context_length": window}]}


LLAMA = {"default_generation_settings": {"n_ctx": 8192}, "modalities": {"vision": True, "audio": False}}


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("ollama", load(4096), ServerFacts(4096)),
        ("ollama", load(4096, "m1"), ServerFacts(4096)),
        ("ollama", load(4096, "m2"), ServerFacts()),
        ("ollama", {"models": []}, ServerFacts()),
        ("ollama", {"models": {"a": 1}}, ServerFacts()),
        ("ollama", load("many"), ServerFacts()),
        ("ollama", [], ServerFacts()),
        ("llama-server", LLAMA, ServerFacts(8192, True)),
        ("llama-server", {"modalities": {"vision": "yes"}}, ServerFacts()),
        ("llama-server", {"default_generation_settings": None}, ServerFacts()),
        ("llama-server", None, ServerFacts()),
    ],
)
def test_facts_in_an_answer(kind: Any, body: Any, expected: ServerFacts) -> None:
    assert parse_facts(kind, body, "m1") == expected


async def chat(server: Loopback, provider: str, turns: int = 2, **choice: Any) -> tuple[Any, list[str]]:
    """Run turns; return the facts and the warnings."""
    recorder = Recorder()
    chosen = ModelChoice(model=f"{provider}:m1", base_url=server.base_url, tools="native", **choice)
    async with build_exchange(Profile(processor=chosen, sandbox="full"), recorder) as exchange:
        for number in range(turns):
            assert (await exchange.reply(f"hi {number}")).reason == "stop"
        model = exchange.models.processor
        found = (model.window, model.takes_images)
    return found, [event.text for event in recorder.events if isinstance(event, Retrying)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def test_a_small_window_of_ollama_is_a_warning_once_it_is_known() -> None:
    async with ServerWithFacts([{"models": []}, load(100)], [sse(said("ok"))]) as server:
        found, (warning,) = await chat(server, "ollama", turns=3)
        assert [path for path in server.paths if path == "/api/ps"] == ["/api/ps"] * 2
    assert found == (100, False)
    assert "the server's window has 100 tokens, and the conversation needs about" in warning
    assert "OLLAMA_CONTEXT_LENGTH=64000" in warning


async def test_a_large_window_is_no_warning() -> None:
    async with ServerWithFacts([load(64_000)], [sse(said("ok"))]) as server:
        assert await chat(server, "ollama") == ((64_000, False), [])


@pytest.mark.parametrize(("images", "sees"), [(True, True), (False, False)])
async def test_llama_server_tells_window_and_images(images: bool, sees: bool) -> None:
    async with ServerWithFacts([LLAMA], [sse(said("ok"))]) as server:
        assert (await chat(server, "llama-server", images=images))[0] == (8192, sees)
        assert server.paths.count("/props") == 1


async def test_a_server_without_facts_is_asked_once_and_works() -> None:
    async with ServerWithFacts([None], [sse(said("ok"))]) as server:
        assert await chat(server, "ollama", window=5_000) == ((5_000, False), [])
        assert server.paths.count("/api/ps") == 1


async def test_other_servers_are_not_asked() -> None:
    async with ServerWithFacts([LLAMA], [sse(said("ok"))]) as server:
        await chat(server, "vllm")
        assert {path.rpartition("/")[2] for path in server.paths} == {"completions"}


def test_a_model_that_was_not_asked_yet_has_what_is_known() -> None:
    model = open_model(ModelChoice(model="ollama:m1", window=7_000))
    assert (model.window, model.takes_images) == (7_000, False)
