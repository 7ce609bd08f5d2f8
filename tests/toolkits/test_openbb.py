"""Tests of the toolkit `openbb`: its tools for different requests, its checks, and shown results."""

import asyncio
import json

import pytest
from goose_like_toolkits.openbb import OpenBBToolkit
from goose_like_toolkits.openbb.rows import parse_rows

from goose_like.core.errors import ProfileError
from goose_like.core.events import ArtifactShown, PromptsSuggested
from goose_like.core.message import Message, Text, ToolResult
from goose_like.serve.openbb.client_tools import choose_aliases
from goose_like.serve.openbb.query import ClientTool, Query, UserMessage, Widget, WidgetParam, WidgetTiers
from goose_like.serve.openbb.request import parse_query
from goose_like.testing import trial
from goose_like.toolkit import Requirements, ToolError
from tests.fakes import ExchangeHarness, call, calls

SHOWING = ["show_table", "show_chart", "show_html", "suggest_prompts"]
PRICES = Widget(
    uuid="w-1",
    name="Prices",
    origin="o",
    widget_id="prices",
    params=(WidgetParam(name="symbol", current_value="AAPL"), WidgetParam(name="period", has_options_endpoint=True)),
)
NEWS = Widget(uuid="w-2", name="News", origin="o", widget_id="news")


def query(*widgets, dialect="workspace", tools=(), extra=()):
    tiers = WidgetTiers(primary=widgets, extra=extra)
    return Query(dialect=dialect, messages=(UserMessage(text="hi"),), widgets=tiers, tools=choose_aliases(tools, ()))


def build_tools(asked=None, **config):
    made = OpenBBToolkit(None, Requirements("openbb", {}), config=config | ({"query": asked} if asked else {}))
    return {each.name: each for each in made.tools()}


# --- what is offered


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        (None, []),
        (query(), []),
        (query(PRICES.model_copy(update={"params": ()})), ["get_widget_data"]),
        (query(PRICES, extra=[NEWS]), ["get_widget_data", "get_extra_widget_data", "get_params_options"]),
        (query(extra=[NEWS]), ["get_extra_widget_data"]),
    ],
)
def test_what_is_offered_depends_on_the_dashboard(asked, more):
    tools = build_tools(asked)
    assert list(tools) == [*more, *SHOWING]
    assert [tool.name for tool in tools.values() if tool.options.remote] == more


def test_the_older_client_is_offered_what_it_knows():
    tool = ClientTool(name="lookup")
    asked = query(PRICES, extra=[NEWS], dialect="copilot", tools=(tool,))
    assert list(build_tools(asked, functions=["save_skill"])) == ["get_widget_data", "show_table", "show_chart"]


def test_functions_and_tools_are_picked_by_the_profile():
    asked = query(PRICES, extra=[NEWS])
    tools = build_tools(asked, functions=["get_skill_content"], tools=["show_table", "get_widget_data"])
    assert list(tools) == ["show_table", "get_widget_data", "get_skill_content"]
    assert tools["get_skill_content"].spec.schema["required"] == ["slug"]
    assert list(build_tools(query(), tools=["get_widget_data"])) == []


SKILLS = {"skills_catalog": [{"slug": "earnings"}]}
BODY = {"messages": [{"role": "human", "content": "x"}]}


async def test_a_listed_skill_can_be_read():
    tools = build_tools(parse_query(json.dumps(BODY | SKILLS).encode()))
    with pytest.raises(ToolError, match=r"no skill 'earning'.*earnings"):
        await tools["get_skill_content"].function(slug="earning")
    chosen = BODY | SKILLS | {"selected_skills": [{"slug": "a", "contentMarkdown": "b"}]}
    assert "get_skill_content" not in build_tools(parse_query(json.dumps(chosen).encode()))


