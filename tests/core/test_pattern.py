"""Patterns that are compiled at their first use."""

import importlib
import re
from pathlib import Path

import goose_like_toolkits
import pytest

import goose_like
from goose_like.core.pattern import _LaterPattern, compile_later


def test_a_pattern_has_the_methods_of_one_that_is_compiled():
    pattern = compile_later(r"(?P<word>[a-z]+)", re.IGNORECASE)
    assert pattern.fullmatch("Ab")["word"] == "Ab"
    assert pattern.sub("x", "a 1 B") == "x 1 x"
    assert pattern.findall("a 1 B") == pattern.findall("a 1 B") == ["a", "B"]
    assert pattern.groupindex == {"word": 1}
    assert compile_later(rb"\d").search(b"a1")[0] == b"1"


def test_a_pattern_is_compiled_no_earlier_than_it_is_used():
    pattern = compile_later("(")
    with pytest.raises(re.error, match="unterminated subpattern"):
        pattern.search("text")


def test_every_pattern_that_is_compiled_later_can_be_compiled():
    count = 0
    for package in (goose_like, goose_like_toolkits):
        folder = Path(package.__file__).parent
        count += _check_patterns(folder)
    assert count > 50


def _check_patterns(folder: Path) -> int:
    """Compile the patterns of the modules in a folder, and return their number."""
    count = 0
    for source in sorted(folder.rglob("*.py")):
        text = source.read_text()
        if "import compile_later" not in text:
            continue
        name = ".".join(source.relative_to(folder.parent).with_suffix("").parts)
        module = importlib.import_module(name)
        for value in vars(module).values():
            for pattern in value if isinstance(value, tuple) else (value,):
                if isinstance(pattern, _LaterPattern):
                    assert isinstance(re.compile(pattern.pattern, pattern.flags), re.Pattern), source
                    count += 1
    return count
