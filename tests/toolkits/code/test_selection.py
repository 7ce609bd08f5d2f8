"""The plugins that the prompt names, and their descriptions."""

import ast
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from goose_like_toolkits.code.plugins.plugin_prompt import format_signature, make_schema, make_tool_spec
from goose_like_toolkits.code.plugins.registry import SHIPPED_PLUGINS, PluginRegistry
from goose_like_toolkits.code.plugins.selection import pick_best, score_words, select_plugins, split_words
from goose_like_toolkits.code.plugins.spec import PluginSpec
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from goose_like.agent.view import ExchangeView, ModelView
from goose_like.config.profile import ModelChoice
from goose_like.core.events import UsageRecorded
from goose_like.core.history import History
from goose_like.core.message import Usage
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Model, ModelPair
from goose_like.providers.openai import OpenAIProvider
from goose_like.providers.presets import Preset
from goose_like.providers.scripted import ScriptedProvider
from goose_like.sdk.parse_cache import ParseCache
from goose_like.sessions.session import Session
from tests.loopback import Loopback, Response, refusal
from tests.providers.vendors import KEY

SESSION = Session(Path("unused"), "n", History())
SERVER = Preset(name="mine", base_url="http://127.0.0.1", embedding_model="e1")
SERVER_PROVIDER = OpenAIProvider.for_preset(SERVER)


def plugin(name: str, description: str = "does it", **more: object) -> PluginSpec:
    return PluginSpec.model_validate(
        {"name": name, "description": description, "code": "a.py", "file": "a.yaml", **more}
    )


PLUGINS = [
    plugin("sql_pull_data", "Pulls rows from a SQL database.", examples="df = sql_pull_data('all orders')"),
    plugin("tell_joke", "Tells a joke."),
    plugin("anomaly_detection", "Finds anomalies in a time series."),
    plugin("weather", "Says whether it rains in a city."),
    plugin("setup", "Must be called first.", required=True),
]


# --- by words


@pytest.mark.parametrize(
    ("said", "best"),
    [
        ("pull the orders from my database", "sql_pull_data"),
        ("is there an anomaly in column b?", "anomaly_detection"),
        ("make me laugh with JOKES", "tell_joke"),
        ("Will it rain, or does it rains already? which cities", "weather"),
        ("call sqlPullData", "sql_pull_data"),
    ],
)
async def test_best_match_is_selected(said, best):
    assert [each.name for each in await select_plugins(PLUGINS, said, 2)] == sorted(
        [best, "setup"], key=names(PLUGINS).index
    )


def names(plugins: Sequence[PluginSpec]) -> list[str]:
    return [each.name for each in plugins]


async def test_few_plugins_are_all_selected():
    assert await select_plugins(PLUGINS, "nothing of this", 5) == tuple(PLUGINS)


@pytest.mark.parametrize("said", ["", "wie wird das Wetter?", "Please tell me what it is that you would do for us."])
async def test_nothing_is_selected_without_a_common_word(said):
    assert names(await select_plugins(PLUGINS, said, 3)) == ["setup"]


UPSTREAM = [
    ("anomaly_detection", "Identifies anomalies from an input DataFrame of time series, and adds a new column."),
    ("document_retriever", "Takes a query and returns a list of documents that are most relevant to the query."),
    ("image2text", "Can load an image and convert it into text by using OCR."),
    ("klarna_search", "Search and compare prices from thousands of online shops."),
    ("paper_summary", "Summarizes a given paper page by page, highlighting the key points."),
    ("sql_pull_data", "Pull data from a SQL database. Data can only be used for anomaly detection."),
    ("tell_joke", "Call this plugin to tell a joke."),
    ("text_classification", "Can access a list of English text and classify each of them into a label."),
    ("web_search", "Search information from web with a query using search engine."),
]


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ("detect abnormal data points in ./data.csv.", "anomaly_detection"),
        ("give me summaries of these papers", "paper_summary"),
        ("which label has each review? Use a classifier", "text_classification"),
        ("searching the web for llamas", "web_search"),
        ("comparing the price of laptops", "klarna_search"),
    ],
)
async def test_forms_of_words_and_names_match(said, first):
    plugins = [plugin(name, description) for name, description in UPSTREAM]
    assert first in names(await select_plugins(plugins, said, 2))
    assert "tell_joke" not in names(await select_plugins(plugins, said, 8))


def test_parameters_match():
    reader = plugin("reader", parameters=[{"name": "barcode", "type": "str", "description": "The digits."}])
    for said in ("here is a barcode", "digits!"):
        assert [score > 0 for score in score_words([*PLUGINS, reader], said)] == [False] * 5 + [True]


def test_split_words_handles_names_and_endings():
    assert split_words("getHTTPPages of sql_tables, glass") == ["httppag", "sql", "tabl", "glass"]


WORDS = st.lists(st.sampled_from(["sql", "joke", "rain", "the", "data", "city", "find"]), max_size=6).map(" ".join)