@pytest.mark.parametrize(
    ("config", "report", "path"),
    [
        (
            {"functions": ["save_skil"]},
            "no function 'save_skil' to offer; did you mean 'save_skill'?",
            ("config", "functions", 0),
        ),
        ({"imagee": "x"}, "toolkit 'openbb' has no 'imagee'; did you mean 'image'?", ("config", "imagee")),
        ({"features": "x"}, "features: expected a mapping, not 'x'", ("config", "features")),
        ({"query": {"dialect": "x"}}, "query.dialect: ", ("config", "query", "dialect")),
    ],
)  # fmt: skip
def test_a_config_that_is_wrong(config, report, path):
    with pytest.raises(ProfileError) as caught:
        build_tools(**config)
    assert str(caught.value).startswith(report)
    assert caught.value.path == path


def test_the_prompt_is_the_same_for_every_request():
    def prompt(**config):
        return OpenBBToolkit(None, Requirements("openbb", {}), config=config).prompt()

    assert prompt(query=query()) == prompt(query=query(PRICES, dialect="copilot")) != prompt()
    assert "get_widget_data" in prompt(query=query())
    assert "widget" not in prompt()
    assert ["show_table" in prompt(tools=[name]) for name in ("show_table", "get_widget_data")] == [True, False]


# --- the client's tools


def test_tools_of_the_client_keep_their_schemas():
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Where."}},
        "required": ["city"],
    }
    asked = query(tools=(ClientTool(name="weather.now", description="The weather.", input_schema=schema),))
    (tool,) = (each for each in build_tools(asked).values() if each.options.remote)
    assert (tool.name, tool.spec.description, tool.spec.schema) == ("weather_now", "The weather.", schema)


def test_a_tool_of_the_client_may_have_the_name_of_one_of_ours():
    tools = build_tools(query(tools=(ClientTool(name="show_table"),)))
    assert sorted(tools) == sorted(SHOWING)
    assert tools["show_table"].options.remote


def of_exchange(bench, asked, **config):
    view, config = bench.exchange.view, {"query": asked, **config}
    toolkit = OpenBBToolkit(bench.journal, Requirements("openbb", {}), exchange_view=view, config=config)
    return {each.name: each for each in toolkit.tools()}


async def test_data_that_came_is_not_asked_for_again(tmp_path):
    script = [
        calls(call("get_widget_data", '{"widget_uuid": "w-1"}', id="a")),
        calls(call("get_widget_data", '{"widget_uuid": "w-1", "arguments": {}}', id="b")),
        calls(call("get_widget_data", '{"widget_uuid": "w-1", "arguments": {"symbol": "MSFT"}}', id="c")),
        calls(call("get_widget_data", '{"widget_uuid": "w-1"}', id="d")),
    ]
    bench = ExchangeHarness(script, folder=tmp_path / "s")
    bench.exchange.tools.update(of_exchange(bench, query(PRICES)))
    came = [ToolResult(call_id=id, output="1.5" + " " * 9_000) for id in "ac"]
    assert (await bench.exchange.reply("Hi.")).reason == "handed_off"
    assert (await bench.exchange.reply(Message(role="user", parts=(came[0],)))).reason == "handed_off"
    # A small model would call a third time if it did not get the data again.
    assert ["answer from it:\n1.5" in output for output in bench.outputs] == [False, True]
    assert len(bench.outputs[1]) < 3_000
    assert [each for each in "abcd" if bench.exchange.history.is_open(each)] == ["c"]
    assert (await bench.exchange.reply(Message(role="user", parts=(came[1], Text(text="And now?"))))).exit_code == 0
    assert [each for each in "abcd" if bench.exchange.history.is_open(each)] == ["d"]  # a new question, new data
    bench.session.close()


async def test_a_small_model_is_offered_each_widget_once(tmp_path):
    bench = ExchangeHarness([calls(call("get_widget_data", '{"widget_uuid": "w-1"}', id="a"))], folder=tmp_path / "s")

    def list_uuids(*widgets):
        tool = of_exchange(bench, query(*widgets), small_model=True)["get_widget_data"]
        assert list(tool.spec.schema["properties"]) == ["widget_uuid"]
        return tool.spec.schema["properties"]["widget_uuid"]["enum"]

    assert list_uuids(PRICES, NEWS) == ["w-1", "w-2"]
    bench.exchange.tools.update(of_exchange(bench, query(PRICES, NEWS), small_model=True))
    assert (await bench.exchange.reply("Hi.")).reason == "handed_off"
    assert (list_uuids(PRICES, NEWS), list_uuids(PRICES)) == (["w-2"], [])
    bench.session.close()


