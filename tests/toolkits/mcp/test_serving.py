"""`goose-like mcp serve`: tools for other agents, in both eras of the protocol."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
import mcp_types as types
import pytest
import uvicorn
from goose_like_toolkits.mcp.serving import http
from goose_like_toolkits.mcp.serving.start import Lines, ServeOptions, open_server
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from goose_like.api import Agent
from goose_like.config.trust import read_project_config, trust_project
from goose_like.config.yaml_reader import format_document
from goose_like.core import events
from goose_like.core.errors import UsageError
from goose_like.core.events import Answer
from goose_like.core.message import Message
from goose_like.core.notifier import Recorder
from goose_like.core.threads import run_in_thread
from goose_like.launch.command_line import ProfileOptions
from goose_like.sessions.index import list_sessions
from goose_like.sessions.session import Session
from tests.processes import count_processes, wait_for_count
from tests.toolkits.mcp.servers import desk, wait_until
from tests.toolkits.skills.write_skill import write_skill
from tests.workspace.workspace_harness import find_place

ERAS = ("legacy", "2026-07-28")
PNG = b"\x89PNG\r\n\x1a\n1"
COMMAND = str(Path(sys.executable).parent / "goose-like")


@pytest.fixture(params=ERAS)
def era(request) -> str:
    """The mode of the SDK's client."""
    return request.param


@pytest.fixture
def work(tmp_path, monkeypatch, home):
    """The current folder, and a profile without a model."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_profile(home)
    return folder


def write_profile(home: Path, **keys: object) -> None:
    (home / "config").mkdir(parents=True, exist_ok=True)
    profile = {"extends": "default", "processor": "anthropic:claude-sonnet-5", **keys}
    (home / "config/profiles.yaml").write_text(format_document({"default": profile}))


def write_script(home: Path, *steps: object, **keys: object) -> None:
    """Let the default profile play a script."""
    script = home.parent / "script.yaml"
    script.write_text(format_document(list(steps)))
    write_profile(home, processor=f"scripted:{script}", accelerator=f"scripted:{script}", **keys)


class Person:
    """A person in front of the client, who gives one answer to each question."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def elicit(self, _, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        self.asked.append(params.message)
        if self.answer is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"answer": self.answer})


@asynccontextmanager
async def connect(
    era: str, person: Person | None = None, *, budget=None, toolkits=("developer",), patience_s=60, **options
):
    """Connect a client to a server in this process."""
    wanted = ServeOptions(ProfileOptions(**options), toolkits, budget or {}, patience_s)
    callback = person.elicit if person else None
    async with open_server(wanted) as server, Client(server, mode=era, elicitation_callback=callback) as client:
        yield client


def read_events() -> list[events.Event]:
    """Read the events of the only session."""
    (listed,) = list_sessions()
    with closing(Session.resume(listed.name)) as session:
        return list(session.read_events())


async def call(client: Client, tool: str, **arguments: object) -> tuple[str, bool]:
    """Call a tool, and return its text and whether it failed."""
    result = await client.call_tool(tool, arguments)
    return result.content[0].text, result.is_error


async def test_tools_are_listed_and_called(era, work):
    async with connect(era) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert listed["shell"].annotations.read_only_hint is False
        assert listed["read_file"].annotations.read_only_hint is True
        assert "command" in listed["shell"].input_schema["properties"]
        assert "run_task" not in listed  # there is no key
        assert await call(client, "shell", command="echo hi; exit 3") == ("hi\n[exit code 3]", False)
        text, is_error = await call(client, "write_file", path="a.txt", contents="x")
        assert is_error
        assert "content" in text
        with pytest.raises(MCPError, match=r"no tool 'shel'; did you mean 'shell'\?"):
            await call(client, "shel")


