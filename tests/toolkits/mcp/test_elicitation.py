"""Forms of servers: what each kind of field takes, and how a person leaves a form."""

from types import SimpleNamespace

import pytest
from goose_like_toolkits.mcp.elicitation import Elicitor

from goose_like.core.notifier import Recorder
from tests.toolkits.mcp.test_connection import Talker

COLOURS = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}
FISH = {"type": "array", "items": {"type": "string", "enum": ["tuna", "trout"]}}


async def fill(field, *texts, required=True):
    """The answer to a form of one field."""
    schema = {"type": "object", "properties": {"x": field}, "required": ["x"] if required else []}
    params = SimpleNamespace(mode="form", message="Well?", requested_schema=schema)
    return await Elicitor("demo", Talker(*texts)).answer(params)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ({"type": "string"}, " Ann ", "Ann"),
        ({"type": "integer"}, "7", 7),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"type": "string", "default": "Ann"}, "", "Ann"),
        (COLOURS, "2", "g"),
        (COLOURS, "red", "r"),
        (FISH, "trout, 1", ["trout", "tuna"]),
        ({"type": "string", "format": "date"}, "2026-11-28", "2026-11-28"),
        ({"type": "string", "format": "email"}, "ann@example.org", "ann@example.org"),
    ],
)
async def test_values(field, text, value):
    assert await fill(field, text) == ("accept", {"x": value})


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ({"type": "integer"}, "2.5"),
        ({"type": "number"}, "nan"),
        ({"type": "integer", "minimum": 5}, "4"),
        ({"type": "integer", "maximum": 5}, "6"),
        ({"type": "boolean"}, "perhaps"),
        ({"type": "string"}, ""),
        ({"type": "string", "minLength": 3}, "ab"),
        ({"type": "string", "maxLength": 3}, "abcd"),
        ({"type": "string", "format": "date"}, "today"),
        ({"type": "string", "format": "email"}, "ann"),
        ({"type": "string", "format": "uri"}, "example"),
        (COLOURS, "3"),
        (FISH, "shark"),
    ],
)
async def test_what_does_not_fit_is_asked_three_times(field, text):
    assert await fill(field, text, text, text) == ("cancel", None)


async def test_ways_out_of_a_form():
    assert await fill({"type": "string"}, "", required=False) == ("accept", {})
    assert await fill({"type": "string"}, "/decline") == ("decline", None)
    params = SimpleNamespace(mode="form", message="Well?", requested_schema={"properties": {"x": {}}})
    assert await Elicitor("demo", Recorder()).answer(params) == ("decline", None)


@pytest.mark.parametrize(
    ("url", "said", "action"),
    [
        ("https://example.org/", "yes", "accept"),
        ("https://example.org/", "no", "decline"),
        ("https://example.org/", "", "decline"),
        ("file:///etc/passwd", "yes", "decline"),
    ],
)
async def test_addresses(url, said, action):
    params = SimpleNamespace(mode="url", message="Log in.", url=url)
    assert await Elicitor("demo", Talker(said)).answer(params) == (action, None)
