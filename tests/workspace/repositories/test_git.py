"""Settings files of git, read by us and by git itself."""

import subprocess
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from goose_like.workspace.repositories.git import is_harmless_key, read_settings

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
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_key_that_git_sees_is_missing(tmp_path: Path, lines: list[str], end: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(end.join([*lines, ""]).encode(errors="replace"))
    line = ["git", "config", "--file", file, "--no-includes", "--null", "--name-only", "--list"]
    done = subprocess.run(line, capture_output=True, check=False)
    ours = read_settings(file.read_bytes())
    if done.returncode == 0 and ours is not None:
        keys = {key.decode(errors="surrogateescape").lower() for key in done.stdout.split(b"\0") if key}
        assert {key for key in keys if not is_harmless_key(key)} <= {key for key, _ in ours}


def test_ordinary_settings_are_read(tmp_path: Path) -> None:
    for words in (["init", "-q"], ["remote", "add", "a", "https://b/c"], ["config", "user.name", 'Ann "A" # 1']):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    pairs = read_settings((tmp_path / ".git/config").read_bytes())
    assert pairs is not None
    assert ("remote.a.url", "https://b/c") in pairs
    assert all(is_harmless_key(key) for key, _ in pairs)


def test_a_changed_value_is_another_pair() -> None:
    assert read_settings(b"[core]\n\tpager = a\n") != read_settings(b"[core]\n\tpager = b\n")
    assert read_settings(b"[core]\n\tpager = a\\\nb\n") is None
    assert read_settings(None) is None