@given(st.lists(WORDS.filter(bool), max_size=8), WORDS)
def test_scores_are_above_zero_for_common_words(texts, said):
    plugins = [plugin("p", text) for text in texts]
    scores = score_words(plugins, said)
    for text, score in zip(texts, scores, strict=True):
        assert (score > 0) == bool((set(text.split()) & set(said.split())) - {"the"})
    backwards = score_words(plugins[::-1], said)[::-1]
    assert scores == pytest.approx(backwards)


@given(st.lists(st.tuples(st.floats(0, 9), st.booleans()), max_size=9), st.integers(1, 9))
def test_pick_best_keeps_required(scored, k):
    plugins = [plugin(f"p{at}", required=required) for at, (_, required) in enumerate(scored)]
    scores = dict(zip(names(plugins), (score for score, _ in scored), strict=True))
    found = names(pick_best(plugins, list(scores.values()), k))
    always = names([each for each in plugins if each.required])
    assert set(always) <= set(found)
    assert len(found) <= max(k, len(always) + 1)
    fitting = [score for score, is_required in scored if not is_required]
    if max(fitting, default=0) >= max((score for score, _ in scored), default=0) > 0:
        assert len(found) > len(always)  # the best match is there, however many are required
    assert found == [name for name in names(plugins) if name in found]
    chosen = [scores[name] for name in found if name not in always]
    assert all(chosen)
    left = [score for name, score in scores.items() if name not in found]
    assert max(left, default=0) <= min(chosen, default=9)


# --- by meaning, from a server


def vectors(*values: Sequence[float]) -> Response:
    data = [{"object": "embedding", "index": at, "embedding": value} for at, value in enumerate(values)]
    body = {"object": "list", "model": "e1", "data": data[::-1], "usage": {"prompt_tokens": 7, "total_tokens": 7}}
    return answered(json.dumps(body).encode())


def answered(body: bytes) -> Response:
    return Response(200, {"content-type": "application/json", "content-length": str(len(body))}, [body])


def view(server: Loopback, kind: type[OpenAIProvider] = SERVER_PROVIDER) -> tuple[ModelView, Recorder]:
    provider = kind(ModelChoice(model="mine:m1", base_url=server.base_url))
    model, notifier = Model(provider, "m1", "mine:m1"), Recorder()
    return ExchangeView(SESSION, ModelPair(model, model), notifier).processor, notifier


RAIN = ([1, 0.0], [0, 1], [0.5, 0.5], [-1, 0], [0, -1])
"""Vectors of the plugins. What is said has one near that of the last one that is not required."""


async def test_selection_by_meaning_caches_vectors(tmp_path):
    store = ParseCache(tmp_path / "kept.sqlite")
    async with Loopback([vectors(*RAIN, [-1, 0.1]), vectors([0, 2]), vectors([9, 2], [9, 2.1])]) as server:
        model, notifier = view(server)
        assert names(await select_plugins(PLUGINS, "do I need an umbrella?", 2, model, store)) == ["weather", "setup"]
        assert names(await select_plugins(PLUGINS, "cheer me up", 2, model, store)) == ["tell_joke", "setup"]
        changed = [*PLUGINS[:3], plugin("weather", "Says how warm it is."), PLUGINS[4]]
        assert names(await select_plugins(changed, "is it warm?", 2, model, store)) == ["weather", "setup"]
        asked = [request.json for request in server.requests]
    assert [(each["model"], len(each["input"])) for each in asked] == [("e1", 6), ("e1", 1), ("e1", 2)]
    assert asked[2]["input"] == ["weather\nSays how warm it is.\n", "is it warm?"]
    assert b"POST /v1/embeddings" in server.requests[0].head
    used = [event for event in notifier.events if isinstance(event, UsageRecorded)]
    assert used == [UsageRecorded(model="mine:e1", usage=Usage(input_tokens=7), purpose="choice of plugins")] * 3
    store.close()


async def test_selection_is_cached_within_a_turn(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    registry = PluginRegistry(SHIPPED_PLUGINS, None, {})
    count = len(registry.enabled)
    async with Loopback([vectors(*[[1.0, n] for n in range(count + 1)]), vectors([1.0, 0.0])]) as server:
        model, notifier = view(server)
        asked = ExchangeView(SESSION, ModelPair(model.model, model.model), notifier)
        first = await registry.select(registry.enabled, "draw it", 2, asked)
        assert await registry.select(registry.enabled, "draw it", 2, asked) == first
        assert len(server.requests) == 1
        await registry.select(registry.enabled, "count it", 2, asked)
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "response",
    [
        refusal(404, "no such model"),
        refusal(401),
        vectors([1, 0]),
        vectors(*RAIN, []),
        answered(b"{"),
        answered(b"[]"),
        answered(b'{"data": {"a": 1}}'),
        Response(200, {"content-type": "text/html"}, [b"<html>"]),
        Response(is_reset=True),
    ],
    ids=lambda response: f"{response.status} {b''.join(response.pieces)[:24]!r}",
)
async def test_selection_falls_back_to_words(response):
    async with Loopback([response]) as server:
        model, _ = view(server)
        assert names(await select_plugins(PLUGINS, "rain in the city", 2, model)) == ["weather", "setup"]
        assert len(server.requests) == 1


