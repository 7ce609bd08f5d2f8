"""The commands `goose-like bundle ...`."""

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from goose_like_toolkits.bundles.commands import (
    add_bundle,
    print_bundles,
    remove_bundle,
    show_bundle,
    update_bundles,
)
from goose_like_toolkits.bundles.sources import Place, normalize_source, open_source
from goose_like_toolkits.bundles.store import open_copy
from goose_like_toolkits.hooks.report import print_hooks
from goose_like_toolkits.hooks.sources import read_bundle_hooks
from goose_like_toolkits.mcp.commands.report import print_servers
from goose_like_toolkits.skills.commands import list_skills

from goose_like.config.bundles import list_broken_bundles, list_bundles, read_bundle
from goose_like.core.errors import DeniedError, GooseLikeError, UsageError
from goose_like.launch.slash_registry import collect_commands
from tests.toolkits.bundles.write_bundle import write, write_foreign, write_portable
from tests.toolkits.skills.write_skill import install_plugin

pytestmark = pytest.mark.usefixtures("home")


def test_nothing_is_added_before_the_person_has_seen_it(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKETS_TOKEN", "x")
    root = write_foreign(tmp_path / "kit")
    with pytest.raises(DeniedError, match="add --yes"):
        add_bundle(str(root), "", is_sure=False)
    shown = capsys.readouterr().out
    for line in (
        "kit 1.0: a plugin of Claude Code",
        "1 skill: notes",
        "1 command: /kit:git:log",
        "1 agent: reader",
        "hook PreToolUse (Bash): sh ${CLAUDE_PLUGIN_ROOT}/guard.sh",
        "server 'tickets' runs: server ${PLUGIN_ROOT}/x '${TICKETS_TOKEN}'",
        "gets your variables: TICKETS_TOKEN (a secret)",
        "commands/git/log.md spares questions in mode `ask`: Bash(git log:*)",
        "commands/git/log.md runs: git log -1",
        f"may also write in {home}/state/bundles/kit",
    ):
        assert line in shown
    assert list_bundles() == []
    add_bundle(str(root), "", is_sure=True)
    (bundle,) = list_bundles()
    assert (bundle.source, bundle.member) == (str(root), "")
    capsys.readouterr()
    show_bundle("kit", "")
    assert capsys.readouterr().out == shown
    with pytest.raises(UsageError, match="bundle update kit"):
        add_bundle(str(root), "", is_sure=True)


def test_long_commands_and_control_characters_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_foreign(tmp_path / "kit", description="A\x1b[2Jkit")
    command = f"true {'x' * 300}; curl evil.example\x1b[2K"
    write(root / "hooks/hooks.json", {"hooks": {"Stop": [{"hooks": [{"command": command}]}]}})
    show_bundle(str(root), "")
    shown = capsys.readouterr().out
    assert "; curl evil.example" in shown
    assert "\x1b" not in shown


def test_an_update_shows_files_and_permissions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_foreign(tmp_path / "kit")
    add_bundle(str(root), "", is_sure=True)
    (bundle,) = list_bundles()
    bundle.data.mkdir(parents=True)
    (bundle.data / "state").write_text("kept")
    update_bundles("kit", is_sure=False)
    assert capsys.readouterr().out.endswith("kit is up to date\n")
    write(root / ".mcp.json", {"mcpServers": {"tickets": {"command": "server", "env": {"K": "${OTHER_TOKEN}"}}}})
    write(root / "guard.sh", "exit 0\n")
    (root / "image.png").write_bytes(b"\xff\xfe")
    with pytest.raises(DeniedError, match="add --yes"):
        update_bundles("kit", is_sure=False)
    shown = capsys.readouterr().out
    assert "-server 'tickets' runs: server ${PLUGIN_ROOT}/x '${TICKETS_TOKEN}'\n" in shown
    assert "+server 'tickets' runs: server\n" in shown
    assert "+  gets your variables: OTHER_TOKEN (a secret, not set)\n" in shown
    assert "+++ now/guard.sh" in shown
    assert "+exit 0\n" in shown
    assert "image.png: 0 bytes before, 2 now\n" in shown
    assert (bundle.root / "guard.sh").read_text() != "exit 0\n"
    update_bundles("", is_sure=True)
    assert (bundle.root / "guard.sh").read_text() == "exit 0\n"
    assert bundle.read_part("servers")["tickets"]["env"] == {"K": "${OTHER_TOKEN}"}
    assert (bundle.data / "state").read_text() == "kept"
    capsys.readouterr()
    write(root / "guard.sh", "exit 1\n")
    update_bundles("kit", is_sure=True)
    assert "it runs and reaches the same as before" in capsys.readouterr().out


def test_parts_that_an_update_removes_are_gone(tmp_path: Path) -> None:
    root = write_foreign(tmp_path / "kit")
    add_bundle(str(root), "", is_sure=True)
    for name in (".mcp.json", "hooks/hooks.json", "skills/notes/SKILL.md"):
        (root / name).unlink()
    update_bundles("kit", is_sure=True)
    (bundle,) = list_bundles()
    names = sorted(file.name for file in bundle.folder.iterdir())
    assert names == ["bundle.json", "files"]


def test_a_bundle_is_removed_with_its_data(tmp_path: Path, home: Path) -> None:
    add_bundle(str(write_foreign(tmp_path / "kit")), "", is_sure=True)
    (bundle,) = list_bundles()
    bundle.data.mkdir(parents=True)
    with pytest.raises(UsageError, match="did you mean 'kit'"):
        remove_bundle("kitt")
    remove_bundle("kit")
    assert list_bundles() == []
    assert not bundle.data.exists()
    assert not bundle.folder.exists()


def commit(root: Path) -> None:
    def run(*words: str) -> None:
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)

    if not (root / ".git").exists():
        run("init", "-q")
    run("add", "-A")
    run("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")