async def test_current_values_make_no_other_call(tmp_path):
    fetched = call("get_widget_data", '{"widget_uuid": "w-1", "arguments": {"symbol": "AAPL"}}', id="a")
    bench = ExchangeHarness(
        [calls(fetched), calls(call("get_widget_data", '{"widget_uuid": "w-1"}', id="b")), Message.assistant("Done.")],
        folder=tmp_path / "s",
    )
    bench.exchange.tools.update(of_exchange(bench, query(PRICES)))
    assert (await bench.exchange.reply("Hi.")).reason == "handed_off"
    assert (
        await bench.exchange.reply(Message(role="user", parts=(ToolResult(call_id="a", output="1"),)))
    ).exit_code == 0
    assert "answer from it:\n1" in bench.outputs[-1]
    bench.session.close()


async def test_calls_are_checked_before_they_are_handed_off(tmp_path):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    asked = query(PRICES, NEWS, tools=(ClientTool(name="weather", input_schema=schema),))
    wrong = [
        call("get_widget_data", '{"widget_uuid": "w-9"}', id="a"),
        call("get_widget_data", '{"widget_uuid": "w-1", "arguments": {"symbl": "MSFT"}}', id="b"),
        call("weather", "{}", id="c"),
    ]
    right = [
        call("get_widget_data", '{"widget_uuid": "w-1", "arguments": {"symbol": "MSFT"}}', id="d"),
        call("weather", '{"city": "Kiel", "self": 1, "name": "x"}', id="e"),
        call("show_table", '{"name": "T", "rows": [{"a": 1}]}', id="f"),
    ]
    bench = ExchangeHarness([calls(*wrong), calls(*right)], folder=tmp_path / "s")
    bench.exchange.tools.update(of_exchange(bench, asked))
    assert (await bench.exchange.reply("Hi.")).reason == "handed_off"
    unknown, misspelt, missing = bench.outputs
    assert "'w-9'" in unknown
    assert "did you mean 'symbol'?" in misspelt
    assert "'city' is missing" in missing
    assert [each for each in "def" if bench.exchange.history.is_open(each)] == ["d", "e"]
    assert [event.call_id for event in bench.events_of(ArtifactShown)] == ["f"]
    bench.session.close()


# --- what is shown


@pytest.mark.parametrize(
    "rows",
    [
        [{"day": "Mon", "price": 2.5}, {"day": "Tue", "price": 3}],
        {"day": ["Mon", "Tue"], "price": [2.5, 3]},
        '[{"day": "Mon", "price": 2.5}, {"day": "Tue", "price": 3}]',
        '{"day": ["Mon", "Tue"], "price": [2.5, 3]}',
    ],
)
async def test_a_table_in_each_form_that_models_send(rows):
    async with trial(OpenBBToolkit) as openbb:
        report = await openbb.call("show_table", name="Prices", rows=rows, description="Two days.")
        assert report == "the person sees the table 'Prices', 2 rows of day, price"
        (shown,) = openbb.recorder.events
        assert (shown.call_id, shown.artifact.kind, shown.artifact.description) == ("call_1", "table", "Two days.")
        assert shown.artifact.rows == ({"day": "Mon", "price": 2.5}, {"day": "Tue", "price": 3})


def test_cells_that_no_table_can_hold():
    assert parse_rows([{"a": float("nan"), "b": {"c": [1]}, "d": None}]) == [{"a": None, "b": '{"c": [1]}', "d": None}]
    assert parse_rows({"a": 1, "b": "x"}) == [{"a": 1, "b": "x"}]


@pytest.mark.parametrize(
    ("rows", "report"),
    [
        ([], "there are no rows"),
        ("a,b\n1,2", "the rows are text, but no JSON"),
        ([["a", 1]], r'row 1 is \["a", 1\], no object; send a list of objects'),
        ({"a": [1, 2], "b": [1]}, r"the columns have different lengths \(1, 2\)"),
        ([{"a": 1}] * 1_001, "1,001 rows are too many to show; send at most 1,000"),
        ([{f"c{n}": n for n in range(61)}], "61 columns are too many"),
        ([{"a": "x" * 400}] * 999, "bytes; send at most 300,000"),
        (7, "the rows are a int"),
    ],
)
async def test_rows_that_is_empty(rows, report):
    async with trial(OpenBBToolkit) as openbb:
        with pytest.raises(ToolError, match=report):
            await openbb.call("show_table", name="T", rows=rows)
        assert openbb.recorder.events == []


