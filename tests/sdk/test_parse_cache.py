"""Tests of the parse cache: results of files by their content."""

import math
import os
from pathlib import Path
from typing import Any

import pytest

from goose_like.sdk.diagnostics import MAX_FILE_BYTES, Diagnostic, ParseResult
from goose_like.sdk.parse_cache import ParseCache


class CountingParser:
    """A parser that returns the text of a file and counts its calls."""

    def __init__(self, cache: ParseCache) -> None:
        self.cache = cache
        self.count = 0
        self.problem = ""

    def parse(self, file: Path) -> ParseResult[str]:
        self.count += 1
        try:
            text = file.read_text()
        except OSError as error:
            return ParseResult[str](diagnostics=(Diagnostic(file=file, text=str(error.strerror)),))
        return ParseResult[str](
            value=text, diagnostics=(Diagnostic(file=file, line=1, text=self.problem),) if self.problem else ()
        )

    def all(self, *files: Path) -> list[ParseResult[str]]:
        return [result for _, result in self.cache.parse_files(ParseResult[str], files, self.parse)]


@pytest.fixture
def parser(tmp_path):
    return CountingParser(ParseCache(tmp_path / "cache.sqlite"))


def test_a_content_is_parsed_once(parser, tmp_path):
    file = tmp_path / "a"
    file.write_text("one")
    assert [each.value for each in parser.all(file)] == ["one"]
    os.utime(file, (1, 1))
    assert [each.value for each in parser.all(file)] == ["one"]
    assert parser.count == 1
    seen = file.stat()
    file.write_text("two")
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # as long and as old as before
    assert [each.value for each in parser.all(file)] == ["two"]
    assert parser.count == 2


def test_a_copy_is_another_file(parser, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    parser.problem = "wrong"
    for file in (one, other):
        file.write_text("same")
        (result,) = parser.all(file)
        assert [str(each) for each in result.diagnostics] == [f"{file}:1: wrong"]
    assert parser.count == 2


def test_a_path_that_is_no_utf8(parser, tmp_path):
    file = tmp_path / os.fsdecode(b"f\xff")
    file.write_text("one")
    parser.problem = "wrong"
    (result,) = parser.all(file)
    assert (result.value, result.diagnostics[0].file) == ("one", file)


def test_infinite_numbers_stay_infinite(tmp_path):
    file = tmp_path / "a"
    file.write_text("limits")
    limits = {"most": math.inf, "least": [-math.inf]}

    def read(file: Path) -> ParseResult[dict[str, Any]]:
        return ParseResult[dict[str, Any]](value=limits)

    cache = ParseCache(tmp_path / "cache.sqlite")
    for _ in range(2):
        ((_, result),) = cache.parse_files(ParseResult[dict[str, Any]], [file], read)
        assert result.value == limits


def test_a_file_that_changes_meanwhile_is_not_cached(parser, tmp_path):
    file = tmp_path / "a"
    file.write_text("one")
    parse = parser.parse

    def late(path: Path) -> ParseResult[str]:
        path.write_text("two")
        return parse(path)

    parser.parse = late
    assert [each.value for each in parser.all(file)] == ["two"]
    file.write_text("one")
    parser.parse = parse
    assert [each.value for each in parser.all(file)] == ["one"]


def test_large_missing_and_special_files_are_never_cached(parser, tmp_path):
    large = tmp_path / "large"
    large.write_text("x" * (MAX_FILE_BYTES + 1))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    gone = tmp_path / "gone"
    for _ in range(2):
        result = parser.all(large, gone)
        assert (len(result[0].value), str(result[1].diagnostics[0])) == (
            MAX_FILE_BYTES + 1,
            f"{gone}: No such file or directory",
        )
    assert parser.count == 4
    parser.parse = lambda file: ParseResult[str](value="not opened")
    assert [each.value for each in parser.all(pipe)] == ["not opened"]
