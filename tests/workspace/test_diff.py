"""Diffs show the whole change, exactly."""

from goose_like.workspace.diff import format_diff


def test_text():
    assert format_diff(b"a\nb\n", b"a\nc\n").split("\n")[1:] == [" a", "-b", "+c"]
    assert format_diff(None, b"a\nb\n").split("\n")[1:] == ["+a", "+b"]


def test_a_missing_line_end_is_told():
    assert format_diff(b"a\n", b"a").split("\n")[1:] == ["-a", "+a", "\\ no newline at the end"]


def test_line_ends_are_kept():
    assert format_diff(b"a\n", b"a\r\n").split("\n")[1:] == ["-a", "+a\r"]


def test_no_text_is_told_by_its_size():
    assert format_diff(b"abc", b"\0" * 2000) == "binary: 2,000 bytes, before 3"
    assert format_diff(None, b"\xff") == "binary: 1 bytes"


def test_nothing_of_a_long_change_is_left_out():
    old = "".join(f"old {n}\n" for n in range(3000))
    new = "".join(f"new {n}\n" for n in range(3000))
    shown = format_diff(f"same\n{old}end\n".encode(), f"same\n{new}end\n".encode()).split("\n")
    assert shown[0] == "@@ from line 2 @@"
    assert [line[1:] for line in shown if line[0] == "+"] == new.splitlines()
    assert [line[1:] for line in shown if line[0] == "-"] == old.splitlines()
