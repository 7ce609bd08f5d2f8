"""Tests of delegated tasks: sessions, limits, tokens, questions and permissions."""

import asyncio
import fcntl
import json
import os
import socket
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
from goose_like_toolkits.delegate import DelegateToolkit
from hypothesis import given, settings
from hypothesis import strategies as st

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.agent.subagent import EventRelay
from goose_like.config import trust
from goose_like.config.profile import ApprovalMode, Limits, Profile, SandboxMode, ToolkitChoice
from goose_like.core.errors import DeniedError, ProfileError, ProviderError
from goose_like.core.events import (
    Answer,
    Asked,
    Logged,
    MessageCompleted,
    PermissionKind,
    Question,
    SessionStarted,
    Status,
    SubagentEvent,
    TurnFinished,
    UsageRecorded,
)
from goose_like.core.history import History
from goose_like.core.message import ToolResult, Usage
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Delta, Model, ModelPair, Request
from goose_like.sessions.index import find_session, list_subagent_sessions
from goose_like.sessions.session import Session
from goose_like.testing import trial
from goose_like.workspace.sandbox import bubblewrap
from goose_like.workspace.workspace import Workspace
from tests.fakes import PAUSE, FakeProvider, call, calls
from tests.loopback import Loopback, raw
from tests.processes import is_alive

NO = Answer(choice="deny", by="person")
ONCE = Answer(choice="allow", by="person")
SESSION = Answer(choice="allow_prefix", by="person")

needs_sandbox = pytest.mark.skipif(
    bubblewrap.find_sandbox_problem() is not None, reason=str(bubblewrap.find_sandbox_problem())
)


class Cast(FakeProvider):
    """A fake provider with a script for each conversation, chosen by its first message."""

    def __init__(self, scripts: Mapping[str, Any]) -> None:
        super().__init__()
        self.scripts = {words: list(script) for words, script in scripts.items()}

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        self.script = next(self.scripts[said.text] for said in request.messages if said.text in self.scripts)
        async for delta in super().stream(request):
            yield delta


class Place:
    """A turn with delegated tasks and its results."""

    def __init__(self, exchange: Exchange, recorder: Recorder, provider: Cast) -> None:
        self.exchange, self.recorder, self.provider = exchange, recorder, provider
        self.root = exchange.workspace.root

    async def reply(self, words: str = "go") -> TurnFinished:
        return await self.exchange.reply(words)

    @property
    def results(self) -> dict[str, ToolResult]:
        return {result.call_id: result for message in self.exchange.history.messages for result in message.tool_results}

    def events(self, kind: type) -> list[Any]:
        return [event for event in self.recorder.events if isinstance(event, kind)]

    def first_results(self, *ids: str) -> tuple[ToolResult, ...]:
        """Return the results of the first calls in a subagent's session."""
        messages = self.nested(*ids).history.messages
        return next(message.tool_results for message in messages if message.tool_results)

    def nested(self, *ids: str) -> Session:
        """Open the session of a subagent."""
        folder = self.exchange.session.folder
        for id in ids:
            folder = folder / "subagents" / id
        session = Session(folder, "n", History())
        session._open(is_new=False)
        session.history = History.replay(session.read_events())
        return session


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@asynccontextmanager
async def open_exchange(
    scripts: Mapping[str, Any],
    *,
    config: Mapping[str, Any] | None = None,
    answer: Answer = NO,
    limits: Limits | None = None,
    developer: Mapping[str, Any] | None = None,
    **profile: Any,
) -> AsyncIterator[Place]:
    provider, recorder, session = Cast(scripts), Recorder(answer), Session.create("here")
    model = Model(provider, "x", "scripted:x")
    toolkits = (
        ToolkitChoice(name="developer", config={"hints": False, "news": False, **(developer or {})}),
        ToolkitChoice(name="delegate", config=dict(config or {})),
    )
    kept = Profile.model_validate({"name": "mine", "toolkits": toolkits, "sandbox": "full", **profile})
    try:
        async with build_exchange(
            kept, recorder, session=session, limits=limits, models=ModelPair(model, model)
        ) as exchange:
            yield Place(exchange, recorder, provider)
    finally:
        session.close()


def read_files(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.iterdir()}


def delegate(task: str, id: str = "d1", **arguments: object) -> Any:
    return call("delegate", json.dumps({"task": task, **arguments}), id=id)


def shell(command: str, id: str = "c1", access: str = "workspace") -> Any:
    return call("shell", f'{{"command": "{command}", "access": "{access}"}}', id=id)


def write(path: str, content: str = "x", id: str = "w1") -> Any:
    return call("write_file", f'{{"path": "{path}", "content": "{content}"}}', id=id)


ONE_CALL = {"go": [calls(delegate("help")), "Fine."], "help": [calls(shell("echo one")), "Done."]}


async def wait_until(is_so: Any) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


# --- what comes of it


async def test_the_model_reads_the_answer_and_what_it_took(root: Path) -> None:
    helper = [calls(shell("echo one", id="d1"), write("new.txt")), "It is done."]  # an id that its parent has as well
    async with open_exchange({"go": [calls(delegate("help")), "Fine."], "help": helper}) as place:
        assert (await place.reply()).reason == "stop"
        result = place.results["d1"]
        assert (result.output, result.is_error) == (
            "It is done.\n[took 2 steps, 2 calls, 15 tokens; wrote new.txt]",
            False,
        )
        assert place.exchange.history.messages[-1].text == "Fine."
        (first, *_) = [request for request in place.provider.requests if request.messages[0].text == "help"]
        assert len(first.messages) == 1  # nothing of its parent's conversation
        assert "delegate" not in [tool.name for tool in first.tools]
        names = [tool.name for tool in first.tools]
        assert names == [name for name in place.exchange.tools if name not in ("delegate", "ask_user")]


async def test_it_has_a_session_of_its_own_which_is_found_from_the_parents(root: Path) -> None:
    async with open_exchange(ONE_CALL) as place:
        await place.reply()
        nested, folder = place.nested("d1"), place.exchange.session.folder
        assert [message.role for message in nested.history.messages] == ["user", "assistant", "tool", "assistant"]
        assert nested.history.last_turn == TurnFinished(reason="stop")
        assert place.events(Logged) == []
        assert History.replay(Session.read_events(place.exchange.session)) == place.exchange.history
        (listed,) = list_subagent_sessions(find_session("here"))
        assert (listed.first_words, listed.folder) == ("help", folder / "subagents/d1")
        assert not (folder / "subagents/d1/undo").exists()


