"""Tests of front matter: where it ends, what is plain text in it, and how its lines are counted."""

import random
from contextlib import suppress
from pathlib import Path

import pytest

from goose_like.config.front_matter import split_front_matter
from goose_like.core.errors import GooseLikeError

FILE = Path("/p/a.md")
KEYS = ("description", "tools", "argument-hint")


def split(text: str) -> tuple[object, str]:
    source, body = split_front_matter(FILE, text, KEYS)
    return source and source.data, body


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no front", (None, "no front")),
        ("-- -\nx", (None, "-- -\nx")),
        ("---\n---\nbody\n", ({}, "body\n")),
        ("---\ndescription: a\n---", ({"description": "a"}, "")),
        ("--- \t\ndescription: a\n---\t\n\nbody\n---\n", ({"description": "a"}, "\nbody\n---\n")),
        ("\ufeff---\r\ndescription: a\r\n---\r\nbody\r\n", ({"description": "a"}, "body\n")),
        ("\ufeffbody", (None, "body")),
        ("---\nargument-hint: [A] [B]\n---\n", ({"argument-hint": "[A] [B]"}, "")),
        ("---\ndescription: use it: 'so' # always  \n---\n", ({"description": "use it: 'so' # always"}, "")),
        ('---\ndescription: "a\\tb"\n---\n', ({"description": "a\tb"}, "")),
        ("---\ndescription: two\n  lines\n---\n", ({"description": "two lines"}, "")),
        ("---\ndescription: |\n  tools: x\n---\n", ({"description": "tools: x\n"}, "")),
        ("---\ntools: [A, B]\n---\n", ({"tools": ["A", "B"]}, "")),
        ("---\ntools: Bash(git log:*), *\n---\n", ({"tools": "Bash(git log:*), *"}, "")),
        ("---\nother: 1\ntools:\n---\n", ({"other": 1, "tools": None}, "")),
    ],
)
def test_parts_of_a_text(text, expected):
    assert split(text) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("---\ndescription: a\n", "/p/a.md, line 1: the front matter has no end"),
        ("---\nother: {\n---\n", "/p/a.md, line 2: this is not valid YAML"),
        ("---\ndescription: a\nother: a: b\n---\n", "/p/a.md, line 3: this is not valid YAML"),
    ],
)
def test_an_error_names_the_line_of_the_file(text, error):
    with pytest.raises(GooseLikeError, match=error):
        split(text)


@pytest.mark.parametrize("run", [" ", "\t", "\n", "-"])
@pytest.mark.parametrize("frame", ["---\ndescription: x{}y\n---\n", "---\n{}\n---\n", "---{}x\n"])
def test_a_long_run_of_one_letter_is_read_at_once(frame, run):
    """Read what took minutes when an expression tried again at each letter."""
    text = frame.format(run * 100_000)
    with suppress(GooseLikeError):
        split_front_matter(FILE, text, KEYS)


def test_any_text_is_split_without_loss():
    chance = random.Random(4)
    for _ in range(2000):
        text = "".join(chance.choices(["---", "\n", " ", "x", "description: ", "[", "'", ":"], k=12))
        try:
            source, body = split_front_matter(FILE, text, KEYS)
        except GooseLikeError:
            continue
        assert text.endswith(body)
        assert (source is None) == (body == text)
