"""Whose hooks run, and what the command `goose-like hooks` says of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from goose_like_toolkits.hooks import report
from goose_like_toolkits.hooks.sources import (
    forget_hooks,
    read_copied_hooks,
    read_profile_hooks,
    read_project_hooks,
)
from goose_like_toolkits.hooks.toolkit import HooksToolkit

from goose_like.config.project_files import has_project_files
from goose_like.config.trust import ProjectConfig, load_trusted_project, read_project_config, trust_project
from goose_like.core.errors import ProfileError, UsageError

from .harness import hook, open_place

TOML = """
model = "x"
[[hooks.PreToolUse]]
matcher = "^Bash$"
[[hooks.PreToolUse.hooks]]
type = "command"
command = "check"
timeout = 5
[hooks.state."x"]
trusted_hash = "sha256:0"
"""


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return folder


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def settings(command: str = "check", **more: Any) -> str:
    return json.dumps({"hooks": {"PreToolUse": hook(command)}, **more})


def trust(root: Path) -> ProjectConfig:
    project = read_project_config(root)
    assert project
    trust_project(project)
    return project


def test_a_project_needs_trust_for_exactly_these_hooks(root: Path) -> None:
    file = write(root, ".claude/settings.json", '{"permissions": {}}')
    assert not has_project_files(root), "no hooks, so no question"
    file.write_text(settings())
    assert load_trusted_project(root) is None
    trust(root)
    assert len(read_project_hooks(load_trusted_project(root)).handlers) == 1
    assert HooksToolkit.is_present(root, load_trusted_project(root))
    file.write_text(settings("other"))
    assert load_trusted_project(root) is None


async def test_a_file_that_changes_before_the_first_event_has_no_effect(root: Path) -> None:
    def write_hooks(name: str) -> None:
        events = {event: hook(f"touch {name}") for event in ("SessionStart", "UserPromptSubmit", "Stop")}
        write(root, ".claude/settings.json", json.dumps({"hooks": events}))

    write_hooks("trusted")
    project = trust(root)
    async with open_place(files=project.files) as place:
        write_hooks("changed")
        await place.run()
    assert (root / "trusted").exists()
    assert not (root / "changed").exists()


def test_the_files_of_a_project(root: Path) -> None:
    write(root, ".claude/settings.json", "\ufeff" + settings("a"))
    write(root, ".codex/hooks.json", settings("b"))
    write(root, ".codex/config.toml", TOML)
    found = read_project_hooks(trust(root))
    assert found.problems == ()
    assert [(each.command, each.source.format, each.is_confined) for each in found.handlers] == [
        ("a", "claude", True),
        ("check", "codex", True),
        ("b", "codex", True),
    ]
    assert found.handlers[1].limit_s == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{hooks", "can't be read"),
        ('{"hooks": ' + "[" * 100_000, "can't be read"),
        ('["hooks"]', "it is no mapping"),
        ('{"hooks": []}', ""),
        ('{"hooks": {}, "disableAllHooks": true}', ""),
        ('{"hooks": {"WorktreeCreate": []}}', "there is no event 'WorktreeCreate' here"),
        ('{"hooks": {"Stop": {}}}', "Stop has no list"),
        ('{"hooks": {"Stop": [{}]}}', "a group of Stop has no list `hooks`"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "prompt"}]}]}}', "hooks of the type 'prompt' do not run here (Stop)"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": "http"}]}]}}', "a hook of Stop has no `url`"),
        ('{"hooks": {"Stop": [{"hooks": [{"command": 5}]}]}}', "`command` of a hook of Stop can't be 5"),
    ],
)
async def test_what_is_not_used_is_named_once(root: Path, text: str, problem: str) -> None:
    write(root, ".claude/settings.json", text)
    project = trust(root)
    async with open_place(files=project.files) as place:
        await place.run()
        await place.run()
        named = [line for line in place.logged if ".claude/settings.json" in line]
        assert len(named) == (1 if problem else 0)
        assert not problem or problem in named[0]


@pytest.mark.parametrize(
    ("config", "problem", "place"),
    [
        ({"PreToolUs": []}, "did you mean 'PreToolUse'?", ("PreToolUs",)),
        ({"Stop": [{"hooks": [{"comand": "x"}]}]}, "did you mean 'command'?", ("Stop", 0, "hooks", 0, "comand")),
        ({"Stop": [{"match": "", "hooks": []}]}, "did you mean 'matcher'?", ("Stop", 0, "match")),
    ],
)
def test_a_mistake_in_a_profile(config: Any, problem: str, place: Any) -> None:
    with pytest.raises(ProfileError) as raised:
        read_profile_hooks(config)
    assert problem in str(raised.value)
    assert raised.value.path == ("config", *place)


def test_files_of_the_person_run_only_as_they_were_taken_over(tmp_path: Path, capsys: Any) -> None:
    file = write(tmp_path / "person", ".claude/settings.json", settings())
    assert read_copied_hooks().handlers == ()
    with pytest.raises(UsageError, match="add --yes"):
        report.take_over(file, is_sure=False)
    assert read_copied_hooks().handlers == ()
    report.take_over(file, is_sure=True)
    (handler,) = read_copied_hooks().handlers
    assert (handler.command, handler.is_confined, handler.source.format) == ("check", False, "claude")
    assert HooksToolkit.is_present(tmp_path, None)

    file.write_text(settings("evil"))
    found = read_copied_hooks()
    assert [each.command for each in found.handlers] == ["check"], "the copy"
    assert "has other hooks than you took over" in found.problems[0]

    forget_hooks(file)
    assert read_copied_hooks().handlers == ()
    with pytest.raises(UsageError, match="are not used"):
        forget_hooks(file)


def test_the_list(root: Path, tmp_path: Path, capsys: Any) -> None:
    write(root, ".claude/settings.json", settings("of the project"))
    write(tmp_path / "person", ".codex/config.toml", TOML)
    report.print_hooks(None)
    out = capsys.readouterr().out
    assert "no: goose-like trust add" in out
    assert "no: goose-like hooks use" in out
    trust(root)
    report.take_over(tmp_path / "person/.codex/config.toml", is_sure=True)
    capsys.readouterr()
    report.print_hooks(None)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[-3:] for row in rows] == [["with", "your", "rights"], ["in", "the", "sandbox"]]


async def test_a_trial(root: Path, capsys: Any) -> None:
    write(root, ".claude/settings.json", settings("jq -r .tool_name >&2; exit 2"))
    assert await report.print_trial("PreToolUse", "shell", "{}", None) == 0
    assert "first: goose-like trust add" in capsys.readouterr().err
    trust(root)
    await report.print_trial("PreToolUse", "shell", '{"command": "ls"}', None)
    assert "effect: the call is denied: Bash\n" in capsys.readouterr().out
    await report.print_trial("Stop", "shell", "{}", None)
    assert "no hook matches Stop" in capsys.readouterr().err
    with pytest.raises(UsageError, match="did you mean 'PreToolUse'"):
        await report.print_trial("PreTool", "shell", "{}", None)
    with pytest.raises(UsageError, match="--input is no JSON"):
        await report.print_trial("Stop", "shell", "x", None)