async def test_each_event_is_told_as_nested_and_as_nothing_else(root: Path) -> None:
    async with open_exchange(ONE_CALL) as place:
        await place.reply()
        events = place.events(SubagentEvent)
        assert {event.call_id for event in events} == {"d1"}
        kinds = [event.event.type for event in events]
        assert [kinds[0], kinds[-1]] == ["session_started", "turn_finished"]
        assert {"tool_started", "tool_finished", "message_completed", "turn_started"} <= set(kinds)
        assert [event.message.text for event in place.events(MessageCompleted)] == ["", "Fine."]


async def test_tokens_count_as_the_parents(root: Path) -> None:
    async with open_exchange(ONE_CALL) as place:
        await place.reply()
        usage = Usage(input_tokens=10, output_tokens=5)
        spent = UsageRecorded(model="scripted:x", usage=usage, purpose="delegate", steps=1)
        assert place.events(UsageRecorded)[0] == spent
        assert place.exchange.history.usage.turn_by_model == {"scripted:x": Usage(input_tokens=20, output_tokens=10)}


@needs_sandbox
async def test_read_only_ones_work_side_by_side_and_change_nothing(root: Path) -> None:
    """Each delegate waits for a file of another one."""
    wait = "until test -e /tmp/{}; do sleep 0.01; done"
    readers = [delegate(name, f"d{name}", read_only=True) for name in "abc"]
    scripts = {
        "go": [calls(*readers), "Fine."],
        "a": [calls(shell(wait.format("b"))), "A."],
        "b": [calls(shell(wait.format("c") + "; touch /tmp/b")), "B."],
        "c": [calls(shell("touch /tmp/c; touch here"), write("there")), "C."],
    }
    async with open_exchange(scripts, sandbox="workspace") as place:
        await place.reply()
        assert [result.output[:2] for result in place.results.values()] == ["A.", "B.", "C."]
        assert len(list_subagent_sessions(find_session("here"))) == 3
        touched, written = place.first_results("dc")
        assert "Read-only file system" in touched.output
        assert written.is_error
    assert read_files(root) == {}


@needs_sandbox
async def test_those_that_write_work_side_by_side_and_the_next_call_waits(repository: Path) -> None:
    """Each delegate waits for the file of the other one."""
    step = "touch {0} /tmp/{0}; until test -e /tmp/{1}; do sleep 0.01; done"
    scripts = {
        "go": [calls(delegate("a", "d1"), delegate("b", "d2"), shell("ls ?", id="c9")), "Fine."],
        "a": [calls(shell(step.format("a", "b"))), "A."],
        "b": [calls(shell(step.format("b", "a"))), "B."],
    }
    async with open_exchange(scripts, sandbox="workspace") as place:
        await place.reply()
        assert place.results["c9"].output == "a\nb"


@needs_sandbox
async def test_the_next_delegate_may_read_what_another_left_in_tmp(root: Path) -> None:
    scripts = {
        "go": [
            calls(shell("echo parent > /tmp/p")),
            calls(delegate("a")),
            calls(shell("cat /tmp/a", id="c2")),
            "Fine.",
        ],
        "a": [calls(shell("cat /tmp/p; echo nested > /tmp/a")), "A."],
    }
    async with open_exchange(scripts, sandbox="workspace") as place:
        await place.reply()
        assert place.first_results("d1")[0].output.splitlines()[0] == "parent"
        assert place.results["c2"].output == "nested"


async def test_what_its_toolkits_tell_while_they_are_made_is_in_its_session(root: Path) -> None:
    (root / "AGENTS.md").write_text("Be brief.")
    async with open_exchange(ONE_CALL, developer={"hints": True}) as place:
        await place.reply()
        logged = [event.text for event in place.nested("d1").read_events() if isinstance(event, Logged)]
        assert logged == [f"hints from {root}/AGENTS.md"]


# --- what fails


async def test_a_limit_ends_it_with_what_was_done_so_far(root: Path) -> None:
    helper = [calls(write("one.txt"), text="I begin."), calls(shell("true"))]
    scripts = {"go": [calls(delegate("help")), "Fine."], "help": helper}
    async with open_exchange(scripts, config={"limits": {"steps": 1}}) as place:
        assert (await place.reply()).reason == "stop"
        result = place.results["d1"]
        assert result.is_error
        assert "the delegate did not finish (step limit)" in result.output
        assert "I begin.\n[the limit of 1 step]\n[took 1 step, 1 call, 15 tokens; wrote one.txt]" in result.output


async def test_a_provider_that_refuses(root: Path) -> None:
    scripts = {"go": [calls(delegate("help")), "Fine."], "help": [calls(shell("true")), ProviderError("no more today")]}
    async with open_exchange(scripts) as place:
        assert (await place.reply()).reason == "stop"
        assert "did not finish (error)" in place.results["d1"].output
        assert "no more today" in place.results["d1"].output
        assert [event.usage.total_tokens for event in place.events(UsageRecorded)] == [15]


@needs_sandbox
async def test_what_nobody_could_allow_is_told_to_the_model_and_by_the_exit_code(root: Path) -> None:
    scripts = {
        "go": [calls(delegate("help")), "Fine."],
        "help": [calls(shell("true", access="network")), "It was denied."],
    }
    async with open_exchange(scripts, sandbox="workspace", answer=Answer()) as place:
        assert (await place.reply()).exit_code == 6
        output = place.results["d1"].output
        denied = "network: true (allowed by: sandbox workspace+network)"
        assert output.startswith(f"It was denied.\n[denied, as nobody could be asked: {denied}]\n")


async def test_cancelling_stops_it_and_all_that_it_started(root: Path) -> None:
    command = "echo $BASHPID > pid; (exec -a sleeper sleep 600) & echo $! >> pid; wait"
    scripts = {"go": [calls(delegate("help"))], "help": [calls(shell(command)), "Never."]}
    async with open_exchange(scripts) as place:
        turn = asyncio.create_task(place.reply())
        await wait_until(lambda: (root / "pid").exists() and len((root / "pid").read_text().split()) == 2)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert [is_alive(int(pid)) for pid in (root / "pid").read_text().split()] == [False, False]
        assert place.events(TurnFinished)[-1].reason == "cancelled"
        nested = place.nested("d1").history
        assert nested.last_turn is not None
        assert nested.last_turn.reason == "cancelled"
        assert "interrupted" in nested.messages[-1].tool_results[0].output
        assert "interrupted" in place.results["d1"].output
        assert [event.usage.total_tokens for event in place.events(UsageRecorded)] == [15]


async def test_one_that_never_began_leaves_nothing(root: Path, home: Path) -> None:
    write_profiles(home, "broken: {processor: 'scripted:nowhere.yaml'}")
    async with open_exchange({"go": [calls(delegate("help")), "Fine."]}, config={"profiles": ["broken"]}) as place:
        await place.reply()
        assert place.results["d1"].is_error
        assert "there is no script 'nowhere.yaml'" in place.results["d1"].output
        assert place.events(Logged) == []
        assert not list(place.exchange.session.folder.glob("nested/*"))


