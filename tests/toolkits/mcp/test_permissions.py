"""Questions about calls in approval mode `ask`, and how far the answers reach."""

from pathlib import Path
from typing import Any

import pytest
from goose_like_toolkits.mcp.config import load_servers
from goose_like_toolkits.mcp.definitions import Definitions, DefinitionStore

from goose_like.core.events import Answer, Question
from goose_like.core.notifier import Recorder
from tests.toolkits.mcp.sessions import NO, ONCE, YES, listed, make_definitions, open_session, write_list

TOOLS = {"read": "Read a text.", "write": "Write a text.", "die": "End."}
SESSION = Answer(choice="allow_prefix", by="person")


class Asked(Recorder):
    """A person who answers questions about calls in one way, and accepts what servers change."""

    async def ask(self, question: Question) -> Answer:
        answer = await super().ask(question)
        return ONCE if question.kind == "trust" else answer

    def take_calls(self) -> list[str]:
        """The calls that were asked about since the last time."""
        subjects = [question.subject for question in self.questions if question.kind == "tool"]
        self.questions.clear()
        return subjects


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    write_list(root / "list.json", TOOLS)
    return root


def configure(root: Path, *names: str, definitions: Definitions | None = None) -> dict[str, Any]:
    """Configure servers with the same tools, whose lists are stored."""
    servers = {name: listed(root / "list.json", str(root / name)) for name in names}
    for server in load_servers(servers, None)[0]:
        DefinitionStore().save(server, definitions or make_definitions(TOOLS))
    return servers


async def test_each_call_is_asked_about_once(root: Path) -> None:
    person = Asked(ONCE)
    async with open_session(root, configure(root, "texts"), person=person, approval="ask") as place:
        for _ in range(2):
            assert await place.call("mcp__texts__read", text="a") == 'read {"text": "a"}'
            (question,) = person.questions
            assert question.kind == "tool"
            assert question.text == 'call mcp__texts__read with {"text":"a"}'
            assert question.prefix == "this tool"
            person.questions.clear()


async def test_a_refused_call_starts_nothing(root: Path) -> None:
    async with open_session(root, configure(root, "texts"), person=Asked(NO), approval="ask") as place:
        refused = await place.call("mcp__texts__read", text="a")
        assert refused.startswith('not allowed: call mcp__texts__read with {"text":"a"}: the person said no')
        assert not (root / "texts").exists()


async def test_an_answer_for_the_session_is_about_one_tool_of_one_server(root: Path) -> None:
    person = Asked(SESSION)
    servers = configure(root, "one", "two", "one more")
    async with open_session(root, servers, person=person, approval="ask") as place:
        names = [name for name in place.exchange.tools if name.endswith("read") or "more_" in name]
        assert len(names) == 5
        for name in names:
            await place.call(name, text="a")
        assert [subject.split()[0] for subject in person.take_calls()] == names
        for name in names:
            await place.call(name, text="b")
        await place.call("mcp__one__write", text="a")
        assert person.take_calls() == ['mcp__one__write {"text":"a"}']


async def test_an_answer_for_the_session_outlives_a_reconnect_but_no_change(root: Path) -> None:
    person = Asked(SESSION)
    async with open_session(root, configure(root, "texts"), person=person, approval="ask") as place:
        await place.call("mcp__texts__read", text="a")
        await place.call("mcp__texts__write", text="a")
        await place.call("mcp__texts__die")
        person.take_calls()
        await place.call("mcp__texts__read", text="b")
        assert person.take_calls() == []
        await place.call("mcp__texts__die")
        write_list(root / "list.json", {**TOOLS, "write": "Write and send a text."})
        await place.call("mcp__texts__read", text="c")  # it starts the server again, and the change is accepted
        assert person.take_calls() == []
        await place.call("mcp__texts__write", text="b")
        assert person.take_calls() == ['mcp__texts__write {"text":"b"}']


async def test_always_is_about_the_same_call_of_the_same_tool(root: Path) -> None:
    person = Asked(YES)
    servers = configure(root, "texts")
    async with open_session(root, servers, person=person, approval="ask") as place:
        for text in ("a", "a", "b"):
            await place.call("mcp__texts__read", text=text)
        assert person.take_calls() == ['mcp__texts__read {"text":"a"}', 'mcp__texts__read {"text":"b"}']
    async with open_session(root, servers, person=person, approval="ask") as place:
        await place.call("mcp__texts__read", text="a")
        assert person.take_calls() == []
    other = configure(root, "texts", definitions=make_definitions({**TOOLS, "read": "Read and send a text."}))
    async with open_session(root, other, person=person, approval="ask") as place:
        await place.call("mcp__texts__read", text="a")
        assert person.take_calls() == ['mcp__texts__read {"text":"a"}']
    other["texts"]["args"][-1] += "-of-another-program"
    async with open_session(root, other, person=person, approval="ask") as place:
        await place.call("call_tool", name="mcp__texts__read", arguments={"text": "a"})
        assert person.take_calls() == ['mcp__texts__read {"text":"a"}']
