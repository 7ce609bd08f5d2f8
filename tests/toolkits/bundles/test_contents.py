"""The parts of bundles in the three layouts, and what is not used of them."""

from pathlib import Path
from typing import Any

import agent_plugins
import pytest
from goose_like_toolkits.bundles.contents import Contents, find_layout, read_contents
from goose_like_toolkits.bundles.sources import Place
from goose_like_toolkits.bundles.store import open_copy

from goose_like.core.errors import UsageError
from tests.toolkits.bundles.write_bundle import SCHEMAS, write, write_foreign, write_portable, write_servers
from tests.toolkits.skills.write_skill import write_skill


def read(root: Path, **entry: Any) -> Contents:
    return read_contents(root, entry)


@pytest.mark.parametrize("layout", ["claude", "codex"])
def test_the_layouts_of_other_agents_have_all_parts(tmp_path: Path, layout: str) -> None:
    contents = read(write_foreign(tmp_path, layout))
    bundle = contents.bundle
    assert (bundle.name, bundle.layout, bundle.version, bundle.description) == ("kit", layout, "1.0", "A kit.")
    assert bundle.skills == ("skills/notes/SKILL.md",)
    assert bundle.commands == {"git:log": "commands/git/log.md"}
    assert bundle.agents == ("agents/reader.md",)
    assert list(contents.hooks) == ["PreToolUse"]
    assert list(contents.servers) == ["tickets"]
    assert contents.servers["tickets"].get("cwd") == (None if layout == "claude" else "${PLUGIN_ROOT}")
    assert contents.problems == []


def test_a_portable_bundle_has_skills_and_servers_alone(tmp_path: Path) -> None:
    write_foreign(write_portable(tmp_path, surprise=1))
    write_servers(tmp_path, git={"type": "stdio", "command": "mcp-server-git", "args": ["${TOKEN}"]})
    write(tmp_path / "skills/deep/er/SKILL.md", "---\nname: er\ndescription: d\n---\nx")
    contents = read(tmp_path)
    assert contents.bundle.layout == "agent-plugins"
    assert contents.bundle.skills == (), "a key of other agents"
    assert (contents.bundle.commands, contents.bundle.agents, contents.hooks) == ({}, (), {})
    assert contents.servers["git"]["cwd"] == "${PLUGIN_ROOT}"
    assert contents.problems == [
        "the field 'surprise' is not in the specification, and has no effect",
        "skill skills/notes/SKILL.md: the key `version` is not in the specification",
    ]


@pytest.mark.parametrize(
    "manifest",
    [
        {"name": "My-Kit"},
        {"name": "a--b"},
        {"name": "a" * 65},
        {"name": ""},
        {"name": "../x"},
        {"name": 3},
        {"name": "kit", "keywords": [1]},
        {"name": "kit", "version": 1},
        {"name": "kit", "author": {"name": "x", "age": 3}},
        {"name": "kit", "$schema": f"{SCHEMAS.replace('1.0.0', '2.0.0')}/plugin.schema.json"},
    ],
)
def test_a_wrong_portable_manifest_refuses_the_bundle(tmp_path: Path, manifest: dict[str, Any]) -> None:
    write_portable(tmp_path, **manifest)
    with pytest.raises(UsageError):
        read(tmp_path)
    with pytest.raises(agent_plugins.ValidationError):
        _ = agent_plugins.Plugin(tmp_path).manifest.name


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"command": "x"}, "`type`"),
        ({"type": "http", "url": "https://x.example"}, "`type`"),
        ({"type": "stdio", "command": "x", "timeout": 3}, "'timeout' is no field"),
        ({"type": "stdio", "command": "../x"}, "`command` begins with ./"),
        ({"type": "stdio", "command": "./../x"}, "`command` begins with ./"),
        ({"type": "stdio", "command": "${PLUGIN_ROOT}/x"}, "`command` begins with ./"),
        ({"type": "stdio", "command": "/bin/x"}, "`command` begins with ./"),
        ({"type": "stdio", "command": "x", "cwd": "data"}, "`cwd` begins with ./"),
        ({"type": "stdio", "command": "x", "cwd": "${PLUGIN_DATA}/../x"}, "`cwd` leaves"),
        ({"type": "stdio", "command": "x", "args": "a b"}, "`args`"),
        ({"type": "stdio", "command": "x", "env": {"PLUGIN_DATA": "/"}}, "`env` must not set"),
        ({"type": "streamable-http", "url": "http://x.example"}, "https"),
        ({"type": "streamable-http", "url": "https://me@x.example"}, "without user"),
        ({"type": "sse", "url": "https://x.example#y"}, "fragment"),
        ({"type": "sse", "url": "https://x.example", "headers": {"A": "1", "a": "2"}}, "twice"),
    ],
)
def test_a_wrong_portable_server_is_left_out_alone(tmp_path: Path, entry: dict[str, Any], problem: str) -> None:
    write_portable(tmp_path)
    write_servers(tmp_path, bad=entry, good={"type": "streamable-http", "url": "http://127.0.0.1:1/mcp"})
    contents = read(tmp_path)
    assert list(contents.servers) == ["good"]
    theirs = agent_plugins.Plugin(tmp_path).mcp
    assert theirs
    assert list(theirs.servers) == ["good"]
    (text,) = contents.problems
    assert "'bad'" in text
    assert problem in text
    assert contents.bundle.skills == ("skills/notes/SKILL.md",)