async def test_cancelling_while_its_model_speaks(root: Path) -> None:
    scripts = {"go": [calls(delegate("help"))], "help": [[PAUSE]]}
    async with open_exchange(scripts) as place:
        turn = asyncio.create_task(place.reply())
        await wait_until(lambda: len(place.provider.requests) == 2)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert place.provider.streams_closed == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"task": "  "}, "the task is empty"), ({"task": "x", "profile": "mien"}, "did you mean 'mine'")],
)
async def test_a_call_that_makes_no_sense(root: Path, arguments: dict[str, str], words: str) -> None:
    async with open_exchange({"go": [calls(delegate(**arguments)), "Fine."]}) as place:
        await place.reply()
        assert words in place.results["d1"].output
        assert not (place.exchange.session.folder / "nested").exists()


# --- limits


LARGE_STEP = Usage(input_tokens=9_000, output_tokens=1_000)


async def test_it_draws_from_the_parents_budget_and_the_parent_ends_with_it(root: Path) -> None:
    scripts = {"go": [calls(delegate("help"))], "help": [calls(shell("true", id=str(n))) for n in range(9)]}
    async with open_exchange(scripts, limits=Limits(tokens=35_000)) as place:
        place.provider.usage = LARGE_STEP
        end = await place.reply()
        assert "the limit of 35,000 tokens; 30,000 are used, and the next request" in place.results["d1"].output
        assert (end.reason, end.exit_code) == ("budget", 5)
        assert len(place.provider.requests) == 3


async def test_a_hundred_side_by_side_and_one_of_them_deeper_share_the_budget(root: Path) -> None:
    """Each turn of a delegate is endless, and each step takes 10,000 tokens."""
    endless = [calls(shell("true", id=str(n))) for n in range(9)]
    many = [delegate(f"a{number}", f"d{number}", read_only=True) for number in range(99)]
    scripts: dict[str, Any] = {f"a{number}": list(endless) for number in range(99)}
    scripts["go"] = [calls(delegate("outer", "deep"), *many)]
    scripts["outer"] = [calls(delegate("inner", "d1"))]
    scripts["inner"] = endless
    config = {"depth": 2, "parallel": 8}
    async with open_exchange(scripts, config=config, limits=Limits(tokens=200_000, steps=1_000)) as place:
        place.provider.usage = LARGE_STEP
        end = await place.reply()
        assert (end.reason, end.exit_code) == ("budget", 5)
        assert len(place.results) == 100
        assert 150_000 < place.exchange.history.usage.turn_total.total_tokens <= 201_000
        # A budget may be exceeded by one answer: there are 20 requests, and seldom 21.
        assert len(place.provider.requests) <= 21


async def test_steps_of_delegates_are_steps_of_the_turn(root: Path) -> None:
    endless = [calls(shell("true", id=str(n))) for n in range(9)]
    scripts = {"go": [calls(delegate("a", "d1"), delegate("b", "d2"))], "a": endless, "b": endless}
    async with open_exchange(scripts, limits=Limits(steps=8)) as place:
        assert (await place.reply()).exit_code == 3
        assert len(place.provider.requests) == 8


async def test_where_nothing_is_left_nothing_begins(root: Path) -> None:
    scripts = {"go": [calls(delegate("help")), "Fine."]}
    async with open_exchange(scripts, limits=Limits(steps=1)) as place:
        assert (await place.reply()).reason == "step_limit"
        assert "nothing is left of this turn: the limit of 1 step" in place.results["d1"].output


async def test_a_price_that_is_not_known_keeps_no_limit(root: Path) -> None:
    scripts = {"go": [calls(delegate("help")), "Fine."], "help": ["Done."]}
    async with open_exchange(scripts, limits=Limits(cost_usd=1.0), config={"limits": {"cost_usd": 0.5}}) as place:
        assert (await place.reply()).reason == "stop"
        assert place.results["d1"].output.startswith("Done.")


# --- profiles and toolkits


def write_profiles(home: Path, text: str) -> None:
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config/profiles.yaml").write_text(text)


@needs_sandbox
async def test_a_named_profile_narrows(root: Path, home: Path) -> None:
    write_profiles(home, "looker: {extends: reviewer}\nsecond: {extends: default}\n")
    scripts = {
        "go": [calls(delegate("help", profile="looker"), delegate("more", "d2", profile="second")), "Fine."],
        "help": [calls(shell("echo x > new.txt"), write("new.txt")), "No."],
        "more": [calls(write("other.txt")), "Yes."],
    }
    config = {"profiles": ["looker", "second"]}
    async with open_exchange(scripts, config=config, sandbox="workspace") as place:
        assert "one of: second" in place.exchange.system
        assert "Helpers, by `profile`: looker, second." in place.exchange.tools["delegate"].spec.description
        await place.reply()
        assert place.results["d1"].output.startswith("No.")
        command, file = place.first_results("d1")
        assert "Read-only file system" in command.output
        assert "no tool 'write_file'" in file.output
        assert read_files(root) == {"other.txt": "x"}


async def test_a_profile_has_its_own_model(root: Path, home: Path, tmp_path: Path) -> None:
    script = tmp_path / "cheap.yaml"
    script.write_text("- {text: cheaply, usage: {input: 7, output: 2}}")
    write_profiles(home, f"cheap: {{processor: 'scripted:{script}', toolkits: [developer]}}")
    scripts = {"go": [calls(delegate("help")), "Fine."]}
    async with open_exchange(scripts, config={"profiles": ["cheap"]}) as place:
        await place.reply()
        assert place.results["d1"].output.startswith("cheaply")
        (spent,) = place.events(UsageRecorded)
        assert (spent.model, spent.usage.total_tokens) == (f"scripted:{script}", 9)


async def test_what_a_project_brings_counts_only_when_it_is_trusted(root: Path) -> None:
    (root / ".goose-like").mkdir()
    (root / ".goose-like/profiles.yaml").write_text("theirs: {toolkits: [developer]}")
    with pytest.raises(ProfileError, match="unknown profile 'theirs'") as caught:
        async with open_exchange({}, config={"profiles": ["theirs"]}):
            pass
    assert caught.value.path == ("toolkits", 1, "config", "profiles", 0)
    project = trust.read_project_config(root)
    assert project
    trust.trust_project(project)
    async with open_exchange(
        {"go": [calls(delegate("help")), "Fine."], "help": ["Done."]}, config={"profiles": ["theirs"]}
    ) as place:
        await place.reply()
        assert place.results["d1"].output.startswith("Done.")


