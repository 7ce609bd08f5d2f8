"""The state of trusted files: a start that finds it unchanged reads no file, and any change is noticed."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from goose_like.config import file_state, trust
from goose_like.config.paths import state_folder
from goose_like.config.trust import (
    FolderTrust,
    ProjectConfig,
    StoredApproval,
    load_trusted_project,
    load_unchanged_project,
    read_project_config,
    trust_project,
)
from goose_like.core.errors import GooseLikeError

NAME = ".claude/commands/fix.md"
TICK_S = 0.02
"""More than the step of the clock that files get their times from."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a command that somebody trusts."""
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    file = root / NAME
    file.parent.mkdir(parents=True)
    file.write_text("say one")
    project = read_project_config(root)
    assert project
    trust_project(project)
    return root


@pytest.fixture
def known(root: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectConfig:
    """The project, after a start that compared its files with the trusted ones."""
    monkeypatch.setattr(file_state, "SETTLED_NS", 0)
    time.sleep(TICK_S)
    project = load_trusted_project(root)
    assert project
    return project


def test_unchanged_files_are_known(known, root):
    assert known.files == {NAME: "say one"}
    assert load_unchanged_project(root) == known
    assert load_unchanged_project(root.parent) is None


def test_a_file_that_changed_a_moment_ago_is_read_again(root):
    assert load_trusted_project(root)
    assert load_unchanged_project(root) is None


@pytest.mark.parametrize("written_ns", [-1, 10**19])
def test_a_file_may_have_any_time(known, root, written_ns):
    os.utime(root / NAME, ns=(0, written_ns))
    time.sleep(TICK_S)
    assert load_unchanged_project(root) is None
    assert load_trusted_project(root) == known
    assert load_unchanged_project(root) == known


def write_same_size(file: Path) -> None:
    status = file.stat()
    file.write_text("say two")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_another(file: Path) -> None:
    status = file.stat()
    other = file.with_name("other")
    other.write_text("say two")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.rename(other, file)


def make_link(file: Path) -> None:
    file.rename(file.parent.parent / "moved.md")
    file.symlink_to("../moved.md")


CHANGES: dict[str, Callable[[Path], object]] = {
    "equal size and time": write_same_size,
    "another file": replace_by_another,
    "longer": lambda file: file.write_text("say one and two"),
    "deleted": Path.unlink,
    "a link": make_link,
    "a new file": lambda file: file.with_name("new.md").write_text("say new"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_are_noticed(known, root, change):
    change(root / NAME)
    assert load_unchanged_project(root) is None
    assert load_trusted_project(root) is None


def test_the_trusted_text_is_used_whatever_the_state_says(known, root):
    (root / NAME).write_text("say something else")
    time.sleep(TICK_S)
    changed = read_project_config(root)
    assert changed
    file_state.keep_state(root, changed.state)
    assert load_unchanged_project(root) == known


def test_the_person_may_change_their_mind(known, root):
    trust.revoke(root)
    assert load_unchanged_project(root) is None
    assert load_trusted_project(root) is None


def test_files_that_cannot_be_read_are_named_at_each_start(known, root):
    (root / NAME).with_name("broken.md").write_bytes(b"\xff")
    time.sleep(TICK_S)
    for _ in range(2):
        assert load_unchanged_project(root) is None
        project = load_trusted_project(root)
        assert project
        assert project.skipped


@pytest.mark.parametrize("text", ["", "[]", "{", "{}"])
def test_a_broken_file_of_states_counts_as_none(known, root, text):
    file = state_folder() / "trusted-files.json"
    assert json.loads(file.read_text())
    file.write_text(text)
    assert load_unchanged_project(root) is None
    assert load_trusted_project(root) == known
    assert load_unchanged_project(root) == known


def test_a_trust_file_that_changed_meanwhile_is_read_again(known, root, monkeypatch):
    file = trust.config_folder() / "trust.json"
    for text in ('{"folders": {}}', json.dumps({"folders": {str(root): {"files": None}}})):
        file.write_text(text)
        time.sleep(TICK_S)
        changed = read_project_config(root)
        assert changed
        file_state.keep_state(root, changed.state)
        assert load_unchanged_project(root) is None


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_trust_file_is_an_error(known, root, text):
    (trust.config_folder() / "trust.json").write_text(text)
    time.sleep(TICK_S)
    changed = read_project_config(root)
    assert changed
    file_state.keep_state(root, changed.state)
    with pytest.raises(GooseLikeError, match=r"trust\.json can't be read"):
        load_unchanged_project(root)


def reload_trust() -> Mapping[Path, FolderTrust]:
    """Read the trust file as another process does."""
    trust._parse_trust_file.cache_clear()
    return trust.load_trust()


def test_a_trust_file_is_checked_once(known, root):
    trust.store_approval(root, StoredApproval(kind="command", subject="make"))
    trust.store_rule(root, "git push", "ask")
    trust.store_check(root, "make check", may_run=True)
    trust.store_reading(root.parent, is_read=False)
    time.sleep(TICK_S)
    checked = reload_trust()
    known_one = reload_trust()
    assert type(known_one) is not type(checked)
    assert dict(known_one) == checked
    assert len(known_one) == 2
    trust.store_check(root, "make check", may_run=None)
    changed = reload_trust()
    assert changed[root].approvals == checked[root].approvals
    assert changed[root].checks == {}


def test_a_trust_file_that_changed_a_moment_ago_is_checked_at_each_start(root):
    assert type(reload_trust()) is type(reload_trust()) is dict


@pytest.mark.parametrize("text", ['{"folders": {"/a": {"files": 3}}}', '{"folders": {"/a": {"other": {}}}}', "[]"])
def test_a_trust_file_is_checked_after_each_change_and_by_each_version(known, root, text):
    file = trust.config_folder() / "trust.json"
    assert root in reload_trust()
    file.write_text(text)
    time.sleep(TICK_S)
    for _ in range(2):
        with pytest.raises(GooseLikeError, match=r"trust\.json can't be read"):
            reload_trust()
    state = file_state.describe_state({str(file): file.stat()})
    file_state.keep_state(file, f"0.0 {state}")
    with pytest.raises(GooseLikeError, match=r"trust\.json can't be read"):
        reload_trust()


def test_permissions_that_another_process_stores_are_seen(known, root):
    answer = StoredApproval(kind="command", subject="make")
    assert trust.load_folder_trust(root).approvals == ()
    script = "import sys; from pathlib import Path; from goose_like.config.trust import *; "
    script += "store_approval(Path(sys.argv[1]), StoredApproval(kind='command', subject='make'))"
    subprocess.run([sys.executable, "-c", script, str(root)], check=True)
    assert trust.load_folder_trust(root).approvals == (answer,)


def test_each_worktree_has_its_own_state(known, root):
    tree = root / ".goose-like/worktrees/one"
    (tree / ".git").mkdir(parents=True)
    (tree / NAME).parent.mkdir(parents=True)
    (tree / NAME).write_text("say one")
    time.sleep(TICK_S)
    assert load_trusted_project(tree) == replace(known, root=tree)
    assert load_unchanged_project(tree) == replace(known, root=tree)
    assert load_unchanged_project(root) == known
