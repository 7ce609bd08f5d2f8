"""Tests of client data in the form that the model reads."""

import base64

import pytest

from goose_like.serve.openbb.prompt import (
    MAX_RESULT_CHARACTERS,
    NO_DATA,
    build_tool_result,
    format_client_context,
    format_item,
)
from goose_like.serve.openbb.query import DataItem, Outcome
from tests.serve.request_bodies import build_query, human, load_body, load_query

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


# --- what stands around the words


def test_the_surroundings_of_todays_dashboard():
    assert format_client_context(load_query("today_query")).startswith(
        "[Widgets that the person picked]\n"
        "- 91ae1153-7b4d-451c-adc5-49856e90a0e6 Stock price: The newest price of a share\n"
        "  - symbol (ticker) = MSFT, its options can be asked for: The ticker\n"
        '  - fields (string, several) = price, one of ["price","volume"]: Which figures\n'
        "\n"
        "[Widgets on the dashboard]\n"
        "- 5f2b2a7e-5cb1-4c30-9b6b-0d7f4a4f7e10 Company news: News on a company\n"
        "  - limit (integer) = 10: How many\n"
        "\n"
        "[Widgets that could be added to the dashboard]\n"
        "- 91e65d7a-ce25-eae5-91e6-5d7ace25eae5 Earnings: Earnings by quarter\n"
        "  - symbol (ticker): The ticker\n"
        "\n"
        "[Addresses that the person added]\n"
        "- https://example.com/report.html\n"
        "\n"
        "[The person's time zone]\n"
        "Europe/London\n"
        "\n"
        "[Options that the person set]\n"
        '{"deep-research":true,"tone":"brief"}\n'
    )


def test_the_seeds_widgets_and_context():
    assert format_client_context(load_query("seed_query")) == (
        "[Widgets on the dashboard]\n- 38181a68-9650-4940-84fb-a3f29c8869f3 Historical Stock Price "
        '{"symbol":"AAPL","source":"Financial Modelling Prep"}'
    )
    assert "- Analyst Estimates: Contains analyst estimates for a ticker" in format_client_context(
        load_query("seed_context")
    )
    assert format_client_context(load_query("seed_greeting")) == ""


@pytest.mark.parametrize("name", ["today_context", "today_context_content"])
def test_data_that_was_added(name):
    assert (
        '[Data that the person added]\n- Notes: What was noted {"symbol":"MSFT"}\nbuy below 400'
        in format_client_context(load_query(name))
    )


def test_a_refreshed_dashboard_is_the_same_one():
    refreshed = load_body("today_query")
    refreshed["widgets"]["primary"][0]["metadata"]["lastUpdated"] += 1
    assert format_client_context(build_query(*refreshed.pop("messages"), **refreshed)) == format_client_context(
        load_query("today_query")
    )


def test_surroundings_of_any_size_fit():
    widget = {
        "name": "w " * 9_000,
        "params": [{"name": "p", "options": ["o" * 99] * 999}],
        "metadata": {"m": "m" * 9999},
    }
    many = {tier: [widget | {"uuid": f"{tier}{n}"} for n in range(500)] for tier in ("primary", "secondary", "extra")}
    context = [{"name": "c", "data": {"items": [{"content": "x" * 500_000}]}}] * 3
    text = format_client_context(build_query(human("a"), widgets=many, context=context, urls=["u" * 9999] * 99))
    assert len(text) < 160_000
    assert "primary0" in text
    assert "more are left out here]" in text
    assert "440,0" in text


def test_the_first_chosen_skill_is_read_in_full_and_others_are_listed():
    chosen = [{"slug": slug, "description": "How to.", "contentMarkdown": f"Use {slug}."} for slug in ("one", "two")]
    listed = [{"slug": "three", "description": "Earnings.", "updatedAt": "2026-03-22T12:00:00Z"}]
    text = format_client_context(build_query(human("x"), selected_skills=chosen, skills_catalog=listed))
    assert "one: How to.\nUse one." in text
    assert "two" not in text
    assert "three" not in text
    text = format_client_context(build_query(human("x"), selected_skills=None, skills_catalog=listed))
    assert "get_skill_content" in text
    assert "- three: Earnings." in text