@pytest.mark.parametrize(
    ("config", "words", "path"),
    [
        ({"dept": 2}, "no 'dept'; did you mean 'depth'", ("config", "dept")),
        ({"depth": 0}, "depth: Input should be greater than or equal to 1, not 0", ("config", "depth")),
        ({"limits": {"step": 2}}, "no 'step'; did you mean 'steps'", ("config", "limits", "step")),
        ({"profiles": ["defalt"]}, "did you mean 'default'", ("config", "profiles", 0)),
    ],
)
async def test_a_config_that_makes_no_sense(config: dict[str, Any], words: str, path: tuple[str, ...]) -> None:
    with pytest.raises(ProfileError, match=words) as caught:
        async with trial(DelegateToolkit, config=config):
            pass
    assert caught.value.path == path


@pytest.mark.parametrize(("sandbox", "is_told"), [("full", True), ("read-only", False)])
async def test_only_who_may_write_is_told_how_delegates_write(root: Path, sandbox: str, is_told: bool) -> None:
    async with open_exchange({}, sandbox=sandbox) as place:
        assert "is for `delegate`" in place.exchange.system
        assert ("different parts to write" in place.exchange.system) == is_told


async def test_with_more_depth_a_delegate_may_delegate(root: Path) -> None:
    scripts = {
        "go": [calls(delegate("help")), "Fine."],
        "help": [calls(delegate("deeper", "d1")), "Done."],
        "deeper": [calls(delegate("deepest"), write("deep.txt")), "Deep."],
    }
    async with open_exchange(scripts, config={"depth": 2}) as place:
        await place.reply()
        deep = place.nested("d1", "d1").history
        assert "no tool 'delegate'" in deep.messages[2].tool_results[0].output
        assert place.first_results("d1")[0].output.startswith("Deep.")
        assert place.exchange.history.usage.turn_total.total_tokens == 45
        assert [listed.first_words for listed in list_subagent_sessions(find_session("here"))] == ["help", "deeper"]
        inner = [event for event in place.events(SubagentEvent) if isinstance(event.event, SubagentEvent)]
        assert {event.event.call_id for event in inner} == {"d1"}


@pytest.mark.parametrize(("here", "is_open"), [(True, True), (False, False)])
async def test_private_addresses_are_open_only_where_they_are_for_the_parent(
    root: Path, home: Path, here: bool, is_open: bool
) -> None:
    toolkits = "[{name: developer, config: {private_addresses: true}}]"
    write_profiles(home, f"open: {{toolkits: {toolkits}, sandbox: full, approval: yolo}}")
    async with Loopback([raw(b"secret", kind="text/plain")]) as server:
        fetch = call("fetch_web_content", f'{{"url": "http://127.0.0.1:{server.port}/"}}')
        scripts = {"go": [calls(delegate("help")), "Fine."], "help": [calls(fetch), "Done."]}
        developer = {"private_addresses": True} if here else {}
        async with open_exchange(scripts, config={"profiles": ["open"]}, developer=developer, approval="yolo") as place:
            await place.reply()
            output = place.first_results("d1")[0].output
    assert ("secret" in output, bool(server.requests)) == (is_open, is_open)


# --- agent files


def write_agent(root: Path, name: str, front: str) -> None:
    (root / ".claude/agents").mkdir(parents=True, exist_ok=True)
    (root / f".claude/agents/{name}.md").write_text(f"---\ndescription: about {name}\n{front}\n---\nYou are {name}.")
    project = trust.read_project_config(root)
    assert project
    trust.trust_project(project)


@needs_sandbox
async def test_an_agent_file_has_its_own_prompt_and_tools(root: Path) -> None:
    write_agent(root, "finder", "tools: Read, Grep, WebSearch, Task")
    write_agent(root, "writer", "tools: Write, Bash")
    steps = [calls(shell("touch made"), write("new.txt")), "Done."]
    scripts = {
        "go": [calls(delegate("find", profile="finder"), delegate("write", "d2", profile="writer")), "Fine."],
        "find": steps,
        "write": steps,
    }
    async with open_exchange(scripts, sandbox="workspace") as place:
        assert "\n- finder: about finder\n- writer: about writer" in place.exchange.system
        await place.reply()
        seen = {request.messages[0].text: request for request in place.provider.requests}
        tools = {words: [tool.name for tool in request.tools] for words, request in seen.items()}
        assert (tools["find"], tools["write"]) == (["shell", "read_file"], ["shell", "write_file"])
        assert [text in seen["find"].system for text in ("You are finder.", "You are writer.")] == [True, False]
        touched, written = place.first_results("d1")
        assert "Read-only file system" in touched.output
        assert written.is_error
        assert not any(result.is_error for result in place.first_results("d2"))
    assert all((root / name).exists() for name in ("made", "new.txt"))


async def test_an_agent_file_never_has_more_than_its_parent(root: Path) -> None:
    write_agent(root, "writer", "tools: Write, Bash")
    scripts = {"go": [calls(delegate("write", profile="writer")), "Fine."], "write": [calls(write("new.txt")), "No."]}
    async with open_exchange(scripts, developer={"tools": ["shell"]}, approval="ask", sandbox="full") as place:
        await place.reply()
        assert "no tool 'write_file'; " in place.first_results("d1")[0].output
    assert not (root / "new.txt").exists()


@pytest.mark.parametrize(("model", "says"), [("scripted:cheap.yaml", "cheaply"), ("nowhere:x", "Done.")])
async def test_an_agent_file_has_its_own_model_if_that_can_be_used(root: Path, model: str, says: str) -> None:
    (root / "cheap.yaml").write_text("- {text: cheaply}")
    write_agent(root, "saver", f"model: {model}")
    async with open_exchange({"go": [calls(delegate("help", profile="saver")), "Fine."], "help": ["Done."]}) as place:
        await place.reply()
        assert place.results["d1"].output.startswith(says)
        logged = "".join(event.text for event in place.events(Logged))
        assert ("the model 'nowhere:x' can't be used" in logged) == (says == "Done.")


# --- tasks


