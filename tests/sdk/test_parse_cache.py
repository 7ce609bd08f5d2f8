"""What was read of files, kept by what they hold."""

import math
import os
from pathlib import Path
from typing import Any

import pytest

from goose_like.sdk.diagnostics import MAX_FILE_BYTES, Diagnostic, ParseResult
from goose_like.sdk.parse_cache import parse_files
from goose_like.sdk.store import ParseCache


class Reader:
    """Gives a file's text as the value, and how often it was asked to."""

    def __init__(self, store: ParseCache) -> None:
        self.store = store
        self.count = 0
        self.fault = ""

    def read(self, file: Path) -> ParseResult[str]:
        self.count += 1
        try:
            text = file.read_text()
        except OSError as error:
            return ParseResult[str](diagnostics=(Diagnostic(file=file, text=str(error.strerror)),))
        return ParseResult[str](
            value=text, diagnostics=(Diagnostic(file=file, line=1, text=self.fault),) if self.fault else ()
        )

    def all(self, *files: Path, **how: bool) -> list[ParseResult[str]]:
        return [reading for _, reading in parse_files(self.store, ParseResult[str], files, self.read, **how)]


@pytest.fixture
def reader(tmp_path):
    return Reader(ParseCache(tmp_path / "kept.sqlite"))


def test_what_a_file_holds_is_read_once(reader, tmp_path):
    file = tmp_path / "a"
    file.write_text("one")
    assert [each.value for each in reader.all(file)] == ["one"]
    os.utime(file, (1, 1))
    assert [each.value for each in reader.all(file)] == ["one"]
    assert reader.count == 1
    seen = file.stat()
    file.write_text("two")
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # as long and as old as before
    assert [each.value for each in reader.all(file)] == ["two"]
    assert reader.count == 2


@pytest.mark.parametrize(("is_placeless", "count"), [(True, 1), (False, 2)])
def test_another_place_is_another_file_unless_that_makes_no_difference(reader, tmp_path, is_placeless, count):
    one, other = tmp_path / "one", tmp_path / "other"
    reader.fault = "wrong"
    for file in (one, other):
        file.write_text("same")
        (reading,) = reader.all(file, is_placeless=is_placeless)
        assert [str(fault) for fault in reading.diagnostics] == [f"{file}:1: wrong"]
    assert reader.count == count


def test_a_file_whose_place_no_utf8_can_name_is_kept_by_what_it_holds(reader, tmp_path):
    file = tmp_path / os.fsdecode(b"f\xff")
    file.write_text("one")
    reader.fault = "wrong"
    for _ in range(2):
        (reading,) = reader.all(file, is_placeless=True)
        assert (reading.value, reading.diagnostics[0].file) == ("one", file)
    assert reader.count == 1


def test_endless_numbers_are_kept_as_such(tmp_path):
    file = tmp_path / "a"
    file.write_text("limits")
    limits = {"most": math.inf, "least": [-math.inf]}

    def read(file: Path) -> ParseResult[dict[str, Any]]:
        return ParseResult[dict[str, Any]](value=limits)

    store = ParseCache(tmp_path / "kept.sqlite")
    for _ in range(2):
        ((_, reading),) = parse_files(store, ParseResult[dict[str, Any]], [file], read)
        assert reading.value == limits


def test_what_is_written_while_it_is_read_is_not_kept(reader, tmp_path):
    file = tmp_path / "a"
    file.write_text("one")
    read = reader.read

    def late(path: Path) -> ParseResult[str]:
        path.write_text("two")
        return read(path)

    reader.read = late
    assert [each.value for each in reader.all(file)] == ["two"]
    file.write_text("one")
    reader.read = read
    assert [each.value for each in reader.all(file)] == ["one"]


def test_what_is_no_file_that_people_wrote_is_read_each_time(reader, tmp_path):
    large = tmp_path / "large"
    large.write_text("x" * (MAX_FILE_BYTES + 1))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    gone = tmp_path / "gone"
    for _ in range(2):
        reading = reader.all(large, gone)
        assert (len(reading[0].value), str(reading[1].diagnostics[0])) == (
            MAX_FILE_BYTES + 1,
            f"{gone}: No such file or directory",
        )
    assert reader.count == 4
    reader.read = lambda file: ParseResult[str](value="not opened")
    assert [each.value for each in reader.all(pipe)] == ["not opened"]
