"""The command as an editor starts it: a process over pipes, with the client of the Python SDK, and its end."""

import asyncio
import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from goose_like import __version__
from goose_like.acp.editors import format_config
from tests import ROOT
from tests.e2e.command import Place, shell

if find_spec("acp"):
    from tests.acp.editor import open_editor

needs_acp = pytest.mark.skipif(find_spec("acp") is None, reason="the extra `acp` is not installed")


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path / "home", tmp_path / "work")
    made.home.mkdir()
    made.work.mkdir()
    return made


class Client:
    """A client as the SDK wants it, which allows everything and has unsaved text in each file."""

    def __init__(self):
        self.updates = []
        self.written = {}

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        from acp.schema import AllowedOutcome, RequestPermissionResponse

        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)

    async def read_text_file(self, session_id, path, **kwargs):
        from acp.schema import ReadTextFileResponse

        return ReadTextFileResponse(content=self.written.get(path, "typed\n"))

    async def write_text_file(self, session_id, path, content, **kwargs):
        self.written[path] = content

    def read_text(self):
        chunks = [update for update in self.updates if update.session_update == "agent_message_chunk"]
        return "".join(chunk.content.text for chunk in chunks)


@needs_acp
async def test_the_client_of_the_python_sdk(place):
    import acp
    from acp.schema import ClientCapabilities, FileSystemCapabilities

    seconds = f"62.{os.getpid()}"
    (place.work / "a.txt").write_text("blue\n")
    read = {"tool": "read_file", "arguments": {"path": "a.txt"}}
    write = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "red\n"}}
    model = place.script(
        {"calls": [read]}, {"calls": [write], "expect": "typed"}, "done", {"calls": [shell(f"sleep {seconds}")]}
    )
    client = Client()
    files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
    command = [sys.executable, "-m", "goose_like", "acp", "--model", model]
    agent_process = acp.spawn_agent_process(
        client, *command, env=place.env(), cwd=str(place.work), use_unstable_protocol=True
    )
    async with agent_process as (agent, process):
        started = await agent.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_capabilities=ClientCapabilities(fs=files)
        )
        assert started.agent_capabilities.load_session
        await agent.authenticate(method_id="variable")
        opened = await agent.new_session(cwd=str(place.work), mcp_servers=[])
        session = opened.session_id
        done = await agent.prompt(session_id=session, prompt=[acp.text_block("go")])
        assert done.stop_reason == "end_turn"
        assert "done" in client.read_text()
        assert client.written == {str(place.work / "a.txt"): "red\n"}
        waiting = asyncio.create_task(agent.prompt(session_id=session, prompt=[acp.text_block("wait")]))
        while count_processes(seconds) == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        await agent.cancel(session_id=session)
        assert (await waiting).stop_reason == "cancelled"
        changed = await agent.set_config_option("effort", session, "low")
        assert [option.current_value for option in changed.config_options if option.id == "effort"] == ["low"]
        await agent.set_session_mode(session, "plan")
        await agent.close_session(session)
        client.updates.clear()
        await agent.resume_session(session_id=session, cwd=str(place.work), mcp_servers=[])
        assert client.read_text() == ""
        await agent.load_session(session_id=session, cwd=str(place.work), mcp_servers=[])
        assert "done" in client.read_text()
        listed = await agent.list_sessions(cwd=str(place.work))
        assert [each.session_id for each in listed.sessions] == [session]
    assert process.returncode == 0
    assert (place.work / "a.txt").read_text() == "red\n"


def count_processes(word):
    """Count the processes with a word in their command line."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return sum(word in line for line in listed.splitlines() if "ps -eo" not in line)


@needs_acp
def test_the_end_of_the_pipe_ends_everything_and_the_session_can_be_resumed(place):
    seconds = f"61.{os.getpid()}"
    model = place.script({"text": "I wait.", "calls": [shell(f"sleep {seconds}")]}, "resumed")
    process = place.start("acp", "--model", model, stdin=subprocess.PIPE)

    def send(method, **params):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}) + "\n")
        process.stdin.flush()

    def read_until(wanted):
        while wanted not in (line := process.stdout.readline()):
            assert line, process.stderr.read()
        return json.loads(line)

    send("initialize", protocolVersion=1)
    read_until('"id": "initialize"')
    send("session/new", cwd=str(place.work), mcpServers=[])
    session = read_until('"id": "session/new"')["result"]["sessionId"]
    send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "go"}])
    read_until('"tool_call"')
    while count_processes(seconds) == 0:
        process.poll()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert '"stopReason": "cancelled"' in out or '"session/prompt"' not in out
    assert count_processes(seconds) == 0
    assert place.list_turn_ends() == ["cancelled"]
    done = place.run("run", "--model", model, "--resume", session, "go on")
    assert (done.returncode, done.stdout) == (0, "resumed\n"), done.stderr


@pytest.mark.parametrize("editor", ["zed", "jetbrains", "neovim", "emacs"])
def test_the_settings_of_an_editor(editor):
    text = format_config(editor, "mine", None)
    if editor in ("zed", "jetbrains"):
        entry = json.loads(text)["agent_servers"]["goose-like"]
        assert entry["args"] == ["acp", "--profile", "mine"]
        assert entry["command"].endswith("goose-like")
    else:
        assert '"--profile"' in text
        assert text.count("(") == text.count(")")
        assert text.count("{") == text.count("}")


def test_the_entry_of_the_registry_starts_this_version():
    entry = json.loads((ROOT / "docs/acp-registry.json").read_text())
    assert entry["version"] == __version__
    assert entry["distribution"]["uvx"] == {"package": f"goose-like[acp]=={__version__}", "args": ["acp"]}


@needs_acp
async def test_the_login_in_a_terminal_runs_what_the_editor_started_with_more_arguments(place):
    async with open_editor() as editor:
        started = await editor.start()
    setup = next(method for method in started["authMethods"] if method.get("type") == "terminal")
    done = place.run("acp", "--profile", "mine", *setup["args"])
    wanted = place.run("setup")
    assert (done.returncode, done.stdout, done.stderr) == (wanted.returncode, wanted.stdout, wanted.stderr)


def test_the_command_prints_settings_without_the_extra(place):
    done = place.run("acp", "--print-config", "zed")
    assert json.loads(done.stdout)["agent_servers"]["goose-like"]["type"] == "custom"


@needs_acp
def test_a_person_who_starts_the_command_is_told_how_an_editor_does(place):
    done = place.run("acp")
    assert (done.returncode, "goose-like acp --print-config zed" in done.stderr) == (2, True), done.stderr