async def test_a_running_delegate_and_its_processes_are_listed_and_stopped(root: Path) -> None:
    start = call("process", '{"action": "start", "command": "echo up; sleep 600"}', id="p")
    scripts = {
        "go": [calls(delegate("a", "d1"), delegate("b", "d2", read_only=True)), "Fine."],
        "a": [calls(start), calls(shell("sleep 600")), "Never."],
        "b": ["B."],
    }
    async with open_exchange(scripts) as place:
        hooks = place.exchange.hooks
        turn = asyncio.create_task(place.reply())
        await wait_until(lambda: "up" in [task.get_tail().strip() for task in hooks.list_running_tasks()])
        await wait_until(lambda: [task.name for task in hooks.list_running_tasks()] == ["d1", "d1.p1"])
        helper, process = hooks.list_running_tasks()
        assert (helper.title, process.title) == ("delegate: a", "echo up; sleep 600")
        await wait_until(lambda: "▸ shell sleep 600" in helper.get_tail())
        await process.stop()
        await wait_until(lambda: [task.name for task in hooks.list_running_tasks()] == ["d1"])
        await helper.stop()
        assert (await turn).reason == "stop"
        assert place.results["d1"].output == "the person stopped this delegate; its changes until then remain"
        assert place.results["d2"].output.startswith("B.")
        assert hooks.list_running_tasks() == []


@needs_sandbox
async def test_only_so_many_delegates_work_at_once(root: Path) -> None:
    names = ["a", "b", "c", "d"]
    wait = calls(shell("until test -e /tmp/go; do sleep 0.05; done"))
    requests = [delegate(name, f"d{name}", read_only=True) for name in names]
    scripts = {"go": [calls(*requests), "Fine."], **{name: [wait, name.upper()] for name in names}}
    async with open_exchange(scripts, config={"parallel": 2}, sandbox="workspace") as place:
        hooks = place.exchange.hooks
        turn = asyncio.create_task(place.reply())

        def list_tails() -> list[str]:
            return [task.get_tail() for task in hooks.list_running_tasks()]

        waits = "waits until another delegate ends"
        await wait_until(lambda: [tail == waits for tail in list_tails()] == [False, False, True, True])
        await wait_until(lambda: all("until test" in tail for tail in list_tails()[:2]))
        assert {request.messages[0].text for request in place.provider.requests} == {"go", "a", "b"}
        waiting = [event.call_id for event in place.events(SubagentEvent) if event.event == Status(text=waits)]
        assert waiting == ["dc", "dd"]
        await hooks.list_running_tasks()[2].stop()
        (place.exchange.workspace.tmp / "go").touch()
        await turn
        outputs = [place.results[f"d{name}"].output[:5] for name in names]
        assert outputs == ["A\n[to", "B\n[to", "the p", "D\n[to"]


# --- questions


@needs_sandbox
async def test_a_question_says_who_asks_and_is_recorded_in_both(root: Path) -> None:
    scripts = {"go": [calls(delegate("help")), "Fine."], "help": [calls(shell("true", access="network")), "Done."]}
    async with open_exchange(scripts, sandbox="workspace", answer=ONCE) as place:
        await place.reply()
        (question,) = place.recorder.questions
        assert (question.kind, question.subject) == ("network", "true")
        assert question.text == "a delegate asks: network access for: true"
        assert [asked.question for asked in place.events(Asked)] == [question]
        own = [event.question.text for event in place.nested("d1").read_events() if isinstance(event, Asked)]
        assert own == ["network access for: true"]


async def test_what_a_person_says_reaches_the_delegate() -> None:
    said = Answer(choice="allow", by="person", text="blue")
    parent = Recorder(said)
    assert (
        await EventRelay(parent, "d1", who="a delegate", purpose="delegate").ask(
            Question(kind="text", subject="ask_user", text="Which colour?")
        )
        == said
    )
    assert parent.questions[0].text == "a delegate asks: Which colour?"


@needs_sandbox
async def test_an_answer_for_the_session_holds_for_both(root: Path) -> None:
    scripts = {
        "go": [
            calls(delegate("help")),
            calls(shell("true", access="network", id="c7")),
            calls(delegate("more", "d2")),
            "Fine.",
        ],
        "help": [calls(shell("true", access="network")), "Done."],
        "more": [calls(shell("true", access="network")), "Done."],
    }
    async with open_exchange(scripts, sandbox="workspace", answer=SESSION) as place:
        await place.reply()
        assert len(place.recorder.questions) == 1
        assert not any(result.is_error for result in place.results.values())


@needs_sandbox
async def test_who_is_asked_before_each_command_is_asked_for_a_reader_too(root: Path, home: Path) -> None:
    write_profiles(home, "looker: {extends: reviewer}")
    scripts = {"go": [calls(delegate("help")), "Fine."], "help": [calls(shell("date")), "No."]}
    config = {"profiles": ["looker"]}
    async with open_exchange(scripts, config=config, sandbox="workspace", approval="ask", answer=NO) as place:
        await place.reply()
        assert [question.text for question in place.recorder.questions] == ["a delegate asks: run: date"]
        assert "the person said no" in place.first_results("d1")[0].output


@needs_sandbox
async def test_a_hook_is_asked_about_once_and_stays_when_it_was_allowed(root: Path) -> None:
    hook = "git init -q; printf '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
    scripts = {
        "go": [calls(shell("true")), calls(delegate("help")), calls(shell("true", id="c3")), "Fine."],
        "help": [calls(shell(hook)), "Done."],
    }
    async with open_exchange(scripts, sandbox="workspace", answer=ONCE) as place:
        await place.reply()
        assert [question.kind for question in place.recorder.questions] == ["repository"]
    assert os.access(root / ".git/hooks/pre-commit", os.X_OK)


@needs_sandbox
async def test_of_what_one_left_no_other_is_asked(root: Path) -> None:
    hook = "git init -q; printf '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
    scripts = {
        "go": [calls(delegate("a", "d1"), delegate("b", "d2")), "Fine."],
        "a": [calls(shell(hook)), calls(shell("touch a", id="c2")), "Done."],
        "b": [calls(shell("touch b")), "Done."],
    }
    async with open_exchange(scripts, sandbox="workspace", answer=ONCE) as place:
        await place.reply()
        assert [question.kind for question in place.recorder.questions] == ["repository"]
    assert os.access(root / ".git/hooks/pre-commit", os.X_OK)


@needs_sandbox
async def test_a_hook_that_is_refused_is_put_out_of_effect(root: Path) -> None:
    hook = "git init -q; printf '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"
    scripts = {"go": [calls(delegate("help")), "Fine."], "help": [calls(shell(hook)), "Done."]}
    async with open_exchange(scripts, sandbox="workspace", answer=NO) as place:
        await place.reply()
    assert not (root / ".git/hooks/pre-commit").exists()


# --- undo