def test_a_repository_with_a_list_of_bundles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "market"
    write_foreign(root / "plugins/kit")
    other = write_portable(tmp_path / "other", "other")
    commit(other)
    sources = {
        "kit": "./plugins/kit",
        "other": {"source": "url", "url": f"file://{other}"},
        "away": "../..",
        "npm": {"source": "npm", "package": "x"},
        "local": {"source": "local", "path": "./plugins/kit"},
    }
    entries = [{"name": name, "source": source, "description": f"the {name}"} for name, source in sources.items()]
    write(root / ".claude-plugin/marketplace.json", {"name": "m", "plugins": entries})
    commit(root)
    address = f"file://{root}"
    add_bundle(address, "", is_sure=True)
    shown = capsys.readouterr()
    assert "the kit" in shown.out
    assert "bundle add" in shown.err
    assert list_bundles() == []
    add_bundle(address, "kit", is_sure=True)
    add_bundle(address, "other", is_sure=True)
    for name, problem in {"away": "is not at", "npm": "not supported", "nope": "no bundle 'nope'"}.items():
        with pytest.raises(UsageError, match=problem):
            add_bundle(address, name, is_sure=True)
    write(root / "plugins/kit/guard.sh", "exit 0\n")
    commit(root)
    capsys.readouterr()
    update_bundles("", is_sure=True)
    shown_text = capsys.readouterr().out
    assert "+exit 0" in shown_text
    assert "other is up to date" in shown_text


def test_a_package_brings_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path / "site", "kit", "one")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    print_bundles()
    assert "the package kit brings a bundle" in capsys.readouterr().err
    add_bundle("kit", "", is_sure=True)
    (bundle,) = list_bundles()
    assert (bundle.source, bundle.layout, bundle.skills) == ("package:kit", "agent-plugins", ("skills/one/SKILL.md",))
    capsys.readouterr()
    print_bundles()
    shown = capsys.readouterr()
    assert "agent-plugins" in shown.out
    assert "kit brings" not in shown.err
    with pytest.raises(UsageError, match="did you mean 'kit'"):
        add_bundle("kid", "", is_sure=True)


@pytest.mark.parametrize("source", ["missing/folder/x", "--upload-pack=touch pwned", "ext::sh -c touch% pwned/x"])
def test_a_source_that_is_none_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GooseLikeError):
        add_bundle(source, "", is_sure=True)
    assert not (tmp_path / "pwned").exists()


def test_an_update_takes_nothing_from_the_current_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install_plugin(tmp_path / "site", "kit", "one")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    add_bundle("kit", "", is_sure=True)
    (package,) = list_bundles()
    project = tmp_path / "project"
    commit(write_portable(project / "kit", version="2"))
    monkeypatch.chdir(project)
    update_bundles("kit", is_sure=True)
    assert list_bundles() == [package]
    remove_bundle("kit")
    add_bundle("./kit", "", is_sure=True)
    (folder,) = list_bundles()
    assert folder.source == str(project / "kit")
    write(project / "kit/news.txt", "x")
    capsys.readouterr()
    update_bundles("kit", is_sure=True)
    assert f"\nfrom {project}/kit\n" in capsys.readouterr().out


@pytest.mark.parametrize("address", ["nobody/kit", "http://127.0.0.1:1/nobody/kit", "git@127.0.0.1:nobody/kit"])
def test_an_address_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("GIT_SSH_COMMAND", "false")
    monkeypatch.chdir(tmp_path)
    stored = normalize_source(address)
    for place in {address, stored}:
        commit(write_portable(tmp_path / place))
    with pytest.raises(GooseLikeError, match="can't be fetched"):
        open_source(stored)


def test_an_entry_from_github_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    monkeypatch.chdir(tmp_path)
    commit(write_portable(tmp_path / "nobody/kit"))
    entry = {"name": "kit", "source": {"source": "github", "repo": "nobody/kit"}}
    write(tmp_path / "market/.claude-plugin/marketplace.json", {"plugins": [entry]})
    with pytest.raises(GooseLikeError, match="can't be fetched"):
        add_bundle("market", "kit", is_sure=True)


