"""What a client gave, as a model reads it."""

import base64

import pytest

from goose_like.serve.openbb.query import Given, Item
from goose_like.serve.openbb.results import LIMIT_CHARACTERS, NOTHING, in_words, result

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (Item(content="[1]"), "[1]"),
        (Item(content=encoded("a\nb")), encoded("a\nb")),  # what is no file is as it is
        (Item(kind="md", content="# a", filename="a.md"), "[a.md]\n# a"),
        (Item(kind="csv", content=encoded("a,b\n1,é\n"), filename="a.csv"), "[a.csv]\na,b\n1,é\n"),
        (Item(kind="txt", content="word"), "word"),  # which is base64 of bytes that are no text
        (
            Item(kind="xlsx", content=encoded("1234"), filename="a.xls"),
            "[xlsx a.xls, 4 bytes, which can't be read here]",
        ),
        (Item(kind="pdf", content=encoded("12345")), "[pdf, 5 bytes, which can't be read here]"),
        (Item(kind="png", url="https://example.com/a.png"), "[png at https://example.com/a.png, not fetched]"),
        (Item(url="https://example.com/a"), "[data at https://example.com/a, not fetched]"),
    ],
)
def test_items(item, text):
    assert in_words(item) == text


@pytest.mark.parametrize("content", [PNG, f"data:image/png;base64,{PNG}"])
def test_a_picture_is_seen(content):
    made, pictures = result("c", [Given.One(items=(Item(kind="png", content=content, filename="a.png"),))])
    assert (made.output, made.is_error) == ("", False)
    [image] = made.images
    assert (image.media_type, image.source) == ("image/png", "a.png")
    assert pictures == [(base64.b64decode(PNG), "a.png")]


def test_a_picture_that_is_none_is_told():
    made, pictures = result("c", [Given.One(items=(Item(kind="png", content=encoded("text"), filename="a.png"),))])
    assert made.output == "[a.png is no PNG, JPEG, GIF or WebP image; convert it first]"
    assert (made.images, pictures) == ((), [])


def test_nothing_is_an_error_and_so_is_what_failed_throughout():
    failed = Given.One(message="no", is_error=True)
    data = Given.One(items=(Item(content="1"),))
    assert result("c", [])[0].output == result("c", [Given.One()])[0].output == NOTHING
    assert [result("c", given)[0].is_error for given in ([], [Given.One()], [failed], [failed, data])] == [
        True,
        True,
        True,
        False,
    ]


def test_a_result_of_any_size_fits():
    made, _ = result("c", [Given.One(items=(Item(content="x" * (LIMIT_CHARACTERS + 7)),))])
    assert made.output == "x" * LIMIT_CHARACTERS + "\n[7 more characters are left out here]"