@pytest.mark.parametrize(("answer", "is_written"), [("allow once", True), ("deny", False), (None, False)])
async def test_questions_become_forms(era, work, answer, is_written):
    person = Person(answer)
    async with connect(era, person, approval="ask") as client:
        text, is_error = await call(client, "write_file", path="a.txt", content="x\n")
    assert is_error != is_written, text
    assert (work / "a.txt").exists() == is_written
    (message,) = person.asked
    assert "a.txt" in message


async def test_a_path_outside_of_the_folder_is_denied(era, work):
    person = Person("deny")
    async with connect(era, person) as client:
        text, is_error = await call(client, "write_file", path="/opt/of-goose-like", content="x\n")
    assert is_error
    assert "the person said no" in text
    assert len(person.asked) == 1


async def test_a_client_without_forms_is_told_why(era, work):
    async with connect(era, approval="ask") as client:
        text, is_error = await call(client, "write_file", path="a.txt", content="x\n")
    assert is_error
    assert "nobody is there to allow it: the client of this MCP server shows no questions" in text
    assert not (work / "a.txt").exists()


async def test_an_answer_that_never_comes_is_a_no(era, work, home):
    write_profile(home, session={"answer_s": 0.2}, approval="ask")

    async def wait_for_ever(*_):
        await asyncio.Event().wait()

    person = Person("allow once")
    person.elicit = wait_for_ever
    arguments = {"path": "a.txt", "content": "x\n"}
    async with connect(era, person) as client:
        if era == "legacy":
            text, is_error = await call(client, "write_file", **arguments)
            assert is_error
            assert "nobody answered within 0.2 s" in text
        else:
            asked = await client.session.call_tool("write_file", arguments, allow_input_required=True)
            # The next call waits until the question is denied.
            assert (await call(client, "read_file", path="a.txt"))[1]
            with pytest.raises(MCPError, match="belongs to no call that waits"):
                await client.session.call_tool("write_file", arguments, request_state=asked.request_state)
    assert not (work / "a.txt").exists()


async def test_a_call_that_nobody_follows_ends_with_its_question(work, home):
    write = {"tool": "write_file", "arguments": {"path": "made", "content": "x\n"}}
    touch = {"tool": "shell", "arguments": {"command": "touch made"}}
    keys = {"session": {"answer_s": 0.2}, "permissions": {"ask": ["tool:write_file"]}}
    write_script(home, {"calls": [write]}, {"calls": [touch]}, "Done.", **keys)
    async with connect("2026-07-28", Person("allow once")) as client:
        await client.session.call_tool("run_task", {"task": "make it"}, allow_input_required=True)
        # The next call waits until the question is denied.
        assert (await call(client, "read_file", path="made"))[1]
    happened = read_events()
    (answered,) = [event for event in happened if isinstance(event, events.Answered)]
    assert answered.answer.text == "nobody answered within 0.2 s"
    ends = [event.reason for event in happened if isinstance(event, events.TurnFinished)]
    assert ends == ["cancelled", "stop"]
    assert sum(isinstance(event, events.MessageCompleted) for event in happened) == 2
    assert not (work / "made").exists()


async def test_a_question_holds_up_other_calls_for_a_short_time_only(work):
    async with connect("2026-07-28", Person("allow once"), patience_s=0.2, approval="ask") as client:
        arguments = {"path": "a.txt", "content": "x\n"}
        asked = await client.session.call_tool("write_file", arguments, allow_input_required=True)
        text, _ = await call(client, "read_file", path="a.txt")
        assert "a.txt" in text
        with pytest.raises(MCPError, match="belongs to no call that waits"):
            await client.session.call_tool("write_file", arguments, request_state=asked.request_state)
    (answered,) = [event for event in read_events() if isinstance(event, events.Answered)]
    assert answered.answer.text == "nobody answered within 0.2 s"