@pytest.mark.parametrize("mode", ["full", pytest.param("workspace", marks=needs_sandbox)])
async def test_undo_brings_back_what_a_delegate_changed(root: Path, mode: str) -> None:
    (root / "old.txt").write_text("old")
    (root / "gone.txt").write_text("gone")
    scripts = {
        "go": [calls(delegate("help")), "Fine."],
        "help": [calls(shell("rm gone.txt; echo x > made.txt; echo x > old.txt")), calls(write("new.txt")), "Done."],
    }
    async with open_exchange(scripts, sandbox=mode) as place:
        await place.reply()
        assert read_files(root) == {"made.txt": "x\n", "new.txt": "x", "old.txt": "x\n"}
        assert place.exchange.undo
        await place.exchange.undo.restore(await place.exchange.undo.plan_restore(1))
        assert read_files(root) == {"old.txt": "old", "gone.txt": "gone"}


# --- side by side


@pytest.fixture
def repository(root: Path) -> Path:
    """A folder with a committed, a changed and an untracked file, and an ignored one."""
    for name, text in {"kept.txt": "kept", "changed.txt": "old", "gone.txt": "gone", ".gitignore": "*.log\n"}.items():
        (root / name).write_text(text)
    run_git(root, "init", "-q")
    run_git(root, "add", ".")
    run_git(root, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "one")
    (root / "changed.txt").write_text("changed")
    (root / "new.txt").write_text("new")
    (root / "own.log").write_text("log")
    return root


def run_git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout


def list_worktrees(root: Path) -> list[str]:
    return sorted(path.name for path in (root / ".goose-like/worktrees").glob("delegate-*"))


def read_tree(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.iterdir() if path.is_file() and path.name != ".gitignore"}


async def reply_when(place: Place, file: Path) -> None:
    """Run a turn, and let the command `WAIT` go on when the file exists."""
    turn = asyncio.create_task(place.reply())
    await wait_until(file.exists)
    (place.exchange.workspace.tmp / "go").touch()
    await turn


WAIT = "until test -e /tmp/go; do sleep 0.1; done"
BOTH = [calls(delegate("a", "d1"), delegate("b", "d2")), "Fine."]
FILES = {"kept.txt": "kept", "changed.txt": "changed", "gone.txt": "gone", "new.txt": "new", "own.log": "log"}


@needs_sandbox
async def test_writers_side_by_side_have_a_copy_each_and_undo_covers_both(repository: Path) -> None:
    look = "pwd; cat changed.txt new.txt; ls; git status --short"
    scripts = {
        "go": BOTH,
        "a": [calls(shell(f"{look}; rm gone.txt; mkdir -p sub; echo a > sub/a; chmod +x new.txt")), "A."],
        "b": [calls(shell(f"{look}; echo b > changed.txt"), write("b.txt")), calls(shell("ls", id="c9")), "B."],
    }
    async with open_exchange(scripts, sandbox="workspace") as place:
        status = run_git(repository, "status", "--short")
        await place.reply()
        seen = [place.first_results(name)[0].output for name in ("d1", "d2")]
        for output in seen:
            assert "changednew" in output
            assert " M changed.txt\n?? new.txt" in output
            assert "own.log" not in output
        folders = {output.split("\n")[0] for output in seen}
        assert len(folders) == 2
        assert all(folder.startswith(f"{repository}/.goose-like/worktrees/delegate-") for folder in folders)
        started = [event.event for event in place.events(SubagentEvent) if isinstance(event.event, SessionStarted)]
        assert {event.cwd for event in started} == folders
        expected = FILES | {"changed.txt": "b\n", "b.txt": "x"}
        del expected["gone.txt"]
        assert read_tree(repository) == expected
        assert (repository / "sub/a").read_text() == "a\n"
        assert os.access(repository / "new.txt", os.X_OK)
        assert place.results["d1"].output.endswith("[taken over: gone.txt, new.txt, sub/a]")
        assert "[taken over: b.txt, changed.txt]" in place.results["d2"].output
        assert list_worktrees(repository) == []
        assert "worktrees" not in run_git(repository, "worktree", "list")
        assert place.recorder.questions == []
        assert not any(
            "undo does not cover" in event.text and "worktrees" in event.text for event in place.events(Logged)
        )
        plan = await place.exchange.undo.plan_restore(1)
        assert not any(".goose-like" in str(change.path) for change in plan.changes)
        await place.exchange.undo.restore(plan)
        assert read_tree(repository) == FILES
        assert not (repository / "sub").exists()
        assert run_git(repository, "status", "--short") == status


def run_line(line: str) -> None:
    subprocess.run(["bash", "-c", line], check=False)


@needs_sandbox
async def test_changes_of_different_lines_are_merged(repository: Path) -> None:
    """The parent's file has uncommitted changes, and stays executable; both delegates change it, and one of git's."""
    lines = [f"line {number}\n" for number in range(30)]
    (repository / "kept.txt").write_text("".join(lines))
    (repository / "kept.txt").chmod(0o755)
    scripts = {
        "go": BOTH,
        "a": [calls(shell("sed -i 's/line 2$/two/' kept.txt; echo a >> changed.txt; echo a > a.txt")), "A."],
        "b": [calls(shell(f"{WAIT}; sed -i 's/line 27$/other/; s/line 20$//' kept.txt; echo b > changed.txt")), "B."],
    }
    async with open_exchange(scripts, sandbox="workspace") as place:
        await reply_when(place, repository / "a.txt")
        output = place.results["d2"].output
        assert "[taken over: kept.txt]" in output
        assert "[conflict: changed.txt changed here meanwhile, and stayed as it is here]" in output
        merged = "".join(lines).replace("line 2\n", "two\n").replace("line 20\n", "\n").replace("line 27\n", "other\n")
        assert (repository / "kept.txt").read_text() == merged
        assert os.access(repository / "kept.txt", os.X_OK)
        plan = await place.exchange.undo.plan_restore(1)
        await place.exchange.undo.restore(plan)
        assert (repository / "kept.txt").read_text() == "".join(lines)
    assert not (repository / "a.txt").exists()


@needs_sandbox
async def test_a_conflict_keeps_both_versions(repository: Path, tmp_path: Path) -> None:
    scripts = {
        "go": BOTH,
        "a": [calls(shell("echo a > kept.txt; echo a > a.txt; echo same > same.txt")), "A."],
        "b": [
            calls(shell(f"{WAIT}; echo b > kept.txt; echo same > same.txt")),
            calls(shell("echo b > b.txt", id="c2")),
            "B.",
        ],
    }
    async with open_exchange(scripts, sandbox="workspace") as place:
        await reply_when(place, repository / "a.txt")
        (name,) = list_worktrees(repository)
        kept = repository / ".goose-like/worktrees" / name
        output = place.results["d2"].output
        assert "[conflict: kept.txt changed here meanwhile, and stayed as it is here]" in output
        assert f"the delegate's files are in {kept}; " in output
        line = output.split("[to merge kept.txt with marks where both changed: ")[1].split("]\n")[0]
        assert "[taken over: b.txt]" in output
        assert (kept / "kept.txt").read_text() == "b\n"
        assert read_tree(repository) == FILES | {
            "kept.txt": "a\n",
            "same.txt": "same\n",
            "a.txt": "a\n",
            "b.txt": "b\n",
        }
        run_line(line.replace("/tmp/base", str(tmp_path / "base")))
        marked = (repository / "kept.txt").read_text()
    assert marked.startswith("<<<<<<< ")
    assert "\na\n" in marked
    assert "\nb\n" in marked


