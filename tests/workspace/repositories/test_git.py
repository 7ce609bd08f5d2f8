"""Settings files of git, read by us and by git itself."""

import shutil
import subprocess
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from goose_like.workspace.repositories.file_copy import FileCopy, FileEdit, read_copy
from goose_like.workspace.repositories.git import (
    drop_dangerous_settings,
    is_harmless_key,
    list_dangers,
    list_decisive_files,
    read_settings,
)

LINES = st.sampled_from(
    [
        *("[core]", '[remote "a.b"]', '[remote "x\\"]y"]', "[CORE]", "[alias.b]", "[core] # [alias]", "[a]b=c", "["),
        *("name = value", "name", "\tname=a # b", 'name = "a ; b"', "name = a\\", 'name = "a\\nb"', "na me = b"),
        *("# name = b", "; [alias]", "fsmonitor = evil", "fsMonitor=evil", "Url = x", "", " ", "\\", '"', "[core"),
        *("= x", "[]", "\x0b[b]"),
    ]
)  # fmt: skip
TEXTS = st.lists(LINES | st.text('[]"\\=#; \t\r\x00\x0cabA.-é\ufeff', max_size=12), max_size=8)


@given(TEXTS, st.sampled_from(["\n", "\r\n", "\\\n"]))
@example(["[core]", "fsmonitor = a\\", "pager = b"], "\n")
@example(['[remote "x\\"]y"]', "name = value"], "\n")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_key_that_git_sees_is_missing(tmp_path: Path, lines: list[str], end: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(end.join([*lines, ""]).encode(errors="replace"))
    line = ["git", "config", "--file", file, "--no-includes", "--null", "--name-only", "--list"]
    done = subprocess.run(line, capture_output=True, check=False)
    ours = read_settings(read_copy(file))
    if done.returncode == 0 and ours is not None:
        keys = {key.decode(errors="surrogateescape").lower() for key in done.stdout.split(b"\0") if key}
        assert {key for key in keys if not is_harmless_key(key)} <= {key for key, _ in ours}


def test_ordinary_settings_are_read(tmp_path: Path) -> None:
    for words in (["init", "-q"], ["remote", "add", "a", "https://b/c"], ["config", "user.name", 'Ann "A" # 1']):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    pairs = read_settings(read_copy(tmp_path / ".git/config"))
    assert pairs is not None
    assert ("remote.a.url", "https://b/c") in pairs
    assert all(is_harmless_key(key) for key, _ in pairs)


def test_a_changed_value_is_another_pair() -> None:
    assert read_settings(as_copy(b"[core]\n\tpager = a\n")) != read_settings(as_copy(b"[core]\n\tpager = b\n"))
    assert read_settings(as_copy(b"[core]\n\tpager = a\\\nb\n")) is None
    assert read_settings(FileCopy(0o120777, b"[core]")) is None
    assert read_settings(None) is None


def as_copy(data: bytes) -> FileCopy:
    return FileCopy(0o100644, data)


def test_only_lines_with_dangerous_keys_are_dropped() -> None:
    git, text = (
        Path("/r/.git"),
        b"[core]\n\tbare = false\n\tfsmonitor = evil\n# \xff\n[alias]\n\tst = !evil\n[user]\nname=a",
    )
    edit = FileEdit(git / "config", None, as_copy(text))
    assert list_dangers(git, edit, []) == ["setting alias.st", "setting core.fsmonitor"]
    rest = drop_dangerous_settings(git, edit, [])
    assert rest == as_copy(b"[core]\n\tbare = false\n# \xff\n[alias]\n[user]\nname=a")
    assert list_dangers(git, edit._replace(new=rest), []) == []


def test_only_plain_folders_inside_are_harmless_worktrees(root: Path) -> None:
    git = root / ".git/modules/sub"
    values = [
        "../../../sub",
        f"{root}/sub",
        "/etc",
        '"/etc"',
        '"../../.."/../../etc',
        "x\\t",
        "/etc # sub",
        "../../../..",
    ]
    edits = {value: FileEdit(git / "config", None, as_copy(f"[core]\nworktree = {value}".encode())) for value in values}
    assert {value for value, edit in edits.items() if not list_dangers(git, edit, [root])} == set(values[:2])


def write_links(root: Path) -> dict[str, FileEdit]:
    """Write a pointer or link of each kind in a repository without content."""
    (root / "here/.git").mkdir(parents=True)
    (root / "file").write_text("gitdir: /elsewhere")
    texts = {"inside": b"gitdir: ../here/.git\n", "outside": b"gitdir: /elsewhere", "neither": b"x"}
    edits = {name: FileEdit(root / ".git", None, as_copy(text)) for name, text in texts.items()}
    for name, target in {"link inside": "here/.git", "link outside": "/elsewhere", "link to a file": "file"}.items():
        edits[name] = FileEdit(root / ".git", None, FileCopy(0o120777, target.encode()))
    return edits | {"unreadable": FileEdit(root / ".git", None, FileCopy(0o100644, None))}


def test_pointers_that_lead_elsewhere_are_dangers(root: Path) -> None:
    edits = write_links(root / "r")
    found = {name for name, edit in edits.items() if list_dangers(edit.path, edit, [root])}
    assert found == {"outside", "link outside", "unreadable"}


def test_targets_of_links_decide_too(root: Path) -> None:
    subprocess.run(["git", "init", "-q", root / "r"], check=True)
    git = root / "r/.git"
    (root / "shared").mkdir()
    for name in ("shared/update", "hook", "settings", "pointer"):
        (root / name).write_text("x")
    (git / "hooks/pre-push").symlink_to(root / "hook")
    (git / "config.worktree").symlink_to(root / "settings")
    assert {root / "hook", root / "settings"} <= set(list_decisive_files(git))
    shutil.rmtree(git / "hooks")
    (git / "hooks").symlink_to(root / "shared")
    assert {git / "hooks", root / "shared/update"} <= set(list_decisive_files(git))
    for target, files in {"r/.git": [], "pointer": [root / "pointer"], "missing": []}.items():
        link = root / f"to {target.replace('/', ' ')}"
        link.symlink_to(root / target)
        assert list_decisive_files(link) == [link, *files]