async def test_asking_again_gives_no_more_time(work):
    async with connect("2026-07-28", Person("allow once"), patience_s=0.5, approval="ask") as client:
        arguments = {"path": "a.txt", "content": "x\n"}
        asked = await client.session.call_tool("write_file", arguments, allow_input_required=True)
        state = asked.request_state
        waiting = asyncio.create_task(call(client, "read_file", path="a.txt"))

        async def come_again() -> None:
            nonlocal state
            while True:
                asked = await client.session.call_tool(
                    "write_file", arguments, request_state=state, allow_input_required=True
                )
                state = asked.request_state
                await asyncio.sleep(0.02)

        async with asyncio.timeout(60):
            with pytest.raises(MCPError, match="belongs to no call that waits"):
                await come_again()
            text, _ = await waiting
        assert "a.txt" in text
    assert not (work / "a.txt").exists()


async def test_a_client_that_comes_again_can_still_answer(work):
    async with connect("2026-07-28", Person("allow once"), approval="ask") as client:
        arguments = {"path": "a.txt", "content": "x\n"}
        asked = await client.session.call_tool("write_file", arguments, allow_input_required=True)
        again = await client.session.call_tool(
            "write_file", arguments, request_state=asked.request_state, allow_input_required=True
        )
        assert again.input_requests == asked.input_requests
        answer = types.ElicitResult(action="accept", content={"answer": "allow once"})
        (key,) = again.input_requests
        result = await client.session.call_tool(
            "write_file", arguments, request_state=again.request_state, input_responses={key: answer}
        )
        assert not result.is_error
    assert (work / "a.txt").read_text() == "x\n"


async def test_a_question_that_holds_up_nothing_waits(work):
    async with connect("2026-07-28", Person("allow once"), patience_s=0, approval="ask") as client:
        _, is_error = await call(client, "write_file", path="a.txt", content="x\n")
        assert not is_error


async def test_commands_that_send_a_message_are_prompts(era, work, home):
    commands = home / "config/commands"
    commands.mkdir()
    (commands / "explain.md").write_text("---\ndescription: Explain a file\nusage: FILE [TOPIC]\n---\nExplain $1: $2!")
    async with connect(era) as client:
        listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert "mode" not in listed  # it works in a session only
        assert listed["explain"].description == "Explain a file"
        arguments = [(each.name, each.required) for each in listed["explain"].arguments]
        assert arguments == [("file", True), ("topic", False)]
        got = await client.get_prompt("explain", {"file": "my notes.md", "topic": "the style"})
        assert list_texts(got) == ["Explain my notes.md: the style!"]
        assert [each.name for each in listed["review"].arguments] == ["arguments"]


def list_texts(got: types.GetPromptResult) -> list[str]:
    """List the texts of a prompt, which has nothing else."""
    return [message.content.text for message in got.messages]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"file": "my notes.md"}, "Explain my notes.md: all!"),
        ({"file": "a.md", "topic": "why it's slow"}, "Explain a.md: why it's slow!"),
        ({"file": "my notes.md", "topic": 'the "x"'}, 'Explain my notes.md: the "x"!'),
        ({"file": "it's", "topic": '"'}, "Explain it's: \"!"),
        ({"file": "a\\b", "topic": "two\nlines"}, "Explain a\\b: two\nlines!"),
        ({"topic": "style"}, "Explain : style!"),
        ({}, "Explain : all!"),
    ],
)
async def test_arguments_arrive_whole(work, home, given, said):
    commands = home / "config/commands"
    commands.mkdir()
    (commands / "explain.md").write_text("---\nusage: FILE [TOPIC]\n---\nExplain $1: ${2:-all}!")
    async with connect("2026-07-28") as client:
        assert list_texts(await client.get_prompt("explain", given)) == [said]