@needs_sandbox
async def test_a_folder_in_place_of_a_new_file_is_not_replaced(repository: Path) -> None:
    scripts = {
        "go": BOTH,
        "a": [calls(shell("echo a > x")), "A."],
        "b": [calls(shell(f"{WAIT}; mkdir x; echo b > x/y")), "B."],
    }
    async with open_exchange(scripts, sandbox="workspace") as place:
        await reply_when(place, repository / "x")
        assert "the changes could not be taken over: " in place.results["d2"].output
        assert len(list_worktrees(repository)) == 1
    assert (repository / "x").read_text() == "a\n"


@needs_sandbox
async def test_what_git_ignores_is_kept_but_not_taken_over(repository: Path) -> None:
    line = "echo a > a.log; mkdir __pycache__; echo '*' > __pycache__/.gitignore; touch __pycache__/x"
    scripts = {
        "go": BOTH,
        "a": [calls(shell(line)), "A."],
        "b": [calls(shell(line.replace("echo a > a.log;", ""))), "B."],
    }
    async with open_exchange(scripts, sandbox="workspace") as place:
        await place.reply()
        assert "git ignores these, so they were not taken over: a.log]" in place.results["d1"].output
        assert "ignores" not in place.results["d2"].output
        assert len(list_worktrees(repository)) == 1


@needs_sandbox
async def test_a_rule_about_paths_holds_for_what_is_taken_over(repository: Path) -> None:
    scripts = {"go": BOTH, "a": [calls(shell("echo a > kept.txt; echo a > a.txt")), "A."], "b": ["B."]}
    permissions = {"deny": ["path:kept.*"]}
    async with open_exchange(scripts, sandbox="workspace", permissions=permissions) as place:
        await place.reply()
        assert "path:kept.*" in place.results["d1"].output
        assert len(list_worktrees(repository)) == 1
    assert (repository / "kept.txt").read_text() == "kept"
    assert (repository / "a.txt").exists()


@needs_sandbox
async def test_worktrees_that_a_killed_session_left_are_named_once(repository: Path) -> None:
    for name in ("delegate-00000001", "delegate-00000002", "mine"):
        (repository / ".goose-like/worktrees" / name).mkdir(parents=True)
    used = os.open(repository / ".goose-like/worktrees/delegate-00000002", os.O_RDONLY)
    fcntl.flock(used, fcntl.LOCK_SH)
    async with open_exchange({"go": ["One.", "Two."]}, sandbox="workspace") as place:
        await place.reply()
        await place.reply()
        notes = [event for event in place.recorder.events if "earlier delegates left" in str(event)]
    os.close(used)
    (note,) = notes
    assert "delegate-00000001" in str(note)
    assert "delegate-00000002" not in str(note)
    assert list_worktrees(repository) == ["delegate-00000001", "delegate-00000002"]


@needs_sandbox
async def test_a_start_file_is_asked_about_when_it_is_taken_over(repository: Path) -> None:
    scripts = {"go": BOTH, "a": [calls(shell("mkdir .vscode; echo {} > .vscode/tasks.json")), "A."], "b": ["B."]}
    async with open_exchange(scripts, sandbox="workspace", answer=NO) as place:
        await place.reply()
        assert [question.kind for question in place.recorder.questions] == ["repository"]
    assert not (repository / ".vscode/tasks.json").exists()


@needs_sandbox
async def test_hooks_and_settings_stay_protected_from_a_copy(repository: Path) -> None:
    attack = "echo evil > $(git rev-parse --git-common-dir)/hooks/pre-commit; git config core.fsmonitor evil"
    scripts = {"go": BOTH, "a": [calls(shell(f"{attack}; echo evil > ../../../kept.txt")), "A."], "b": ["B."]}
    async with open_exchange(scripts, sandbox="workspace", answer=NO) as place:
        await place.reply()
        assert {question.kind for question in place.recorder.questions} == {"repository"}
    assert not (repository / ".git/hooks/pre-commit").exists()
    assert "evil" not in (repository / ".git/config").read_text()
    assert (repository / "kept.txt").read_text() == "kept"


def read_copies(repository: Path, name: str) -> list[str]:
    """Read a file in the worktrees. A command may have written only a part of it so far."""
    return [file.read_text() for file in (repository / ".goose-like/worktrees").glob(f"*/{name}")]


@needs_sandbox
async def test_a_stopped_delegate_keeps_what_it_did(repository: Path) -> None:
    scripts = {"go": BOTH, "a": [calls(shell("echo a > a.txt; sleep 600")), "Never."], "b": ["B."]}
    async with open_exchange(scripts, sandbox="workspace") as place:
        turn = asyncio.create_task(place.reply())
        await wait_until(lambda: "a\n" in read_copies(repository, "a.txt"))
        helper, *_ = place.exchange.hooks.list_running_tasks()
        await helper.stop()
        await turn
        assert place.results["d1"].output.startswith("the person stopped this delegate; its changes until then remain")
        assert list_worktrees(repository) == []
    assert (repository / "a.txt").read_text() == "a\n"


@needs_sandbox
async def test_a_stopped_turn_keeps_what_its_delegates_did(repository: Path) -> None:
    scripts = {"go": BOTH, "a": [calls(shell("echo a > a.txt; sleep 600")), "Never."], "b": ["B."]}
    async with open_exchange(scripts, sandbox="workspace") as place:
        turn = asyncio.create_task(place.reply())
        await wait_until(lambda: "a\n" in read_copies(repository, "a.txt"))
        turn.cancel()
        await asyncio.wait({turn})
        assert list_worktrees(repository) == []
        assert place.exchange.undo
        plan = await place.exchange.undo.plan_restore(1)
        assert [change.path.name for change in plan.changes] == ["a.txt"]
    assert (repository / "a.txt").read_text() == "a\n"


