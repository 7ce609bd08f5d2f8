"""Tests of client data in the form that the model reads."""

import base64

import pytest

from goose_like.serve.openbb.prompt import MAX_RESULT_CHARACTERS, NO_DATA, build_tool_result, format_item
from goose_like.serve.openbb.query import DataItem, Outcome

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def to_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (DataItem(content="[1]"), "[1]"),
        (DataItem(content=to_base64("a\nb")), to_base64("a\nb")),  # what is no file is as it is
        (DataItem(kind="md", content="# a", filename="a.md"), "[a.md]\n# a"),
        (DataItem(kind="csv", content=to_base64("a,b\n1,é\n"), filename="a.csv"), "[a.csv]\na,b\n1,é\n"),
        (DataItem(kind="txt", content="word"), "word"),  # which is base64 of bytes that are no text
        (
            DataItem(kind="xlsx", content=to_base64("1234"), filename="a.xls"),
            "[xlsx a.xls, 4 bytes, which can't be read here]",
        ),
        (DataItem(kind="pdf", content=to_base64("12345")), "[pdf, 5 bytes, which can't be read here]"),
        (DataItem(kind="png", url="https://example.com/a.png"), "[png at https://example.com/a.png, not fetched]"),
        (DataItem(url="https://example.com/a"), "[data at https://example.com/a, not fetched]"),
    ],
)
def test_items(item, text):
    assert format_item(item) == text


@pytest.mark.parametrize("content", [PNG, f"data:image/png;base64,{PNG}"])
def test_a_picture_is_seen(content):
    built, images = build_tool_result("c", [Outcome(items=(DataItem(kind="png", content=content, filename="a.png"),))])
    assert (built.output, built.is_error) == ("", False)
    [image] = built.images
    assert (image.media_type, image.source) == ("image/png", "a.png")
    assert images == [(base64.b64decode(PNG), "a.png")]


def test_a_picture_that_is_none_is_told():
    built, images = build_tool_result(
        "c", [Outcome(items=(DataItem(kind="png", content=to_base64("text"), filename="a.png"),))]
    )
    assert built.output == "[a.png is not a PNG, JPEG, GIF or WebP image; convert it first]"
    assert (built.images, images) == ((), [])


def test_nothing_is_an_error_and_so_is_what_failed_throughout():
    failed = Outcome(message="no", is_error=True)
    data = Outcome(items=(DataItem(content="1"),))
    assert build_tool_result("c", [])[0].output == build_tool_result("c", [Outcome()])[0].output == NO_DATA
    assert [build_tool_result("c", given)[0].is_error for given in ([], [Outcome()], [failed], [failed, data])] == [
        True,
        True,
        True,
        False,
    ]


def test_a_result_of_any_size_fits():
    built, _ = build_tool_result("c", [Outcome(items=(DataItem(content="x" * (MAX_RESULT_CHARACTERS + 7)),))])
    assert built.output == "x" * MAX_RESULT_CHARACTERS + "\n[7 more characters are left out here]"