async def test_an_argument_with_both_quotation_marks_is_one_sentence(work, home):
    commands = home / "config/commands"
    commands.mkdir()
    (commands / "explain.md").write_text("---\nusage: FILE [TOPIC]\n---\nExplain $1: $2!")
    (commands / "say.md").write_text("---\nusage: TEXT\n---\nSay: $ARGUMENTS")
    both = 'it\'s "x"'
    async with connect("2026-07-28") as client:
        with pytest.raises(MCPError, match=r"the argument 'topic' has both ' and \"") as caught:
            await client.get_prompt("explain", {"file": "a", "topic": both})
        assert "leave one out" in str(caught.value)
        assert list_texts(await client.get_prompt("say", {"text": both})) == [f"Say: {both}"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("explan", r"there is no prompt 'explan'; did you mean 'explain'\?"),
        ("explain x", "there is no prompt 'explain x'"),
        ("/explain", "there is no prompt '/explain'"),
        ("tmp", "there is no prompt 'tmp'"),
        ("", "there is no prompt ''"),
        ("mode", "there is no prompt 'mode'"),
    ],
)
async def test_another_name_is_no_prompt(work, home, name, error):
    commands = home / "config/commands"
    commands.mkdir()
    (commands / "explain.md").write_text("Explain $1!")
    async with connect("2026-07-28") as client:
        with pytest.raises(MCPError, match=error):
            await client.get_prompt(name)


async def test_a_text_with_commands_is_no_prompt(era, work, home):
    commands = home / "config/commands"
    commands.mkdir()
    (commands / "look.md").write_text("Look at this:\n!`touch made && echo listed`")
    (commands / "say.md").write_text("Say $ARGUMENTS")
    person = Person("allow once")
    async with connect(era, person) as client:
        assert "look" not in {prompt.name for prompt in (await client.list_prompts()).prompts}
        with pytest.raises(MCPError, match="'look' is no prompt, because its text runs commands; run them with a tool"):
            await client.get_prompt("look")
        # A word that looks like such a command is a word.
        got = await client.get_prompt("say", {"arguments": "!`touch made`"})
        assert list_texts(got) == ["Say !`touch made`"]
    assert person.asked == []
    assert not (work / "made").exists()


@pytest.fixture
def private(monkeypatch) -> Iterator[Path]:
    """A folder in a home outside /tmp, which a session does not see, with a text and an image."""
    with TemporaryDirectory(dir=find_place()) as folder:
        person = Path(folder).resolve()
        monkeypatch.setenv("HOME", str(person))
        private = person / "Docs"
        private.mkdir()
        (private / "a.txt").write_text("private")
        (private / "a.png").write_bytes(PNG)
        yield private