@pytest.mark.parametrize("is_repository", [False, True])
async def test_writers_without_a_copy_run_in_order_and_readers_beside_them(root: Path, is_repository: bool) -> None:
    if is_repository:  # without a commit
        run_git(root, "init", "-q")
    note = "echo start {0} >> log; sleep 0.3; echo end {0} >> log"
    wait = "until grep -qs start log; do sleep 0.05; done; grep -c end log"
    scripts = {
        "go": [calls(delegate("a", "d1"), delegate("b", "d2"), delegate("c", "d3", read_only=True)), "Fine."],
        "a": [calls(shell(note.format("a"))), "A."],
        "b": [calls(shell(note.format("b"))), "B."],
        "c": [calls(shell(wait)), "C."],
    }
    async with open_exchange(scripts) as place:
        await place.reply()
        assert [place.results[name].output[:2] for name in ("d1", "d2", "d3")] == ["A.", "B.", "C."]
    assert (root / "log").read_text().split("\n") == ["start a", "end a", "start b", "end b", ""]


@needs_sandbox
async def test_a_single_writer_works_in_the_folder_itself(repository: Path) -> None:
    scripts = {
        "go": [calls(delegate("a", "d1"), delegate("b", "d2", read_only=True)), "Fine."],
        "a": [calls(shell("pwd")), "A."],
        "b": [calls(shell("pwd")), "B."],
    }
    async with open_exchange(scripts, sandbox="workspace") as place:
        await place.reply()
        assert [place.first_results(name)[0].output.strip() for name in ("d1", "d2")] == [str(repository)] * 2


@needs_sandbox
async def test_a_subfolder_of_a_repository_is_copied_as_such(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "sub").mkdir()
    (repository / "sub/here.txt").write_text("here")
    monkeypatch.chdir(repository / "sub")
    scripts = {"go": BOTH, "a": [calls(shell("cat here.txt; echo a > a.txt; rm here.txt")), "A."], "b": ["B."]}
    async with open_exchange(scripts, sandbox="workspace") as place:
        await place.reply()
        assert place.first_results("d1")[0].output.strip() == "here"
        assert "[taken over: a.txt, here.txt]" in place.results["d1"].output
    assert [path.name for path in (repository / "sub").iterdir() if path.is_file()] == ["a.txt"]


# --- permissions are never wider

KINDS: tuple[PermissionKind, ...] = get_args(PermissionKind)
MODES: tuple[SandboxMode, ...] = get_args(SandboxMode)
APPROVALS: tuple[ApprovalMode, ...] = get_args(ApprovalMode)
ANSWERS = st.sampled_from([NO, ONCE, SESSION, Answer()])
ORDER = ("refused", "asked", "allowed")
rights = st.tuples(st.sampled_from(MODES), st.sampled_from(APPROVALS))


async def ask_permission(workspace: Workspace, recorder: Recorder, kind: PermissionKind) -> str:
    """Return what happens with a step: allowed, asked about, or refused."""
    before = len(recorder.questions)
    try:
        await workspace.require_permission(kind, "this", "do this")
    except DeniedError:
        return "asked" if len(recorder.questions) > before else "refused"
    return "asked" if len(recorder.questions) > before else "allowed"


@settings(max_examples=100)
@given(
    parent=rights,
    chain=st.lists(rights, min_size=1, max_size=3),
    steps=st.lists(st.tuples(st.sampled_from(KINDS), ANSWERS), max_size=6),
)
def test_permissions_are_never_wider_than_the_parents(tmp_path_factory, parent, chain, steps) -> None:
    """The parent may do everything that a delegate may, and is asked no more often."""

    async def run() -> None:
        recorder, folder = Recorder(), tmp_path_factory.getbasetemp()
        line = [Workspace(folder, mode=parent[0], approval=parent[1], notifier=recorder)]
        for mode, approval in chain:
            line.append(Workspace(folder, mode=mode, approval=approval, notifier=recorder, parent=line[-1]))
        for kind, answer in steps:
            recorder._answer = answer
            await ask_permission(line[0], recorder, kind)
        recorder._answer = ONCE
        for kind in KINDS:
            order = [ORDER.index(await ask_permission(workspace, recorder, kind)) for workspace in line]
            assert order == sorted(order, reverse=True), (kind, parent, chain)

    asyncio.run(run())


async def test_an_answer_to_a_narrow_delegate_does_not_widen_its_parent(root):
    recorder = Recorder(SESSION)
    parent = Workspace(root, mode="workspace", approval="auto", notifier=recorder)
    child = Workspace(root, mode="workspace", approval="ask", notifier=recorder, parent=parent)
    assert [await ask_permission(child, recorder, "domain") for _ in range(2)] == ["asked", "allowed"]
    assert await ask_permission(parent, recorder, "domain") == "asked"


@needs_sandbox
@given(parent=rights, child=rights, answer=st.sampled_from([NO, ONCE]))
def test_what_happens_is_never_more_than_the_parent_could_do(tmp_path_factory, parent, child, answer) -> None:
    """The same property with commands and tools in a real sandbox."""

    async def run() -> None:
        folder = tmp_path_factory.mktemp("rights")
        (folder / "work").mkdir()
        recorder = Recorder(answer)
        outer = Workspace(folder / "work", mode=parent[0], approval=parent[1], notifier=recorder)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            async with outer:
                theirs = await try_everything(outer, recorder, folder, port)
                inner = Workspace(outer.root, mode=child[0], approval=child[1], notifier=recorder, parent=outer)
                async with inner:
                    ours = await try_everything(inner, recorder, folder, port)
        assert ours <= theirs

    asyncio.run(run())


async def try_everything(workspace: Workspace, recorder: Recorder, folder: Path, port: int) -> set[tuple[str, bool]]:
    """Return each step that had its effect, and whether it needed a question."""
    connect = f"exec 3<>/dev/tcp/127.0.0.1/{port}"
    outside = f"{folder}/outside"  # below /tmp, which is the private one in a sandbox
    done: set[tuple[str, bool]] = set()
    tries = {
        "a command writes": (("echo x > made", "workspace"), workspace.root / "made"),
        "a command connects": ((f"{connect} && echo x > /tmp/is-connected", "workspace"), None),
        "a command with network connects": ((connect, "network"), None),
        "a command without sandbox": ((f"echo x > {outside}", "full"), Path(outside)),
        "a tool writes": ("made", workspace.root / "made"),
        "a tool writes outside": (outside, Path(outside)),
    }
    for name, (step, place) in tries.items():
        before, has_happened = len(recorder.questions), False
        try:
            if isinstance(step, str):
                await workspace.write_bytes(step, b"x")
                has_happened = True
            else:
                process = await workspace.spawn(["bash", "-c", step[0]], access=step[1])
                while await process.read():
                    pass
                has_happened = await process.wait() == 0
        except DeniedError:
            pass
        if place is not None:
            has_happened = place.exists()
            place.unlink(missing_ok=True)
        if has_happened:
            done.add((name, False))
            if len(recorder.questions) == before:
                done.add((name, True))
    return done
