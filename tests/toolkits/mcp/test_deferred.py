"""Tools beyond the budget, which the model's own server searches, in whole sessions."""

import io
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.agent.slash_command import run_command
from goose_like.agent.slash_context import SlashContext
from goose_like.cli.chat.slash_commands import toolkits
from goose_like.config.profile import ModelChoice, Profile
from goose_like.core.notifier import Recorder
from goose_like.providers.anthropic import AnthropicProvider
from goose_like.providers.base import Model, ModelPair
from goose_like.providers.openai import OpenAIProvider
from goose_like.sessions.session import Session
from tests.anthropic_server import AnthropicServer, Step
from tests.providers.test_server_compaction import OwnAnthropic
from tests.providers.vendors import set_keys_only
from tests.responses_server import ResponsesServer
from tests.toolkits.mcp.sessions import Answers, listed, make_definitions, write_list
from tests.toolkits.mcp.test_toolkit import store

MANY = {f"tool_{number}": f"Do the thing with the number {number}. {'It is described. ' * 20}" for number in range(150)}
SEARCHED: Step = {"search": ["mcp__many__tool_42"], "call": ("mcp__many__tool_42", {"text": "a"})}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "home"))
    set_keys_only(monkeypatch)


@pytest.fixture
def servers(tmp_path: Path) -> dict[str, Any]:
    """A server with 150 tools that is known."""
    root = tmp_path / "project"
    root.mkdir()
    write_list(root / "list.json", MANY)
    many = {"many": listed(root / "list.json")}
    store(many, make_definitions(MANY))
    return many


def open_model(server: AnthropicServer, kind: type[AnthropicProvider] = OwnAnthropic) -> ModelPair:
    """Open Claude, for which the server is Anthropic's own, or one at another host."""
    name = "claude-opus-5-5"
    label = f"anthropic:{name}"
    base_url = server.base_url
    if kind is not OwnAnthropic:
        base_url = base_url.replace("127.0.0.1", "localhost")
    provider = kind(ModelChoice(model=label, base_url=base_url))
    model = Model(provider, name, label)
    return ModelPair(model, model)


@asynccontextmanager
async def open_session(
    tmp_path: Path,
    servers: dict[str, Any],
    models: ModelPair,
    session: Session | None = None,
    person: Recorder | None = None,
    **profile: Any,
) -> AsyncIterator[Exchange]:
    toolkit = {"name": "mcp", "config": servers}
    chosen = Profile.model_validate({"name": "mine", "toolkits": [toolkit], "sandbox": "full", **profile})
    async with AsyncExitStack() as stack:
        for provider in models.providers:
            stack.push_async_callback(provider.close)
        recorder = person or Answers()
        exchange = build_exchange(chosen, recorder, models=models, session=session, folder=tmp_path / "project")
        yield await stack.enter_async_context(exchange)


def list_results(exchange: Exchange) -> list[str]:
    return [result.output for message in exchange.history.messages for result in message.tool_results]


def list_names(body: dict[str, Any], *, is_deferred: bool) -> list[str]:
    return [tool["name"] for tool in body["tools"] if bool(tool.get("defer_loading")) == is_deferred]


def find_blocks(body: dict[str, Any], kind: str) -> list[Any]:
    return [block for message in body["messages"] for block in message["content"] if block["type"] == kind]


async def test_the_server_of_the_model_searches_and_the_found_tool_runs(
    tmp_path: Path, servers: dict[str, Any]
) -> None:
    async with AnthropicServer([SEARCHED, {"say": "done"}, {"say": "more"}]) as server:
        async with open_session(tmp_path, servers, open_model(server)) as exchange:
            await exchange.reply("do the thing with 42")
            await exchange.reply("and now?")
            results = list_results(exchange)
        bodies = [asked.json for asked in server.requests]
        assert server.problems == []
    assert results == ['tool_42 {"text": "a"}']
    assert list_names(bodies[0], is_deferred=False) == ["tool_search_tool_bm25"]
    assert list_names(bodies[0], is_deferred=True) == [f"mcp__many__{name}" for name in MANY]
    # The server binds its thinking to all that was sent before, so that the search came back as it was.
    assert len(find_blocks(bodies[2], "tool_search_tool_result")) == 1
    assert len(find_blocks(bodies[2], "thinking")) == 2
    prefix = server.requests[0].body.partition(b'"messages":')[0]
    assert [asked.body.startswith(prefix) for asked in server.requests] == [True] * 3


async def test_another_model_gets_find_tools_and_no_search(tmp_path: Path, servers: dict[str, Any]) -> None:
    found = {"call": ("find_tools", {"query": "tool_7"})}
    called = {"call": ("call_tool", {"name": "mcp__many__tool_7"})}
    async with (
        AnthropicServer([SEARCHED, {"say": "done"}]) as server,
        AnthropicServer([{"say": "hello"}, found, called, {"say": "done"}]) as other,
    ):
        async with open_session(tmp_path, servers, open_model(server)) as exchange:
            await exchange.reply("do the thing with 42")
            changed = replace(exchange, models=open_model(other, AnthropicProvider))
            await changed.reply("hello")  # so that the ids of calls differ
            await changed.reply("and with 7")
            results = list_results(exchange)
            again = replace(exchange, models=open_model(server))
            await again.reply("and once more")
            for each in (changed, again):
                await each.models.processor.provider.close()
        assert server.problems == other.problems == []
        first = other.requests[0].json
        last = server.requests[-1].json
    assert results[0] == 'tool_42 {"text": "a"}'
    assert json.loads(results[1])["name"] == "mcp__many__tool_7"
    assert results[2] == "tool_7 {}"
    assert (list_names(first, is_deferred=False), list_names(first, is_deferred=True)) == (
        ["find_tools", "call_tool"],
        [],
    )
    assert find_blocks(first, "server_tool_use") == []
    assert last["tools"] == server.requests[0].json["tools"]


