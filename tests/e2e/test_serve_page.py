"""Tests of the page in Chromium: its requests and its drawing."""

import json
import shutil
import socket
from collections.abc import Iterator

import pytest
from starlette.responses import JSONResponse

from goose_like.serve.openbb.discovery import AgentInfo, Choice, Feature
from tests.e2e.page_server import HANG, artifact, call, chunk, played, step
from tests.e2e.serving import serving

CHROMIUM = shutil.which("chromium")
api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here; Debian's package has it")

PRICES = "5a4d1c60-0000-4000-8000-000000000001"
ROWS = [{"quarter": f"Q{n}", "revenue": value, "note": None} for n, value in enumerate((9, 100, 25, 1000), 1)]


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser) -> Iterator[object]:
    """Open a page whose errors, blocked sources and foreign requests fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    page.set_default_timeout(60_000)
    wrong = page.wrong = []
    asked: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: said.type == "error" and "status of 4" not in said.text and wrong.append(said.text))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    assert wrong == []
    assert [url for url in asked if not url.startswith("http://127.0.0.1:")] == []
    context.close()


def ask(page, words: str) -> None:
    page.fill("#words", words)
    page.press("#words", "Enter")


def answered(page, count: int = 1) -> object:
    """Wait for the end of the last answer, and return it."""
    answers = page.locator(".answer[aria-busy=false]")
    answers.nth(count - 1).wait_for()
    page.wait_for_selector("#send:visible")
    return answers.nth(count - 1)


def test_it_says_how_to_add_it_to_the_workspace(page):
    with played([]) as server:
        page.goto(server.url)
        page.get_by_text("Reads dashboards.").wait_for()
        assert page.title() == "Desk"
        assert page.text_content("#address") == server.url.rstrip("/")
        assert not page.is_visible("#header")
        assert page.locator(".widget").count() == 2


def test_a_call_is_answered_from_the_dashboard_and_all_messages_go_back(page):
    source = {"widget_uuid": PRICES, "origin": "Sample data", "id": "daily_prices", "input_args": {"days": 10}}
    missing = {**source, "widget_uuid": "gone"}
    asks = [step("Looks at it"), chunk("A moment."), call("get_widget_data", data_sources=[source, missing])]
    with played(asks, [chunk(" It rose.")], [chunk("Yes.")]) as server:
        page.goto(server.url)
        page.locator(".widget select").first.select_option("OTHR")
        ask(page, "did it rise?")
        answer = answered(page)
        assert "".join(answer.locator(".words").all_inner_texts()) == "A moment.It rose."
        answer.locator(".steps > summary").click()
        answer.get_by_text("The dashboard gave Daily Prices").click()
        assert answer.locator(".steps tbody tr").count() == 10
        assert "there is no such widget" in answer.inner_text()
        ask(page, "sure?")
        assert "Yes." in answered(page, 2).inner_text()
    first, second, third = server.bodies
    assert first["messages"] == [{"role": "human", "content": "did it rise?"}]
    (widget,) = first["widgets"]["primary"]
    assert {param["name"]: param["current_value"] for param in widget["params"]} == {"symbol": "OTHR", "days": 30}
    _, words, asked, given = second["messages"]
    assert words == {"role": "ai", "content": "A moment."}
    assert json.loads(asked["content"])["extra_state"] == given["extra_state"] == {"kept": "x"}
    data, wrong = given["data"]
    assert len(json.loads(data["items"][0]["content"])) == 10
    assert wrong["error_type"] == "not_found"
    assert [said["role"] for said in third["messages"]] == ["human", "ai", "ai", "tool", "ai", "human"]


def test_markdown_becomes_elements_and_never_html(page):
    text = (
        "# Head\n\nHe **is** *very* `x < 1` [there](https://a.example/b) and [not](javascript:alert(1)).\n\n"
        "- one\n  - two\n- three\n\n7. seven\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```py\n<b>&amp;\n```\n\n"
        "<img src=x onerror=alert(1)> ![pic](https://a.example/p.png)"
    )
    with played([chunk(piece) for piece in text]) as server:
        page.goto(server.url)
        ask(page, "x")
        words = answered(page).locator(".words")
        assert words.locator("h3").inner_text() == "Head"
        assert words.locator("strong").inner_text() == "is"
        assert [link.get_attribute("href") for link in words.locator("a").all()] == [
            "https://a.example/b",
            "https://a.example/p.png",
        ]
        assert words.locator("li li").inner_text() == "two"
        assert words.locator("ol").get_attribute("start") == "7"
        assert words.locator("td.right").inner_text() == "2"
        assert words.locator("pre").inner_text() == "<b>&amp;"
        assert words.locator("img").count() == 0
        assert "<img src=x onerror=alert(1)>" in words.inner_text()


def test_formulas_become_mathml_and_prices_stay_text(page):
    text = (
        "Euler: \\(e^{i\\pi}+1=0\\) and $\\frac{a_1}{b_2}$.\n\n"
        "$$\n\\sum_{n=1}^N n\n\n- x\n$$\n\nThen \\[x^2\\] it ends.\n\n"
        "From $5 to $10, US$3/$4, `$x$`, \\$a\\$, and \\(\\frac{1\\)."
    )
    with played([chunk(piece) for piece in text]) as server:
        page.goto(server.url)
        ask(page, "x")
        words = answered(page).locator(".words")
        assert words.locator("math").count() == 4
        assert words.locator("math[display=block]").count() == 2
        assert words.locator("mfrac").count() == 1
        assert words.locator("code").inner_text() == "$x$"
        assert "From $5 to $10, US$3/$4, $x$, $a$, and \\(\\frac{1\\)." in words.inner_text()


def test_attached_files_go_with_each_question(page):
    with played([chunk("Read.")], [chunk("Again.")], [chunk("New.")]) as server:
        page.goto(server.url)
        page.get_by_text("Answers come from openai:m: it sees no pictures").wait_for()
        named = [("report.pdf", b"%PDF"), ("virus.exe", b"x"), ("table.CSV", b"a,b")]
        files = [{"name": name, "mimeType": "", "buffer": data} for name, data in named]
        page.set_input_files("#chosen", files)
        page.get_by_text("virus.exe can't be read").wait_for()
        page.get_by_role("button", name="Remove table.CSV").click()
        page.set_input_files("#chosen", files[2:])
        page.get_by_role("button", name="Remove table.CSV").wait_for()
        ask(page, "what is in it?")
        answered(page)
        ask(page, "sure?")
        answered(page, 2)
        page.get_by_role("button", name="New conversation").click()
        ask(page, "and now?")
        answered(page)
    first, second, third = (body["context"] for body in server.bodies)
    assert [context["name"] for context in first] == ["report.pdf", "table.CSV"]
    (item,) = first[1]["data"]["items"]
    assert item == {"content": "YSxi", "data_format": {"data_type": "csv", "filename": "table.CSV"}}
    assert second == first
    assert third == []


def test_a_table_is_sorted_by_its_heads(page):
    with played([artifact("table", "Quarters", ROWS)]) as server:
        page.goto(server.url)
        ask(page, "x")
        table = answered(page).locator("table.sorts")
        revenue = table.get_by_role("button", name="revenue")

        def column() -> list[str]:
            return table.locator("tbody td:nth-child(2)").all_inner_texts()

        assert column() == ["9", "100", "25", "1000"]
        revenue.click()
        assert column() == ["9", "25", "100", "1000"]
        revenue.click()
        assert column() == ["1000", "100", "25", "9"]
        assert table.locator("th[aria-sort=descending]").inner_text().startswith("revenue")


def test_a_long_table_is_drawn_in_part_until_all_is_wanted(page):
    with played([artifact("table", "Many", [{"n": n} for n in range(120)])]) as server:
        page.goto(server.url)
        ask(page, "x")
        answer = answered(page)
        assert answer.locator("tbody tr").count() == 50
        answer.get_by_role("button", name="Show all 120 rows").click()
        assert answer.locator("tbody tr").count() == 120


@pytest.mark.parametrize(
    ("params", "selector", "count"),
    [
        ({"chartType": "line", "xKey": "quarter", "yKey": ["revenue"]}, "polyline", 1),
        ({"chartType": "bar", "xKey": "quarter", "yKey": ["revenue", "note"]}, "rect[class^=fill]:has(title)", 4),
        ({"chartType": "scatter", "xKey": "revenue", "yKey": ["revenue"]}, "circle:has(title)", 4),
        ({"chartType": "pie", "angleKey": "revenue", "calloutLabelKey": "quarter"}, "path.sector", 4),
        ({"chartType": "donut", "angleKey": "revenue", "calloutLabelKey": "quarter"}, "path.sector", 4),
    ],
)
def test_each_kind_of_chart_is_drawn(page, params, selector, count):
    with played([artifact("chart", "Revenue", ROWS, chart_params=params)]) as server:
        page.goto(server.url)
        ask(page, "x")
        chart = answered(page).locator(".chart svg").first
        chart.wait_for()
        assert answered(page).locator(f".chart {selector}").count() == count
        assert "NaN" not in page.locator(".answer .chart").inner_html()


@pytest.mark.parametrize("rows", [[], [{"x": "a", "y": None}], [{"x": "a", "y": 0}], [{"x": "a", "y": -3}]])
@pytest.mark.parametrize("kind", ["line", "bar", "scatter", "pie"])
def test_a_chart_of_next_to_nothing_is_no_error(page, kind, rows):
    keys = {"angleKey": "y", "calloutLabelKey": "x"} if kind == "pie" else {"xKey": "x", "yKey": ["y"]}
    with played([artifact("chart", "Nothing", rows, chart_params={"chartType": kind, **keys})]) as server:
        page.goto(server.url)
        ask(page, "x")
        answered(page).locator(".chart > *").first.wait_for()
        assert "NaN" not in page.locator(".answer .chart").inner_html()


HARMFUL = {
    "script": "<script>{}</script>",
    "handler": "<img src=x onerror='{}'>",
    "svg": "<svg onload='{}'></svg>",
    "address": "<form action='javascript:{}'><button id=go>go</button></form>",
    "inner frame": '<iframe srcdoc="<script>{}</script>"></iframe>',
    "module": "<script type=module>{}</script>",
}
WEBRTC = (
    "let c = new RTCPeerConnection({{iceServers: [{{urls: `turn:127.0.0.1:{port}?transport=tcp`, username: `u`,"
    " credential: `p`}}]}}); c.createDataChannel(`d`); c.createOffer().then(o => c.setLocalDescription(o));"
    " document.getElementById(`p`).textContent = `ran`"
)


@pytest.mark.parametrize("kind", HARMFUL)
def test_scripts_of_a_page_of_html_do_not_run(page, kind):
    html = "<style>p { color: rgb(1, 2, 3) }</style><p id=p>first</p>"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        harmful = HARMFUL[kind].format(WEBRTC.format(port=listener.getsockname()[1]))
        with played([artifact("html", "A page", html + harmful)]) as server:
            page.goto(server.url)
            ask(page, "x")
            answered(page)
            inside = page.frame_locator("iframe").locator("#p")
            inside.wait_for()
            if kind == "address":
                page.frame_locator("iframe").locator("#go").click()
            page.wait_for_timeout(500)
            assert inside.inner_text() == "first"
            assert inside.evaluate("p => getComputedStyle(p).color") == "rgb(1, 2, 3)"
        listener.settimeout(0.1)
        with pytest.raises(TimeoutError):
            listener.accept()
    page.wrong.clear()  # the policy reports what it blocked


@pytest.mark.parametrize(
    "tag",
    [
        "<link rel=preconnect href='http://127.0.0.1:{port}'>",
        "<link rel=stylesheet href='http://127.0.0.1:{port}/x.css'>",
        "<link rel=prefetch href='http://127.0.0.1:{port}/x'>",
        "<meta http-equiv=refresh content='0;url=http://127.0.0.1:{port}/'>",
        "<style>@import 'http://127.0.0.1:{port}/x'; p {{ background: url(http://127.0.0.1:{port}/y) }}</style>",
        "<img src='http://127.0.0.1:{port}/x'><video src='http://127.0.0.1:{port}/y'></video>",
        "<iframe src='http://127.0.0.1:{port}/'></iframe>",
        "<object data='http://127.0.0.1:{port}/'></object><embed src='http://127.0.0.1:{port}/'>",
        "<a id=go href='http://127.0.0.1:{port}/'>go</a>",
        "<svg><image href='http://127.0.0.1:{port}/x'/><use href='http://127.0.0.1:{port}/y#z'/></svg>",
    ],
)
def test_a_page_of_html_does_not_connect(page, tag):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        html = tag.format(port=listener.getsockname()[1]) + "<p id=p>shown</p>"
        with played([artifact("html", "A page", html)]) as server:
            page.goto(server.url)
            ask(page, "x")
            answered(page)
            page.frame_locator("iframe").locator("#p").wait_for()
            if "id=go" in tag:
                page.frame_locator("iframe").locator("#go").click()
            page.wait_for_timeout(500)
        listener.settimeout(0.1)
        with pytest.raises(TimeoutError):
            listener.accept()
    page.wrong.clear()


def test_sources_and_what_to_ask_next(page):
    info = {"type": "widget", "name": "Daily Prices", "metadata": {"input_args": {"symbol": "SAMP"}}, "citable": True}
    cited = ("copilotCitationCollection", {"citations": [{"id": "1", "source_info": info}]})
    with played([chunk("So."), cited, ("copilotPromptSuggestions", {"suggestions": ["And now?"]})]) as server:
        page.goto(server.url)
        ask(page, "x")
        answer = answered(page)
        assert answer.locator(".sources li").inner_text().split() == ["Daily", "Prices", "symbol", "SAMP"]
        answer.get_by_role("button", name="And now?").click()
        answered(page, 2)
    assert server.bodies[1]["messages"][-1] == {"role": "human", "content": "And now?"}


def test_stop_ends_the_stream_and_keeps_what_came(page):
    with played([chunk("So far"), HANG], [chunk("Again.")]) as server:
        page.goto(server.url)
        ask(page, "x")
        page.get_by_text("So far").wait_for()
        page.click("#stop")
        assert "You stopped it." in answered(page).inner_text()
        assert server.left.wait(60)
        ask(page, "y")
        answered(page, 2)
    assert [said["content"] for said in server.bodies[1]["messages"]] == ["x", "So far", "y"]


def test_a_refusal_is_told_and_can_be_tried_again(page):
    busy = JSONResponse({"detail": "too many requests"}, 429, headers={"retry-after": "7"})
    wrong = JSONResponse({"detail": [{"loc": ["body", "messages"], "msg": "is empty"}]}, 422)
    with played(busy, wrong, [chunk("Now.")]) as server:
        page.goto(server.url)
        ask(page, "x")
        alert = page.get_by_role("alert").first
        assert "too many requests; try again in 7 s" in alert.inner_text()
        page.get_by_role("button", name="Try again").click()
        page.get_by_text("body.messages: is empty").wait_for()
        page.get_by_role("button", name="Try again").click()
        page.get_by_text("Now.").wait_for()
    assert [len(body["messages"]) for body in server.bodies] == [1, 1, 1]


def test_an_error_without_words_is_seen(page):
    with played([step("Starts"), step("the model is overloaded", "ERROR")]) as server:
        page.goto(server.url)
        ask(page, "x")
        assert answered(page).locator(".alert").inner_text() == "the model is overloaded"


def test_an_answer_that_failed_is_not_voted_on(page):
    with played([chunk("It failed."), step("it failed", "ERROR")], [chunk("Yes.")]) as server:
        page.goto(server.url)
        ask(page, "x")
        assert answered(page).locator(".thumbs").count() == 0
        ask(page, "y")
        assert answered(page, 2).locator(".thumbs").count() == 1


def test_the_token_is_asked_for_and_then_it_goes_on(page):
    with played([chunk("Welcome.")], token="t0ken") as server:
        page.goto(server.url)
        page.wait_for_selector("#key:visible")
        assert page.is_visible("#header")
        ask(page, "x")
        page.fill("#token", "wrong")
        page.press("#token", "Enter")
        page.wait_for_selector("#refused:visible")
        page.fill("#token", "t0ken")
        page.press("#token", "Enter")
        page.get_by_text("Welcome.").wait_for()
        page.get_by_text("Reads dashboards.").wait_for()
        assert not page.is_visible("#key")


def test_a_vote_goes_to_the_server(page):
    with played([chunk("So.")]) as server:
        page.goto(server.url)
        ask(page, "good?")
        answered(page).get_by_label("Not a good answer").click()
        page.get_by_text("Thank you.").wait_for()
    (vote,) = server.votes
    assert (vote["vote"], vote["user_prompt"], vote["ai_response"]) == ("down", "good?", "So.")


def test_the_profile_s_options_are_shown_and_sent(page):
    choices = (Choice(label="Brief", value="brief"), Choice(label="Full", value="full"))
    depth = Feature(label="Depth", type="select", default="brief", options=choices)
    about = AgentInfo(id="desk", name="Desk", features={"depth": depth, "web": Feature(label="Web", default=True)})
    with played([chunk("So.")], about=about) as server:
        page.goto(server.url)
        page.get_by_label("Depth").select_option("Full")
        ask(page, "x")
        answered(page)
    assert server.bodies[0]["workspace_options"] == {"depth": "full", "web": True}


def test_a_new_conversation_begins_with_nothing(page):
    with played([chunk("So.")]) as server:
        page.goto(server.url)
        ask(page, "x")
        answered(page)
        page.click("#anew")
        ask(page, "y")
        answered(page)
    assert [said["content"] for said in server.bodies[1]["messages"]] == ["y"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(page, scheme):
    page.set_viewport_size({"width": 375, "height": 720})
    page.emulate_media(color_scheme=scheme)
    long = "x" * 300
    wide = [
        artifact("table", "Wide", [{f"column {n}": long[:40] for n in range(12)}]),
        chunk(f"{long}\n\n```\n{long}\n```"),
    ]
    with played([step(long), *wide]) as server:
        page.goto(server.url)
        ask(page, long)
        answered(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_conversation_with_the_real_server(page, place):
    """Everything is real except the model."""
    chart = {"name": "Course", "kind": "line", "x": "date", "y": ["close"], "rows": [{"date": "a", "close": 1}]}
    shows = [
        {"tool": "show_chart", "arguments": chart},
        {"tool": "show_table", "arguments": {"name": "Quarters", "rows": [{"quarter": "Q1", "revenue": 9}]}},
        {"tool": "show_html", "arguments": {"name": "A page", "html": "<h1 id=h>Hello</h1>"}},
        {"tool": "suggest_prompts", "arguments": {"prompts": ["And now?"]}},
    ]
    model = place.script(
        "skipped: the server's own fetch is a message of the history",
        {"text": "I show it.", "calls": shows, "expect": "close"},
        "It *rose*.",
        {"text": "Still so.", "expect": "close"},
    )
    with serving(place, "--model", model, "--token", "t0ken") as server:
        page.goto(server.url)
        page.get_by_text("goose_like").first.wait_for()
        ask(page, "did it rise?")
        page.fill("#token", "t0ken")
        page.press("#token", "Enter")
        answer = answered(page)
        answer.get_by_text("It rose.").wait_for()
        assert answer.locator(".words em").inner_text() == "rose"
        answer.locator(".chart polyline").wait_for(state="attached")
        assert answer.locator(".artifact td").all_inner_texts() == ["Q1", "9"]
        assert page.frame_locator("iframe").locator("#h").inner_text() == "Hello"
        assert "Daily Prices" in answer.locator(".sources").inner_text()
        assert answer.get_by_role("button", name="And now?").is_visible()
        answer.get_by_label("A good answer", exact=True).click()
        page.get_by_text("Thank you.").wait_for()
        ask(page, "sure?")
        page.get_by_text("Still so.").wait_for()
        page.wait_for_selector("#send:visible")