async def test_no_request_without_embedding_model(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with Loopback([refusal(500)]) as server:
        without = OpenAIProvider.for_preset(SERVER.model_copy(update={"embedding_model": None}))
        for kind in (without, OpenAIProvider):
            model, _ = view(server, kind)
            assert model.embedding_model is None
            assert names(await select_plugins(PLUGINS, "rain in the city", 2, model)) == ["weather", "setup"]
        assert server.requests == []
    assert OpenAIProvider(ModelChoice(model="openai:m1")).embedding_model == "text-embedding-3-small"
    (tmp_path / "s.yaml").write_text("- hi")
    played = Model(ScriptedProvider(ModelChoice(model=f"scripted:{tmp_path}/s.yaml")), "s", "scripted:s")
    assert ExchangeView(SESSION, ModelPair(played, played), Recorder()).processor.embedding_model is None


# --- in words and as a schema

FULL = plugin(
    "find",
    "Finds\nthings.",
    examples='a, b = find("x")',
    parameters=[
        {"name": "text", "type": "str", "required": True, "description": "What to\nlook for."},
        {"name": "limit", "type": "int", "required": False, "default": 5},
        {"name": "frame", "type": "pd.DataFrame", "required": False, "description": "A table."},
    ],
    returns=[{"name": "a", "type": "list", "description": "All."}, {"name": "b", "type": "str"}],
)


def test_plugin_formatted_as_function():
    assert format_signature(FULL) == (
        "# Finds\n# things.\n# Examples:\n"
        '# a, b = find("x")\n'
        "def find(\n"
        "    # What to\n    # look for.\n"
        "    text: str,\n"
        "    limit: int = 5,\n"
        "    # A table.\n"
        "    frame: pd.DataFrame = ...,\n"
        ") -> Tuple[\n"
        "    # a: All.\n"
        "    list,\n"
        "    # b\n"
        "    str,\n"
        "]: ...\n"
    )
    assert format_signature(plugin("go")) == "# does it\ndef go(): ...\n"
    one = plugin("one", returns=[{"name": "n", "type": "int", "description": "How many."}])
    assert format_signature(one) == "# does it\ndef one() -> int: ...\n    # returns n: How many.\n"


@pytest.mark.parametrize("definition", [*PLUGINS, FULL], ids=lambda each: each.name)
def test_formatted_signature_is_python(definition):
    (node,) = ast.parse(format_signature(definition)).body
    assert isinstance(node, ast.FunctionDef)
    assert [arg.arg for arg in node.args.args] == names(definition.parameters)


def test_plugin_formatted_as_tool():
    spec = make_tool_spec(FULL)
    assert spec.name == "find"
    assert spec.description == "Finds\nthings.\nReturns: a (list) All.; b (str)"
    assert spec.schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to\nlook for."},
            "limit": {"type": "integer", "description": "default: 5"},
            "frame": {"description": "A table.; type: pd.DataFrame"},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    Draft202012Validator.check_schema(spec.schema)


STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}


@pytest.mark.parametrize(
    ("words", "schema"),
    [
        ("str", STRING),
        ("STRING", STRING),
        ("float", {"type": "number"}),
        ("list", {"type": "array"}),
        ("List[str]", {"type": "array", "items": STRING}),
        ("list of strings", {"type": "array", "items": STRING}),
        ("list[list[int]]", {"type": "array", "items": {"type": "array", "items": INTEGER}}),
        ("typing.Dict[str, int]", {"type": "object", "additionalProperties": INTEGER}),
        ("dict", {"type": "object"}),
        ("tuple[int, ...]", {"type": "array", "items": INTEGER}),
        ("tuple[int, str]", {"type": "array"}),
        ("Optional[int]", {"anyOf": [INTEGER, NULL]}),
        ("Union[str, int, None]", {"anyOf": [STRING, INTEGER, NULL]}),
        ("str or list", {"anyOf": [STRING, {"type": "array"}]}),
        ("str | int | str", {"anyOf": [STRING, INTEGER]}),
        ("str/int", {"anyOf": [STRING, INTEGER]}),
        ("Literal['a', 3]", {"enum": ["a", 3]}),
        ("Annotated[int, 'n']", INTEGER),
        ("'str'", STRING),
        ("list[DataFrame]", {"type": "array"}),
        ("DataFrame", {}),
        ("str or DataFrame", {}),
        ("a path, please", {}),
        ("(((", {}),
        ("", {}),
    ],
)
def test_type_text_becomes_schema(words, schema):
    assert make_schema(words) == schema


@given(st.text(max_size=30))
def test_any_type_text_has_a_schema(words):
    Draft202012Validator.check_schema(make_schema(words))