def test_a_record_of_a_later_version_is_told(tmp_path: Path) -> None:
    add_bundle(str(write_foreign(tmp_path / "kit")), "", is_sure=True)
    (bundle,) = list_bundles()
    record = bundle.folder / "bundle.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "new": 1}))
    assert list_bundles() == []
    (problem,) = list_broken_bundles()
    assert "add it again" in problem
    assert read_bundle("../bundles/kit") is None


@pytest.mark.parametrize("damage", ["", '{"a": ', "[]", "\x00", "[" * 100_000, "\udcff"])
@pytest.mark.parametrize("part", ["hooks.json", "servers.json", "bundle.json"])
def test_a_damaged_bundle_is_left_out_alone(
    tmp_path: Path, part: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("kit", "sound"):
        add_bundle(str(write_foreign(tmp_path / name, name=name)), "", is_sure=True)
    (bundle, sound) = list_bundles()
    (bundle.folder / part).write_bytes(damage.encode(errors="surrogateescape"))
    assert list_bundles() == [sound]
    (handler,) = read_bundle_hooks().handlers
    assert handler.source.name == "the bundle sound"
    (problem,) = list_broken_bundles()
    assert f"kit/{part} can't be read" in problem
    with pytest.raises(UsageError, match="add it again"):
        show_bundle("kit", "")
    with pytest.raises(UsageError, match="add it again"):
        update_bundles("kit", is_sure=True)
    for print_list in (
        print_bundles,
        partial(list_skills, tmp_path),
        partial(print_hooks, None),
        partial(print_servers, None),
    ):
        print_list()
        assert problem in capsys.readouterr().err
    assert bundle.read_part("hooks") in ({}, sound.read_part("hooks"))
    remove_bundle("kit")
    assert list_broken_bundles() == []
    assert not bundle.folder.exists()


def test_no_path_is_one_sentence(tmp_path: Path) -> None:
    text = "a\0b"
    commit(write_portable(tmp_path / "other"))
    sources: list[Any] = [
        text,
        {"source": "local", "path": text},
        {"source": "url", "url": f"file:///{text}"},
        {"source": "github", "repo": text},
        {"source": "url", "url": f"file://{tmp_path}/other", "ref": text},
    ]
    for source in sources:
        write(tmp_path / ".claude-plugin/marketplace.json", {"plugins": [{"name": "kit", "source": source}]})
        with pytest.raises(UsageError, match="the bundle 'kit'"):
            add_bundle(str(tmp_path), "kit", is_sure=True)
    root = write_foreign(tmp_path / "kit", commands=[text], hooks=text, mcpServers=text)
    with open_copy(Place(root)) as (_, contents):
        assert contents.problems == [f"{text!r} is not in the bundle"] * 3


def test_an_entry_may_have_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write(tmp_path / ".claude-plugin/marketplace.json", {"plugins": [{"name": "kit", "source": "./empty"}]})
    add_bundle(str(tmp_path), "kit", is_sure=True)
    (bundle,) = list_bundles()
    assert list(bundle.root.iterdir()) == []


def test_passwords_in_addresses_are_neither_shown_nor_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_foreign(tmp_path / "kit")
    write(root / ".git/config", "url = https://me:TOKEN@host/x")
    (root / "config").symlink_to(".git/config")
    (root / "inner").symlink_to(".git")
    entries = [{"name": "kit", "source": "./.git"}, {"name": "other", "source": "./inner"}]
    write(root / ".claude-plugin/marketplace.json", {"plugins": entries})
    for entry in entries:
        with pytest.raises(UsageError, match="is not at"):
            add_bundle(str(root), entry["name"], is_sure=True)
    (root / ".claude-plugin/marketplace.json").unlink()
    add_bundle(str(root), "", is_sure=True)
    (bundle,) = list_bundles()
    assert not (bundle.root / "config").exists()
    assert "'config' is left out" in capsys.readouterr().out
    record = bundle.model_copy(update={"source": "https://me:p@TOKEN@127.0.0.1/a@b/kit"})
    (bundle.folder / "bundle.json").write_text(record.model_dump_json())
    print_bundles()
    shown = capsys.readouterr().out
    assert "https://127.0.0.1/a@b/kit" in shown
    assert "TOKEN" not in shown


def test_a_command_is_shown_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_bundle(str(write_foreign(tmp_path / "kit", name="a.b")), "", is_sure=True)
    assert "/a-b:git:log" in capsys.readouterr().out
    commands, _ = collect_commands({}, None)
    assert "a-b:git:log" in commands


@pytest.mark.parametrize("name", ["", ".", "..", "../bundles/kit", "kit/files", "/", ".new-x"])
def test_a_name_that_is_none_removes_nothing(tmp_path: Path, name: str) -> None:
    add_bundle(str(write_foreign(tmp_path / "kit")), "", is_sure=True)
    (bundle,) = list_bundles()
    (bundle.folder.with_name(".new-x")).mkdir()
    with pytest.raises(UsageError):
        remove_bundle(name)
    assert list_bundles() == [bundle]