POINTS = [{"day": "Mon", "price": "2.5", "n": 1}, {"day": "Tue", "n": 2}, {"day": "Wed", "price": 3, "n": 3}]


async def test_a_chart_has_numbers_where_it_needs_them():
    async with trial(OpenBBToolkit) as openbb:
        await openbb.call("show_chart", name="C", kind="line", x="day", y="price", rows=POINTS)
        (shown,) = openbb.recorder.events
        assert [row["price"] for row in shown.artifact.rows] == [2.5, None, 3]
        assert (shown.artifact.chart.x, shown.artifact.chart.y) == ("day", ("price",))
        await openbb.call("show_chart", name="C", kind="pie", x="day", y=["price"], rows=POINTS)
        assert [row["day"] for row in openbb.recorder.events[1].artifact.rows] == ["Mon", "Wed"]


@pytest.mark.parametrize(
    ("chart", "report"),
    [
        ({"x": "dya"}, "no row has a key 'dya'; did you mean 'day'?"),
        ({"y": ["prices"]}, "no row has a key 'prices'; did you mean 'price'?"),
        ({"y": ["day"]}, "row 1 has \"Mon\" at 'day', where a line needs a number; send numbers without units"),
        ({"kind": "scatter"}, "row 1 has \"Mon\" at 'day', where a scatter needs a number"),
        ({"kind": "donut", "y": ["price", "n"]}, "a donut shows one key"),
        ({"kind": "pie", "rows": [{"day": "Mon", "price": -1}]}, "a pie has no place for sizes below 0"),
        ({"rows": [{"day": "Mon", "price": None}]}, "no row has a number at 'price'"),
        ({"rows": [{"day": "Mon", "price": True}]}, "row 1 has true at 'price'"),
        ({"rows": [{"day": "Mon", "price": 10**400}]}, "row 1 has 1000"),
        ({"kind": "area"}, "wrong arguments for show_chart: field 'kind'"),
        ({"y": []}, "wrong arguments for show_chart: field 'y'"),
    ],
)
async def test_a_chart_that_can_not_be_drawn(chart, report):
    async with trial(OpenBBToolkit) as openbb:
        asked = {"name": "C", "kind": "line", "x": "day", "y": ["price"], "rows": POINTS} | chart
        with pytest.raises(ToolError) as caught:
            await openbb.call("show_chart", **asked)
        assert report in str(caught.value)


async def test_a_page():
    async with trial(OpenBBToolkit) as openbb:
        await openbb.call("show_html", name="P", html="```html\n<p>hello</p>\n```")
        assert openbb.recorder.events[0].artifact.text == "<p>hello</p>"
        with pytest.raises(ToolError, match="this is no HTML"):
            await openbb.call("show_html", name="P", html="hello")
        with pytest.raises(ToolError, match="the page has 300,001 bytes"):
            await openbb.call("show_html", name="P", html="<" + "x" * 300_000)


async def test_prompts():
    async with trial(OpenBBToolkit) as openbb:
        await openbb.call("suggest_prompts", prompts=["Why?", " Why? ", "And\nthen?", ""])
        assert openbb.recorder.events == [PromptsSuggested(prompts=("Why?", "And then?"))]
        for wrong, report in (([""], "0 prompts were sent; send 1 to 5"), (["x" * 201], "a prompt has 201 characters")):
            with pytest.raises(ToolError, match=report):
                await openbb.call("suggest_prompts", prompts=wrong)


async def test_without_a_dashboard_there_is_no_data():
    async with trial(OpenBBToolkit) as openbb:
        assert list(openbb.tools) == SHOWING
        with pytest.raises(ToolError, match="there is no dashboard here"):
            await asyncio.ensure_future(openbb.toolkit.get_widget_data("w-1"))
