"""The parts of a bundle in a session: each toolkit takes them as one more source of its own."""

import sys
from pathlib import Path

import pytest
from goose_like_toolkits.bundles.commands import add_bundle, remove_bundle
from goose_like_toolkits.delegate.kinds import load_kinds
from goose_like_toolkits.hooks.sources import read_bundle_hooks
from goose_like_toolkits.mcp.commands.trying import try_server
from goose_like_toolkits.mcp.config import expand_server, load_servers
from goose_like_toolkits.skills.catalog import find_skills, read_skill
from goose_like_toolkits.skills.skill_text import write_skill as write_skill_text

from goose_like.agent.present_toolkits import find_present_toolkits
from goose_like.config.bundles import list_bundles
from goose_like.config.profile import Profile
from goose_like.core.errors import UsageError
from goose_like.core.notifier import Recorder
from goose_like.launch.slash_registry import collect_commands
from tests.toolkits.bundles.write_bundle import write, write_foreign, write_portable, write_servers
from tests.toolkits.hooks.harness import open_place, shell
from tests.toolkits.mcp.sessions import open_session
from tests.workspace.workspace_harness import needs_sandbox

_SERVER = """
import os, pathlib
from mcp.server import MCPServer

server = MCPServer("notes")


@server.tool()
def keep(text: str) -> str:
    "Keep a text."
    file = pathlib.Path(os.environ["PLUGIN_DATA"], "notes")
    file.open("a").write(text)
    return f"{file.read_text()} in {os.getcwd()}"


server.run()
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return folder


def test_a_session_has_the_parts_until_the_bundle_is_removed(root: Path, tmp_path: Path) -> None:
    assert find_present_toolkits(root, None, Recorder()) == []
    add_bundle(str(write_foreign(tmp_path / "kit")), "", is_sure=True)
    (bundle,) = list_bundles()
    assert sorted(find_present_toolkits(root, None, Recorder())) == ["hooks", "mcp", "skills"]
    skill = find_skills(None).skills["notes"]
    assert (skill.owner, skill.package) == ("bundle", "kit")
    assert f"Read {bundle.root}/style.md." in write_skill_text(skill, read_skill(skill, None))
    commands, problems = collect_commands({}, None)
    assert commands["kit:git:log"].source == str(bundle.root / "commands/git/log.md")
    assert problems == []
    profile = Profile.model_validate({"name": "x", "toolkits": ["developer"]})
    kinds, problems = load_kinds(None, profile)
    assert kinds["reader"].prompt == "You read."
    assert problems == []
    remove_bundle("kit")
    assert find_present_toolkits(root, None, Recorder()) == []


def test_a_server_of_a_bundle_gets_variables_but_no_stored_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_bundle(str(write_foreign(tmp_path / "kit")), "", is_sure=True)
    (bundle,) = list_bundles()
    ((server,), problems) = load_servers({}, None)
    assert problems == []
    assert server.is_projects
    with pytest.raises(UsageError, match="TICKETS_TOKEN"):
        expand_server(server)
    monkeypatch.setenv("TICKETS_TOKEN", "abcdefgh")
    assert expand_server(server).command == ("server", f"{bundle.root}/x", "abcdefgh")
    assert server.variables["PLUGIN_DATA"] == str(bundle.data)


def test_only_two_places_are_filled_in_portable_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    root = write_portable(tmp_path / "kit")
    entry = {"type": "stdio", "command": "x", "args": ["${HOME}", "~", "${PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}"]}
    write_servers(root, x=entry)
    add_bundle(str(root), "", is_sure=True)
    (bundle,) = list_bundles()
    ((server,), _) = load_servers({}, None)
    assert expand_server(server).command == ("x", "${HOME}", "~", str(bundle.root), "${CLAUDE_PLUGIN_ROOT}")
    assert expand_server(server).folder == str(bundle.root)


@needs_sandbox
async def test_a_server_keeps_data_in_its_sandbox(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    kit = write_portable(tmp_path / "kit")
    write(kit / "server.py", _SERVER)
    write_servers(kit, notes={"type": "stdio", "command": Path(sys.executable).name, "args": ["./server.py"]})
    write(kit / "mcp.json", (kit / "mcp.json").read_text().replace("./server.py", "${PLUGIN_ROOT}/server.py"))
    add_bundle(str(kit), "", is_sure=True)
    (bundle,) = list_bundles()
    async with open_session(root, {}, sandbox="workspace") as place:
        await place.call("find_tools", query="keep")
        output = await place.call("call_tool", name="mcp__notes__keep", arguments={"text": "one"})
        assert output == f"one in {bundle.root}"
    async with open_session(root, {}, sandbox="workspace") as place:
        output = await place.call("mcp__notes__keep", text="two")
        assert output == f"onetwo in {bundle.root}"
    assert (bundle.data / "notes").read_text() == "onetwo"


@needs_sandbox
def test_a_server_can_be_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    kit = write_portable(tmp_path / "kit")
    write(kit / "server.py", _SERVER)
    write_servers(kit, notes={"type": "stdio", "command": Path(sys.executable).name, "args": ["server.py"]})
    write(kit / "mcp.json", (kit / "mcp.json").read_text().replace("server.py", "${PLUGIN_ROOT}/server.py"))
    add_bundle(str(kit), "", is_sure=True)
    try_server("notes", None, is_accepted=False)
    assert "keep" in capsys.readouterr().out


@needs_sandbox
async def test_a_hook_judges_calls_in_its_sandbox(root: Path, tmp_path: Path) -> None:
    add_bundle(str(write_foreign(tmp_path / "kit", mcpServers={}, description="x")), "", is_sure=True)
    (bundle,) = list_bundles()
    async with open_place({}, sandbox="workspace") as place:
        (output,) = await place.run(shell(f"touch {bundle.data}/mine"))
        assert f"no, says {bundle.root}" in output
    assert (bundle.data / "time").exists()
    assert not (bundle.data / "mine").exists()
    assert all(handler.is_confined for handler in read_bundle_hooks().handlers)


@needs_sandbox
async def test_commands_of_the_model_do_not_reach_the_data(root: Path, tmp_path: Path) -> None:
    add_bundle(str(write_portable(tmp_path / "kit")), "", is_sure=True)
    (bundle,) = list_bundles()
    bundle.data.mkdir(parents=True)
    async with open_place(sandbox="workspace") as place:
        await place.run(shell(f"touch {bundle.data}/mine {bundle.root}/mine; ls {bundle.root}"))
    assert list(bundle.data.iterdir()) == []
    assert not (bundle.root / "mine").exists()