async def test_a_resumed_session_keeps_its_tools(tmp_path: Path, servers: dict[str, Any]) -> None:
    async with AnthropicServer([SEARCHED, {"say": "done"}, {"say": "more"}]) as server:
        session = Session.create("mine")
        async with open_session(tmp_path, servers, open_model(server), session) as exchange:
            await exchange.reply("do the thing with 42")
        session.close()
        session = Session.resume("mine")
        async with open_session(tmp_path, servers, open_model(server, AnthropicProvider), session) as exchange:
            assert "mcp__many__tool_42" in exchange.tools  # another model, and the prompt stays
            changed = replace(exchange, models=open_model(server))
            await changed.reply("and now?")
            await changed.models.processor.provider.close()
            assert "cannot be used" not in "".join(message.text for message in exchange.history.messages)
        session.close()
        assert server.problems == []
    prefix = server.requests[0].body.partition(b'"messages":')[0]
    assert server.requests[-1].body.startswith(prefix)


async def test_rules_and_permissions_hold_for_a_deferred_tool(tmp_path: Path, servers: dict[str, Any]) -> None:
    person = Answers()
    permissions = {"deny": ["tool:mcp__many__tool_1*"]}
    async with AnthropicServer([SEARCHED, {"say": "it was denied"}]) as server:
        models = open_model(server)
        async with open_session(
            tmp_path, servers, models, person=person, approval="ask", permissions=permissions
        ) as exchange:
            await exchange.reply("do the thing with 42")
            (result,) = list_results(exchange)
        body = server.requests[0].json
    assert "the person said no" in result
    assert [question.kind for question in person.questions] == ["tool"]
    assert not [name for name in list_names(body, is_deferred=True) if name.startswith("mcp__many__tool_1")]


async def test_mcp_tells_how_many_tools_are_deferred(tmp_path: Path, servers: dict[str, Any]) -> None:
    shown: list[Any] = []
    async with AnthropicServer([]) as server, open_session(tmp_path, servers, open_model(server)) as exchange:
        commands = exchange.hooks.commands
        context = SlashContext(exchange, Profile(), commands, shown.append)
        await run_command(commands["mcp"], context, "")
        toolkits(context, "")
    console = Console(width=120, file=io.StringIO())
    console.print(*shown)
    text = console.file.getvalue()
    assert "many  not started  150 tools  deferred" in text
    assert "150 tools deferred: the model's server searches them, or find_tools with another model" in text
    assert "and 150 deferred tools, which the model's server searches" in text
    assert "mcp__many__tool_42" not in text


async def test_servers_that_may_list_more_keep_find_tools(tmp_path: Path, servers: dict[str, Any]) -> None:
    more = {**servers, "new": {"command": "new"}}
    async with AnthropicServer([]) as server, open_session(tmp_path, more, open_model(server)) as exchange:
        tools = [tool.spec for tool in exchange.tools.values()]
    assert [(tool.name, tool.native) for tool in tools[:2]] == [("find_tools", ""), ("call_tool", "")]
    assert {tool.deferred_group for tool in tools[2:]} == {"many"}


# --- OpenAI


def open_gpt(server: ResponsesServer) -> ModelPair:
    name = "gpt-6-sol"
    provider = OpenAIProvider(ModelChoice(model=f"openai:{name}", base_url=server.base_url, wire="responses"))
    model = Model(provider, name, f"openai:{name}")
    return ModelPair(model, model)


async def test_the_server_of_openai_searches_and_the_found_tool_runs(tmp_path: Path, servers: dict[str, Any]) -> None:
    again = {"call": ("mcp__many__tool_42", {"text": "b"})}
    async with ResponsesServer([SEARCHED, {"say": "done"}, again, {"say": "more"}]) as server:
        async with open_session(tmp_path, servers, open_gpt(server)) as exchange:
            await exchange.reply("do the thing with 42")
            await exchange.reply("and again")
            results = list_results(exchange)
        bodies = [asked.json for asked in server.requests]
        assert server.problems == []
    assert results == ['tool_42 {"text": "a"}', 'tool_42 {"text": "b"}']
    assert [tool["type"] for tool in bodies[0]["tools"]] == ["tool_search"] + ["namespace"] * 15
    for earlier, later in itertools.pairwise(server.requests):
        assert later.body.startswith(earlier.body.removesuffix(b"]}"))


async def test_a_session_goes_from_one_vendor_to_the_other(tmp_path: Path, servers: dict[str, Any]) -> None:
    async with (
        AnthropicServer([SEARCHED, {"say": "done"}, {"say": "hello"}]) as server,
        ResponsesServer(
            [{"say": "hello"}, {"search": ["mcp__many__tool_7"], "call": ("mcp__many__tool_7", {})}]
        ) as other,
    ):
        async with open_session(tmp_path, servers, open_model(server)) as exchange:
            await exchange.reply("do the thing with 42")
            changed = replace(exchange, models=open_gpt(other))
            await changed.reply("hello")
            await changed.reply("and with 7")
            await exchange.reply("and back")
            await changed.models.processor.provider.close()
            results = list_results(exchange)
        assert server.problems == other.problems == []
    assert results == ['tool_42 {"text": "a"}', "tool_7 {}"]
