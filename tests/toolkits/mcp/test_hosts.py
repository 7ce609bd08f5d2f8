"""Servers that need a host, and give up before the person has answered the question about it."""

import asyncio
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from goose_like.agent.slash_command import run_command
from goose_like.agent.slash_context import SlashContext
from goose_like.config.profile import Profile
from goose_like.core.events import Answer, Question
from goose_like.core.notifier import Recorder
from goose_like.workspace.network import proxy
from tests.toolkits.mcp.servers import FETCH, script
from tests.toolkits.mcp.sessions import NO, ONCE, open_session
from tests.workspace.workspace_harness import needs_sandbox

pytestmark = needs_sandbox

NOTE = "[the person has allowed one.test meanwhile; the server did not wait for that: call it again]"
PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


class LatePerson(Recorder):
    """A person who answers only after the server gave up."""

    def __init__(self, folder: Path, answer: Answer) -> None:
        super().__init__(answer)
        self.folder = folder

    async def ask(self, question: Question) -> Answer:
        answer = await super().ask(question)
        async with asyncio.timeout(60):
            while not (self.folder / "gave-up").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return answer


@pytest.fixture
async def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Path]:
    """A folder in a world whose hosts all serve one page."""
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "home"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(PAGE)
        await writer.drain()
        writer.close()

    async def resolve_host(host: str, port: int) -> Any:
        return [ip_address("93.184.216.34")]

    async def open_connection(address: str, port: int) -> proxy.Stream:
        return await asyncio.open_connection(*server.sockets[0].getsockname()[:2])

    monkeypatch.setattr(proxy, "resolve_host", resolve_host)
    monkeypatch.setattr(proxy, "open_connection", open_connection)
    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        yield tmp_path / "project"


@pytest.fixture
async def servers(root: Path) -> dict[str, Any]:
    """Configure the server, whose list is stored."""
    command, *arguments = script("impatient_server.py")
    servers = {"web": {"command": command, "args": arguments}}
    async with open_session(root, servers, sandbox="workspace") as place:
        await place.call("find_tools", query="fetch")
    return servers


def list_subjects(person: Recorder) -> list[str]:
    return [question.subject for question in person.questions]


async def test_the_model_learns_that_a_host_is_allowed_by_now(root: Path, servers: dict[str, Any]) -> None:
    person = LatePerson(root, ONCE)
    async with open_session(root, servers, sandbox="workspace", person=person) as place:
        failed = await place.call("mcp__web__fetch")
        assert failed.startswith("no page: ")
        assert failed.endswith(NOTE)
        assert await place.call("mcp__web__fetch") == "hello"
    assert list_subjects(person) == ["one.test"]


async def test_the_model_learns_of_a_late_refusal(root: Path, servers: dict[str, Any]) -> None:
    person = LatePerson(root, NO)
    async with open_session(root, servers, sandbox="workspace", person=person) as place:
        failed = await place.call("mcp__web__fetch")
        assert "[not allowed: connect to one.test" in failed
        assert "the person said no" in failed
        assert "call it again" not in failed


async def test_a_slash_command_asks_and_waits_for_the_answer(root: Path, servers: dict[str, Any]) -> None:
    person = LatePerson(root, ONCE)
    async with open_session(root, servers, sandbox="workspace", person=person) as place:
        commands = place.exchange.hooks.commands
        context = SlashContext(place.exchange, Profile(), commands, place.recorder.log)
        request = await run_command(commands["web:page"], context, "")
        assert request.text == "hello"
    assert list_subjects(person) == ["one.test"]


async def test_a_message_that_names_a_resource_asks_and_waits_too(root: Path, servers: dict[str, Any]) -> None:
    person = LatePerson(root, ONCE)
    async with open_session(root, servers, sandbox="workspace", person=person) as place:
        await place.run(words="look at @web:page://one, please")
        told = [message.text for message in place.exchange.history.messages if message.role == "system"]
        assert told[-1].endswith("as data]\nhello")
    assert list_subjects(person) == ["one.test"]


async def test_the_server_that_people_use_for_pages(root: Path) -> None:
    person = Recorder(ONCE)
    async with open_session(root, {"fetch": {"command": FETCH}}, sandbox="workspace", person=person) as place:
        page = await place.call("call_tool", name="mcp__fetch__fetch", arguments={"url": "http://one.test/hello"})
        assert page.endswith("Contents of http://one.test/hello:\nhello")
    assert list_subjects(person) == ["one.test"]
