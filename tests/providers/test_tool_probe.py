"""Tests of the probe: a server whose model has a habit, as models of 7B to 32B have, and a session that must work."""

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import JsonValue

from goose_like.agent.build import build_exchange
from goose_like.config.kept_values import KeptValues
from goose_like.config.profile import ModelChoice, Profile
from goose_like.core.errors import ModelUnavailableError
from goose_like.core.events import Retrying
from goose_like.core.notifier import Recorder
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.presets import load_presets
from goose_like.providers.tool_probe import KEPT_DAYS, find_kept_mode, keep_mode
from tests.loopback import Asked, Loopback, Response, called, chunk, refusal, said, sse, usage
from tests.providers.vendors import REQUEST, set_keys_only

Answer = Callable[[str, dict[str, Any]], Response]
"""What a model makes of its wish to call a tool: the name and the arguments."""


def write_fenced(name: str, arguments: dict[str, Any]) -> Response:
    return sse(said(f"I call it.\n```json\n{json.dumps({'name': name, 'arguments': arguments})}\n```"))


def write_bare(name: str, arguments: dict[str, Any]) -> Response:
    return sse(said(json.dumps({"name": name, "parameters": arguments})))


def write_tagged(name: str, arguments: dict[str, Any]) -> Response:
    return sse(said(f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"))


def call(name: str, arguments: dict[str, Any]) -> Response:
    return sse(called(("c1", name, json.dumps(arguments))))


def break_json(name: str, arguments: dict[str, Any]) -> Response:
    return sse(called(("c1", name, json.dumps(arguments).replace('"', "'"))))


def ignore_tools(name: str, arguments: dict[str, Any]) -> Response:
    return sse(said("Sure! Save this text in a file: ..."))


def refuse_tools(name: str, arguments: dict[str, Any]) -> Response:
    return refusal(400, "registry.ollama.ai/library/m1:7b does not support tools")


def refuse_key(name: str, arguments: dict[str, Any]) -> Response:
    return refusal(422, "[{'loc': ['body', 'tools'], 'msg': 'Extra inputs are not permitted'}]")


def fail_to_parse(name: str, arguments: dict[str, Any]) -> Response:
    return refusal(500, "error parsing tool call: raw='{', err=unexpected end of JSON input")


def say_nothing(name: str, arguments: dict[str, Any]) -> Response:
    return sse(said(""))


class MidSizeModel(Loopback):
    """A model that writes a file and says so. With `tools` it has a habit; without, it follows the prompt's form.

    With `ignores_schema` the server does not constrain answers, and the model keeps its habit.
    """

    def __init__(self, habit: Answer, *, ignores_schema: bool = False) -> None:
        super().__init__([])
        self._habit = habit
        self._ignores_schema = ignores_schema

    def _response(self, asked: Asked) -> Response:
        self.requests.append(asked)
        body = asked.json
        names = [tool["function"]["name"] for tool in body.get("tools", ())]
        if names == ["note"]:
            return self._habit("note", {"text": "ready"})
        text = json.dumps(body["messages"])
        is_done = "created a.txt" in text
        if is_done and names:
            return sse(said("It is there."))
        if is_done:
            return sse(said('{"tool": "finish", "arguments": {"answer": "It is there."}}'))
        wanted = {"path": "a.txt", "content": "hello"}
        if names or self._ignores_schema:
            return self._habit("write_file", wanted)
        assert body["response_format"]["type"] == "json_schema"
        return sse(said(json.dumps({"tool": "write_file", "arguments": wanted})))

    @property
    def probes(self) -> int:
        return sum(b'"note"' in asked.body and b'"write_file"' not in asked.body for asked in self.requests)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def work(server: Loopback, folder: Path, **choice: Any) -> list[str]:
    """Let the model write its file. Return the lines that the person sees."""
    recorder = Recorder()
    chosen = ModelChoice(model="vllm:m1-7b", base_url=server.base_url, **choice)
    async with build_exchange(Profile(processor=chosen, sandbox="full"), recorder) as exchange:
        assert (await exchange.reply("write hello into a.txt")).reason == "stop"
        assert exchange.history.messages[-1].text == "It is there."
    assert (folder / "a.txt").read_text() == "hello"
    (folder / "a.txt").unlink()
    return [event.text for event in recorder.events if isinstance(event, Retrying)]


@pytest.mark.parametrize("habit", [call, write_tagged])
async def test_calls_that_can_be_read_stay_native(habit: Answer, folder: Path) -> None:
    async with MidSizeModel(habit) as server:
        assert await work(server, folder) == []
        assert await work(server, folder) == []
        assert server.probes == 1
        assert all("tools" in asked.json for asked in server.requests)


HABITS = (write_fenced, write_bare, break_json, ignore_tools, refuse_tools, refuse_key, fail_to_parse, say_nothing)


@pytest.mark.parametrize("habit", HABITS)
async def test_other_calls_become_json_after_one_probe(habit: Answer, folder: Path) -> None:
    async with MidSizeModel(habit) as server:
        (line,) = await work(server, folder)
        assert await work(server, folder) == []  # a new session remembers it
        assert server.probes == 1
        assert sum("tools" in asked.json for asked in server.requests) == 1
    assert "answers in JSON (`tools: constrained`)" in line


@pytest.mark.parametrize("habit", [write_fenced, write_bare])
async def test_a_server_without_schemas_and_a_model_with_a_trained_form(habit: Answer, folder: Path) -> None:
    async with MidSizeModel(habit, ignores_schema=True) as server:
        assert len(await work(server, folder)) == 1


@pytest.mark.parametrize(("tools", "keys"), [("native", {"tools"}), ("constrained", {"response_format"})])
async def test_a_profile_that_decides_needs_no_probe(tools: Any, keys: set[str], folder: Path) -> None:
    async with MidSizeModel(call) as server:
        assert await work(server, folder, tools=tools) == []
        assert server.probes == 0
        assert all(keys <= asked.json.keys() for asked in server.requests)


async def stream_once(server: Loopback, provider_class: type[OpenAIProvider], request: Any = REQUEST) -> list[str]:
    provider = provider_class(ModelChoice(model="p:m1", base_url=server.base_url))
    deltas = [delta async for delta in provider.stream(request)]
    await provider.close()
    return [delta.text for delta in deltas if isinstance(delta, Retrying)]


def list_hosted() -> list[str]:
    return [name for name, preset in load_presets().items() if not preset.is_free and preset.wire == "chat"]


async def test_hosted_services_and_gateways_get_no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)
    presets = load_presets()
    classes = [OpenAIProvider, *(OpenAIProvider.for_preset(presets[name]) for name in list_hosted())]
    assert len(classes) > 6
    for provider_class in classes:
        if provider_class.info.key_variable:
            monkeypatch.setenv(provider_class.info.key_variable, "sk-1234567890")
        async with Loopback([sse(said("fine"))]) as server:
            await stream_once(server, provider_class)
            assert len(server.requests) == 1, provider_class.info.summary


async def test_a_request_without_tools_needs_no_probe() -> None:
    vllm = OpenAIProvider.for_preset(load_presets()["vllm"])
    async with Loopback([sse(said("fine"))]) as server:
        await stream_once(server, vllm, request=type(REQUEST)("m1", "", REQUEST.messages))
        assert len(server.requests) == 1


async def test_a_model_that_still_thinks_stays_native() -> None:
    thinking = [chunk({"reasoning_content": "hm"}), chunk(finish="length"), usage()]
    vllm = OpenAIProvider.for_preset(load_presets()["vllm"])
    async with Loopback([sse(thinking), sse(said("fine"))]) as server:
        assert await stream_once(server, vllm) == []
        assert "tools" in server.requests[1].json


async def test_an_unreachable_server_is_the_error_of_the_request_and_nothing_is_kept() -> None:
    vllm = OpenAIProvider.for_preset(load_presets()["vllm"])
    async with Loopback([refusal(503, "Loading model")]) as server:
        with pytest.raises(ModelUnavailableError, match="Loading model"):
            await stream_once(server, vllm)
        assert find_kept_mode(urlsplit(server.base_url), "m1") is None


def test_what_is_kept_ends_after_some_days_and_names_no_password(home: Path) -> None:
    url = urlsplit("http://ann:secret@box:8000/v1")
    keep_mode(url, "m1", "constrained")
    keep_mode(url, "m2", "native")
    assert (find_kept_mode(url, "m1"), find_kept_mode(url, "m2")) == ("constrained", "native")
    assert find_kept_mode(urlsplit("http://box:8001/v1"), "m1") is None
    file = home / "state/kept/tool_calls.json"
    assert "secret" not in file.read_text()
    old = date.today() - timedelta(days=KEPT_DAYS)
    file.write_text(file.read_text().replace(date.today().isoformat(), old.isoformat()))
    assert find_kept_mode(url, "m1") is None


@pytest.mark.parametrize("kept", [1, [], {"m1": {"mode": 1, "day": 2}}, {"m1": None}])
def test_a_damaged_result_is_no_result(kept: JsonValue, home: Path) -> None:
    url = urlsplit("http://box:8000/v1")
    values = KeptValues("tool_calls")
    values.put("box:8000/v1", kept)
    values.save()
    assert (home / "state/kept/tool_calls.json").exists()
    assert find_kept_mode(url, "m1") is None
    keep_mode(url, "m1", "native")
    assert find_kept_mode(url, "m1") == "native"


async def test_a_check_of_the_provider_makes_the_next_session_ask_anew() -> None:
    vllm = OpenAIProvider.for_preset(load_presets()["vllm"])
    async with Loopback([refusal(404)]) as server:
        url = urlsplit(server.base_url)
        keep_mode(url, "m1", "constrained")
        with pytest.raises(ModelUnavailableError):
            await vllm.probe(ModelChoice(model="vllm:m1", base_url=server.base_url))
        assert find_kept_mode(url, "m1") == "constrained"
        body = b'{"data": []}'
        server.play(Response(200, {"content-type": "application/json", "content-length": str(len(body))}, [body]))
        await vllm.probe(ModelChoice(model="vllm:m1", base_url=server.base_url))
        assert find_kept_mode(url, "m1") is None