def write_prompts(work: Path, home: Path, private: Path) -> list[str]:
    """Write prompts of each kind, and return their names."""
    files = {
        home / "config/commands/plain.md": "Look at $ARGUMENTS",
        home / "config/commands/own.md": "---\nmodel: haiku\n---\nLook at $ARGUMENTS",
        work / ".claude/commands/theirs.md": "Look at $ARGUMENTS",
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    project = read_project_config(work)
    assert project
    trust_project(project)
    write_skill(private.parent / ".agents/skills", "greet")
    return [*(file.stem for file in files), "greet"]


async def test_words_of_another_agent_name_only_files_of_the_workspace(work, home, private):
    file = private / "a.txt"
    shot = work.parent / "shot.png"  # in the machine's own /tmp
    shot.write_bytes(PNG)
    (work / "in.txt").write_text("ours")
    (work / "link").symlink_to(file)
    paths = [
        str(file),
        "~/Docs/a.txt",
        "/".join([*[".."] * 20, *file.parts[1:]]),
        "link",
        "~/Docs",
        str(private / "a.png"),
        str(shot),
    ]
    forms = ("@{}", '@"{}"', "/file:{}", "`{}`")
    words = " ".join(form.format(path) for form in forms for path in paths)
    read = {"tool": "read_file", "arguments": {"path": str(file)}}
    write_script(home, {"calls": [read]}, "It failed.")
    names = write_prompts(work, home, private)
    async with connect("2026-07-28") as client:
        for prompt in (await client.list_prompts()).prompts:
            if prompt.name not in names:
                continue
            (argument,) = prompt.arguments
            got = await client.get_prompt(prompt.name, {argument.name: f"{words} @in.txt @docs:file:///a.md"})
            first, *attached = list_texts(got)
            assert words in first
            expected = [] if prompt.name == "plain" else ["\n[in.txt]\nours"]
            assert attached == expected
            names.remove(prompt.name)
        assert names == []
        assert await call(client, "run_task", task=f"read {words}") == ("It failed.", False)
        for path in paths[:4]:
            text, is_error = await call(client, "read_file", path=path)
            assert is_error
            assert "in the home folder, which is hidden from you" in text
    started = [event for event in read_events() if isinstance(event, events.TurnStarted)]
    assert started[0].message == Message.user(f"read {words}")
    results = [event.result for event in read_events() if isinstance(event, events.ToolFinished)]
    assert all(result.is_error for result in results)
    assert len(results) == 1 + len(paths[:4])


async def test_a_cancelled_call_ends_what_it_started(era, work):
    async with connect(era) as client:
        command = f"sleep {600 + os.getpid() / 1e6}"
        running = asyncio.create_task(call(client, "shell", command=command))
        await wait_until(lambda: count_processes(command))
        running.cancel()
        await asyncio.wait([running])
        await wait_until(lambda: not count_processes(command))
        assert await call(client, "shell", command="echo on") == ("on", False)


async def test_calls_can_be_undone(era, work, home):
    (work / "kept.txt").write_text("old\n")
    async with connect(era) as client:
        await call(client, "write_file", path="kept.txt", content="new\n")
        await call(client, "shell", command="touch made")
    (session,) = list_sessions()
    write_script(home)
    async with Agent(session=session.name, is_resumed=True, model=f"scripted:{work.parent / 'script.yaml'}") as agent:
        await agent.undo()
        assert not (work / "made").exists()
        await agent.undo()
    assert (work / "kept.txt").read_text() == "old\n"


async def test_what_a_person_changes_between_calls_is_no_change_of_the_next_one(work):
    async with connect(ERAS[0]) as client:
        await call(client, "shell", command="touch made")
        (work / "made").write_text("by a person")
        await call(client, "shell", command="true")
    first, second = [event for event in read_events() if isinstance(event, events.CommandFinished)]
    assert first.after != second.before == second.after != ""


async def test_a_rule_holds_for_calls(era, work, home):
    write_profile(home, permissions={"deny": ["touch"]})
    async with connect(era) as client:
        text, is_error = await call(client, "shell", command="touch made")
    assert is_error
    assert "a rule forbids it" in text
    assert not (work / "made").exists()


async def test_run_task_runs_a_turn_and_draws_from_the_budget(era, work, home):
    write = {"tool": "write_file", "arguments": {"path": "made", "content": "x\n"}}
    write_script(home, {"text": "Writing.", "calls": [write]}, "It is made.")
    heard: list[str] = []

    async def hear(progress, total, message):
        heard.append(message)

    async with connect(era, budget={"steps": 2}) as client:
        result = await client.call_tool("run_task", {"task": "make it"}, progress_callback=hear)
        assert (result.content[0].text, result.is_error) == ("It is made.", False)
        assert (work / "made").read_text() == "x\n"
        assert "▸ Write made" in heard
        text, is_error = await call(client, "run_task", task="more")
        assert is_error
        assert "the calls of this server have used up --max-steps 2; start it with a higher one" in text


@pytest.mark.parametrize(("limit", "most"), [("steps", 2), ("tokens", 100_000)])
async def test_all_tools_that_ask_models_draw_from_one_budget(era, work, home, limit, most):
    answer = {"text": "Done.", "usage": {"input": 60_000}}
    write_script(home, answer, answer, answer, answer)
    async with connect(era, budget={limit: most}, toolkits=("developer", "delegate")) as client:
        assert await call(client, "shell", command="echo on") == ("on", False)
        results = [await call(client, name, task="do it") for name in ("delegate", "run_task", "delegate", "run_task")]
        assert await call(client, "shell", command="echo on") == ("on", False)
    assert [is_error for _, is_error in results] == [False, False, True, True], results
    for text, _ in results[2:]:
        assert f"the calls of this server have used up --max-{limit} {most}" in text


async def test_a_denied_task_is_left_out(era, work, home):
    write_script(home, "Done.", permissions={"deny": ["tool:run_task"]})
    async with connect(era) as client:
        assert "run_task" not in {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError, match="there is no tool 'run_task'"):
            await call(client, "run_task", task="do it")


@pytest.mark.parametrize(("answer", "runs"), [("allow once", True), ("deny", False), (None, False)])
async def test_a_rule_asks_before_a_task(era, work, home, answer, runs):
    write_script(home, "Done.", permissions={"ask": ["tool:run_task"]})
    person = Person(answer)
    async with connect(era, person) as client:
        text, is_error = await call(client, "run_task", task="do it")
    assert is_error != runs, text
    assert (text == "Done.") == runs
    (message,) = person.asked
    assert "run_task" in message


async def test_a_task_keeps_its_own_limit(era, work, home):
    write = {"tool": "write_file", "arguments": {"path": "made", "content": "x\n"}}
    write_script(home, {"text": "Writing.", "calls": [write]}, "It is made.", "Here is more.")
    async with connect(era) as client:
        text, is_error = await call(client, "run_task", task="make it", max_steps=1)
        assert is_error
        assert "the limit of 1 step" in text
        assert await call(client, "run_task", task="go on") == ("It is made.", False)


async def test_the_command_speaks_on_standard_output_and_ends_with_its_input(era, work):
    settings = StdioServerParameters(
        command=COMMAND, args=["mcp", "serve", "--toolkit", "developer"], env=dict(os.environ), cwd=work
    )
    command = f"sleep {700 + os.getpid() / 1e6}"
    async with Client(settings, mode=era) as client:
        assert await call(client, "shell", command="echo hi") == ("hi", False)
        await call(client, "process", action="start", command=command)
        assert count_processes(command)
    wait_for_count(0, command)


async def test_lines_are_read_whole(monkeypatch):
    long_line = b"x" * 20_000_000
    written = b"\n".join([b"one", b"", b"two", b" ", long_line, rb'"cut \ud83d"', b"last"])
    source, target = os.pipe()
    with os.fdopen(source) as stdin, os.fdopen(target, "wb") as client:
        monkeypatch.setattr(sys, "stdin", stdin)

        def write() -> None:
            client.write(written)
            client.close()

        writing = asyncio.create_task(run_in_thread(write))
        lines = [line async for line in Lines()]
        await writing
    assert lines == [b"one", b"two", long_line, '"cut \N{REPLACEMENT CHARACTER}"'.encode(), b"last"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_cancels_the_call_and_ends_the_session(work, home, number):
    hook = {"command": "echo yes > ended"}
    write_profile(home, hooks={"SessionEnd": [{"hooks": [hook]}]})
    command = f"sleep {800 + os.getpid() / 1e6}"
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "shell", "arguments": {"command": command}}},
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen([COMMAND, "mcp", "serve"], stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        for message in messages:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()
        wait_for_count(1, command)
        server.send_signal(number)
        assert server.wait(60) == 128 + number, server.stderr.read()
    wait_for_count(0, command)
    assert (work / "ended").read_text() == "yes\n"
    assert [event.reason for event in read_events() if isinstance(event, events.TurnFinished)] == ["cancelled"]


@contextmanager
def serve_http(*options: str):
    """The address and the token of a server, which a signal ends."""
    command = [COMMAND, "mcp", "serve", "--http", "--port", "0", "--toolkit", "developer", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as server:
        try:
            address = server.stdout.readline().split()[-1]
            token = server.stdout.readline().split()[3]
            yield address, token
        finally:
            server.terminate()
        _, notes = server.communicate(timeout=60)
        assert "Traceback" not in notes
        assert server.returncode == 0


def connect_at(address: str, token: str, era: str, person: Person | None = None) -> Client:
    headers = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
    transport = streamable_http_client(address, http_client=headers)
    return Client(transport, mode=era, elicitation_callback=person and person.elicit)


def test_clients_at_an_address_need_the_token(work):
    async def work_at(address: str, token: str) -> None:
        for era in ERAS:
            person = Person("allow once")
            async with connect_at(address, token, era, person) as client:
                text, is_error = await call(client, "write_file", path=era, content="x\n")
                assert not is_error, text
                assert person.asked

    with serve_http("--approval", "ask") as (address, token):
        asyncio.run(work_at(address, token))
        right = {"Authorization": f"Bearer {token}"}
        assert httpx2.post(address, json={}).status_code == 401
        assert httpx2.post(address, json={}, headers={"Authorization": "Bearer no"}).status_code == 401
        assert httpx2.post(address, json={}, headers=right | {"Host": "evil.example"}).status_code == 421
        assert httpx2.post(address, json={}, headers=right | {"Origin": "https://evil.example"}).status_code == 403
        # The end of the server cuts off a request whose body never comes.
        place = httpx2.URL(address)
        cut = socket.create_connection((place.host, place.port))
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: {place.netloc.decode()}",
            f"Authorization: Bearer {token}",
            "Content-Type: application/json",
            "Content-Length: 9",
            "Expect: 100-continue",
        ]
        cut.sendall("\r\n".join([*lines, "", ""]).encode())
        assert cut.recv(100).startswith(b"HTTP/1.1 100")  # the server waits for the body
    cut.close()
    assert {path.name for path in work.iterdir()} >= set(ERAS)


async def test_our_own_toolkit_is_a_client(work, tmp_path):
    (tmp_path / "project").mkdir()
    with serve_http() as (address, token):
        async with desk(tmp_path, recorder=Recorder(Answer(choice="allow", by="person"))) as session:
            server = session.connect(url=address, headers={"Authorization": f"Bearer {token}"})
            found = await server.list_definitions()
            assert "shell" in {tool.name for tool in found.tools}
            assert await server.call_tool("shell", {"command": "echo hi"}) == "hi"


@pytest.mark.parametrize("ends_well", [True, False])
async def test_the_shutdown_tells_everything_but_requests_that_it_cuts_off(caplog, ends_well):
    has_request = asyncio.Event()

    async def app(scope, receive, send):
        if scope["type"] == "http":
            has_request.set()
            await asyncio.Event().wait()
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if ends_well:
            await send({"type": "lifespan.shutdown.complete"})
        else:
            await send({"type": "lifespan.shutdown.failed", "message": "the disk is full"})

    config = uvicorn.Config(app, log_config=None, log_level="warning", lifespan="on", timeout_graceful_shutdown=0)
    server = http._UvicornServer(config)
    logger = logging.getLogger("uvicorn.error")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await has_request.wait()
        server.should_exit = True
        await serving
        writer.close()
    told = [] if ends_well else ["the disk is full", "Application shutdown failed. Exiting."]
    assert [record.getMessage() for record in caplog.records if record.name == logger.name] == told
    assert not logger.disabled
    assert logger.filters == []


def test_a_port_in_use_is_one_sentence(work):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1, port {port}: Address already in use; try"):
            asyncio.run(http.serve_http(ServeOptions(ProfileOptions()), "127.0.0.1", port, ""))


def test_an_unknown_toolkit_is_one_sentence(work):
    done = subprocess.run(
        [COMMAND, "mcp", "serve", "--toolkit", "develper"], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert "did you mean 'developer'?" in done.stderr
    assert done.stdout == ""
