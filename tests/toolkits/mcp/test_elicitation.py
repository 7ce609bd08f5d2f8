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


class FormTalker(Talker):
    """A person who fills in whole forms."""

    shows_forms = True


AGE = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
DAY = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}


@pytest.mark.parametrize(
    ("schema", "text", "result"),
    [
        (AGE, '{"age": 5, "other": 1}', ("accept", {"age": 5})),
        (AGE, '{"age": "abc"}', ("cancel", None)),
        (AGE, "{}", ("cancel", None)),
        (AGE, "[1]", ("cancel", None)),
        (AGE, "", ("cancel", None)),
        (DAY, "{}", ("accept", {})),
        (DAY, '{"day": "2026-11-28"}', ("accept", {"day": "2026-11-28"})),
        (DAY, '{"day": "today"}', ("cancel", None)),
    ],
)
async def test_the_values_of_a_whole_form_are_checked(schema, text, result):
    params = SimpleNamespace(mode="form", message="Well?", requested_schema=schema)
    person = FormTalker(text)
    assert await Elicitor("demo", person).answer(params) == result
    (asked,) = person.questions
    assert asked.form["properties"] == schema["properties"]


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "title": "Age\u202e"},
        {"type": "string", "title": "Age\x1b[31m"},
        {"type": "string", "enum": ["a\x9b", "b"]},
        {"type": "string", "description": "long " * 100_000},
        {"type": "nothing"},
        {"$ref": "https://example.org/"},
    ],
)
async def test_a_form_that_is_not_plain_is_asked_field_by_field(field):
    schema = {"type": "object", "properties": {"x": field}}
    params = SimpleNamespace(mode="form", message="Well?", requested_schema=schema)
    person = FormTalker("")
    assert await Elicitor("demo", person).answer(params) == ("accept", {})
    (asked,) = person.questions
    assert asked.form is None
    assert len(asked.text) <= 2_000


async def test_a_field_without_a_schema_is_not_asked():
    params = SimpleNamespace(mode="form", message="Well?", requested_schema={"properties": {"x": True}})
    assert await Elicitor("demo", FormTalker()).answer(params) == ("cancel", None)


@pytest.mark.parametrize("talker", [Talker, FormTalker])
async def test_a_long_message_hides_nothing(talker):
    params = SimpleNamespace(mode="form", message="long " * 1_000, requested_schema=AGE)
    person = talker("5")
    await Elicitor("demo", person).answer(params)
    assert "never a password" in person.questions[0].text
    params = SimpleNamespace(mode="url", message="long " * 1_000, url="https://example.org/")
    person = talker("no")
    await Elicitor("demo", person).answer(params)
    assert "Open https://example.org/ in a browser, then answer yes" in person.questions[0].text


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