def test_a_portable_program_and_folder_stay_in_the_bundle(tmp_path: Path) -> None:
    write_portable(tmp_path)
    write(tmp_path / "bin/run", "x")
    entry = {"type": "stdio", "command": "./bin/run", "cwd": "${PLUGIN_DATA}/x"}
    write_servers(tmp_path, run=entry)
    (server,) = read(tmp_path).servers.values()
    assert server["command"] == ["${PLUGIN_ROOT}/bin/run"]
    assert server["cwd"] == "${PLUGIN_DATA}/x"


def test_an_agent_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    write_foreign(tmp_path)
    write(tmp_path / "agents/plain.md", "You do it.")
    contents = read(tmp_path)
    assert contents.bundle.agents == ("agents/reader.md",)
    (problem,) = contents.problems
    assert problem.startswith("agent agents/plain.md: an agent file starts with ---")


def test_skills_are_checked_strictly(tmp_path: Path) -> None:
    write_foreign(tmp_path)
    write_skill(tmp_path / "skills", "other", "x" * 1_025)
    write(tmp_path / "skills/third/SKILL.md", "---\nname: Third\ndescription: d\n---\nx")
    contents = read(tmp_path)
    assert contents.bundle.skills == ("skills/notes/SKILL.md",)
    assert contents.problems == [
        "skill skills/other/SKILL.md: `description` has more than 1,024 characters",
        "skill skills/third/SKILL.md: `name` is 'Third', and the folder 'third'",
    ]


def test_a_manifest_adds_places_and_may_hold_hooks_and_servers(tmp_path: Path) -> None:
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}
    asked = {"command": "x", "env": {"KEY": "${user_config.key}"}}
    more = {
        "commands": ["./more/one.md", "../../etc"],
        "skills": "./extra/",
        "hooks": [hooks, "./hooks/hooks.json"],
        "mcpServers": {"other": {"command": "x"}, "asks": asked},
        "lspServers": {"x": {}},
    }
    root = write_foreign(tmp_path / "kit", **more)
    write(root / "more/one.md", "Do it.")
    write_skill(root / "extra", "second")
    contents = read(root)
    assert contents.bundle.commands == {"git:log": "commands/git/log.md", "one": "more/one.md"}
    assert contents.bundle.skills == ("skills/notes/SKILL.md", "extra/second/SKILL.md")
    assert list(contents.hooks) == ["Stop", "PreToolUse"]
    assert list(contents.servers) == ["tickets", "other"]
    assert len(contents.problems) == 3
    assert contents.problems[0] == "'../../etc' is not in the bundle"


def test_an_entry_of_a_marketplace_stands_for_a_missing_manifest(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_skill(tmp_path / "skills", name)
    contents = read(tmp_path, name="kit", skills=["./skills/two"])
    assert contents.bundle.skills == ("skills/two/SKILL.md",)
    assert find_layout(tmp_path) is None
    with pytest.raises(UsageError, match="this is no bundle"):
        read(tmp_path)


def test_other_files_of_that_name_are_no_manifest(tmp_path: Path) -> None:
    write(tmp_path / "plugin.json", {"name": "of another program"})
    assert find_layout(tmp_path) is None
    for text in ("{", "[" * 100_000):
        write(tmp_path / "plugin.json", text)
        with pytest.raises(UsageError, match="can't be read"):
            find_layout(tmp_path)


def test_a_copy_holds_no_link_and_nothing_from_elsewhere(tmp_path: Path, home: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("CANARY")
    root = write_foreign(tmp_path / "kit")
    (root / "inside.md").symlink_to("guard.sh")
    (root / "outside.md").symlink_to(secret)
    (root / "folder").symlink_to(tmp_path)
    write(root / ".git/config", "x")
    with open_copy(Place(root)) as (copy, contents):
        assert copy.name == "kit"
        copied = {str(file.relative_to(copy)) for file in copy.rglob("*") if file.is_file()}
        assert "inside.md" in copied
        assert not any(file.is_symlink() for file in copy.rglob("*"))
        assert not any(name.startswith((".git/", "outside", "folder")) for name in copied)
    assert contents.problems == [
        f"'{name}' is left out: it is no file of the bundle" for name in ("folder", "outside.md")
    ]
    assert list((home / "config/bundles").iterdir()) == []
