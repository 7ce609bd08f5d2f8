"""Tests of the files that users write: none that cannot be read is ignored, waited for or a traceback."""

import os
import pwd
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.config.paths import (
    create_private_folder,
    expand_home,
    home_folder,
    normalize_path,
    read_user_file,
    shorten_home,
    state_folder,
)
from goose_like.config.profile_loader import load_profile
from goose_like.config.secrets import find_key, register_keys
from goose_like.config.task_file import read_task_file
from goose_like.config.trust import load_trust
from goose_like.core.errors import GooseLikeError
from goose_like.providers.presets import load_presets
from goose_like.providers.scripted import read_script

INPUTS: dict[str, Callable[[Path], object]] = {
    "profiles.yaml": lambda _: load_profile(None),
    "profiles/mine.yaml": lambda _: load_profile("mine"),
    "keys.yaml": lambda _: find_key("MY_API_KEY"),
    "trust.json": lambda _: load_trust(),
    "providers.yaml": lambda _: load_presets(),
    "plan.md": lambda file: read_task_file(str(file), {}),
    "plan.yaml": lambda file: read_task_file(str(file), {}),
    "script.yaml": read_script,
}
MAKERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (os.mkdir, "it is a folder"),
    "pipe": (os.mkfifo, "it is a pipe or a device"),
    "device": (lambda file: file.symlink_to("/dev/zero"), "it is a pipe or a device"),
    "loop": (lambda file: file.symlink_to(file.name), "Too many levels of symbolic links"),
    "link to nothing": (lambda file: file.symlink_to("nothing"), "No such file or directory"),
    "other encoding": (lambda file: file.write_bytes(b"#\n# caf\xe9\n"), "line 2 is not UTF-8 text"),
    "too large": (
        lambda file: os.truncate(os.open(file, os.O_CREAT | os.O_RDWR, 0o600), 40_000_000),
        "it has more than ",
    ),
}


@pytest.fixture
def place(home: Path) -> Callable[[str], Path]:
    def place(name: str) -> Path:
        file = home / "config" / name
        file.parent.mkdir(parents=True)
        return file

    return place


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("name", INPUTS)
def test_a_file_that_cannot_be_read_is_one_sentence(place, name, kind):
    if name.startswith("plan") and kind in ("pipe", "device"):
        pytest.skip("a plan may come from a pipe: --plan <(program)")
    make, words = MAKERS[kind]
    make(file := place(name))
    register_keys()
    with pytest.raises(GooseLikeError) as caught:
        INPUTS[name](file)
    assert words in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 3_000 + "]" * 3_000, '{"a":' * 100_000 + "1" + "}" * 100_000, "- " * 3_000])
@pytest.mark.parametrize("name", [name for name in INPUTS if name != "plan.md"])
def test_a_deep_file_is_one_sentence(place, name, text):
    (file := place(name)).write_text(text)
    file.chmod(0o600)
    register_keys()
    with pytest.raises(GooseLikeError, match=file.name) as caught:
        INPUTS[name](file)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300 + len(str(file))


@pytest.mark.parametrize("name", [name for name in INPUTS if name.endswith("yaml")])
def test_a_long_comment_is_read_at_once(place, name):
    file = place(name)
    file.write_text("# " + "x" * 900_000 + "\n{}\n")
    file.chmod(0o600)
    if "plan" in name or "script" in name:
        with pytest.raises(GooseLikeError, match=r"expected a list|key is missing"):
            INPUTS[name](file)
    else:
        INPUTS[name](file)


def test_a_plan_comes_from_a_pipe_too():
    read_end, write_end = os.pipe()
    os.write(write_end, b"go\n- a\n")
    os.close(write_end)
    assert read_task_file(f"/dev/fd/{read_end}", {}).tasks == ("a",)
    os.close(read_end)


@pytest.mark.parametrize("before", [None, 0o755])
def test_folders_of_the_state_are_closed_for_others(tmp_path, monkeypatch, before):
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(tmp_path / "home"))
    top = tmp_path / "home" / "state"
    if before:
        top.mkdir(before, parents=True)
    folder = create_private_folder(top / "sessions" / "one")
    assert {one.stat().st_mode & 0o777 for one in (top, folder, folder.parent)} == {0o700}
    assert create_private_folder(tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


def read_home_of_system() -> Path:
    """Read the home folder that the system knows for this user."""
    return Path(pwd.getpwuid(os.getuid()).pw_dir)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/", "/"),
        ("//", "/"),
        ("///srv//ann/", "/srv/ann"),
        ("//srv/ann", "/srv/ann"),
        ("/srv/..", "/"),
        ("/no", "/no"),
    ],
)
def test_an_absolute_home_is_used_as_it_is(value, expected, monkeypatch):
    monkeypatch.setenv("HOME", value)
    monkeypatch.delenv("GOOSE_LIKE_HOME")
    assert home_folder() == Path(expected)
    assert state_folder() == Path(expected, ".local/state/goose-like")


@pytest.mark.parametrize("value", [None, "", "ann", "./ann", "~", "~ann"])
def test_without_an_absolute_home_the_system_knows_the_folder(value, monkeypatch):
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("GOOSE_LIKE_HOME")
    if value is not None:
        monkeypatch.setenv("HOME", value)
    assert home_folder() == read_home_of_system()


@given(st.text("/.a", max_size=12))
def test_a_normal_path_has_one_slash_at_its_start(path):
    found = str(normalize_path(f"/{path}"))
    assert found.startswith("/")
    assert not re.search(r"//|/\.\.?(/|$)", found)
    assert os.path.realpath(found) == os.path.realpath(f"/{path}")


def test_only_the_home_of_a_known_user_is_put_in(monkeypatch):
    monkeypatch.setenv("HOME", "/srv/ann")
    expected = {"~": "/srv/ann", "~/a": "/srv/ann/a", "~nobody-x/a": "~nobody-x/a", "a/~": "a/~", "": "."}
    assert {path: str(expand_home(path)) for path in expected} == expected
    monkeypatch.setenv("GOOSE_LIKE_HOME", "~nobody-x")
    assert state_folder() == Path.cwd() / "~nobody-x/state"


def test_a_path_in_the_home_folder_is_shortened(monkeypatch):
    monkeypatch.setenv("HOME", "/srv/ann")
    assert [shorten_home(path) for path in ("/srv/ann/a.md", "/srv/anna", "a")] == ["~/a.md", "/srv/anna", "a"]
    monkeypatch.setenv("HOME", "/")
    assert shorten_home("/srv/ann/a.md") == "/srv/ann/a.md"


def test_the_mark_at_the_start_of_a_file_is_left_out(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("\ufeffone \ufeff two", encoding="utf-8-sig")
    assert read_user_file(file) == "\ufeffone \ufeff two"
    file.write_text("one", encoding="utf-8-sig")
    assert read_user_file(file) == "one"
