"""The index of git, which a command may have written: what is damaged or endless is refused at once."""

import struct

import pytest

from goose_like.workspace.repositories import git_index
from goose_like.workspace.repositories.git_index import GitIndex, is_safe_name

FACTS = bytes(60)
ONE_NAME = (b"\0", b"name\0")
LENGTH = b"\0\x04"
DAMAGED = (ValueError, IndexError, struct.error)


def build_index(*names: tuple[bytes, bytes]) -> bytes:
    """Build an index of version 4: of each name, the number of bytes to drop, and what follows the rest."""
    entries = [FACTS + LENGTH + dropped + text for dropped, text in names]
    return b"".join((struct.pack(">4sII", b"DIRC", 4, len(names)), *entries, bytes(20)))


def list_names(data: bytes) -> list[bytes]:
    return [name for name, _ in GitIndex(data)]


def test_names_share_their_start():
    assert list_names(build_index(ONE_NAME, (b"\x02", b"to\0"))) == [b"name", b"nato"]


REFUSED = {
    "a name that grows": [(b"\0", b"x" * 4000 + b"\0"), (b"\0", b"x" * 97 + b"\0")],
    "a name without an end": [(b"\0", b"x" * 10_000)],
    "a long name": [(b"\0", b"x" * 4097 + b"\0")],
    "more dropped than there is": [ONE_NAME, (b"\x05", b"to\0")],
    "an endless number": [ONE_NAME, (b"\xff" * 100_000 + b"\0", b"to\0")],
    "a number of six bytes": [ONE_NAME, (b"\x80" * 5 + b"\0", b"to\0")],
}


@pytest.mark.parametrize("names", REFUSED.values(), ids=REFUSED)
def test_what_no_git_writes_is_refused(names):
    with pytest.raises(ValueError, match=r"damaged|not found"):
        GitIndex(build_index(*names))


def test_names_that_fill_the_memory_together_are_refused(monkeypatch):
    monkeypatch.setattr(git_index, "_LIMIT_EXPANDED_BYTES", 100_000)
    shared = [(b"\0", b"x" * 4000 + b"\0")] + [(b"\0", b"\0")] * 100
    with pytest.raises(ValueError, match="too large"):
        GitIndex(build_index(*shared))


def test_a_long_name_of_version_3_is_refused():
    data = struct.pack(">4sII", b"DIRC", 3, 1) + FACTS + b"\x0f\xff" + b"x" * 4097 + bytes(8)
    with pytest.raises(ValueError, match=r"damaged|not found"):
        GitIndex(data)


@pytest.mark.parametrize("version", [2, 4])
def test_each_cut_is_refused(version):
    entry = FACTS + LENGTH + (b"\0name\0" if version == 4 else b"name" + bytes(6))
    data = struct.pack(">4sII", b"DIRC", version, 1) + entry
    assert list_names(data) == [b"name"]
    text_end = len(data) - (1 if version == 4 else 6)
    for end in range(text_end):
        with pytest.raises(DAMAGED):
            GitIndex(data[:end])


UNSAFE = [
    *(b".git", b".git/config", b"sub/.git", b"sub/.git/hooks/x", b".GIT/config", b".git./config", b".git . /config"),
    *(b".git::$INDEX_ALLOCATION/config", b"git~1/config", b"GIT~1", ".g\u200cit/config".encode(), b".git\xad/config"),
    *(b"", b"/etc/passwd", b"a//b", b"a/", b".", b"..", b"./a", b"../a", b"a/./b", b"a/../b", b"a/..", b"a\0b"),
]
SAFE = [
    b".gitignore",
    b".github/x",
    b"a/.gitattributes",
    b"x.git/config",
    b"git",
    b"...",
    b"a/.b",
    b"..a/b",
    "ü".encode(),
]


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_names(name):
    assert not is_safe_name(name)


@pytest.mark.parametrize("name", SAFE)
def test_safe_names(name):
    assert is_safe_name(name)
