"""Tests of the start of a tool call, as front-ends receive it."""

import json

import pytest

from goose_like.agent.call_start import MAX_TITLE_CHARS
from goose_like.core.events import ToolStarted
from goose_like.core.tool import make_tool, tool
from tests.fakes import ExchangeHarness, call, calls

KEY = "sk-ant-api03-" + "Zk8" * 30


@tool(title="Copy {sources} to {target}", paths=("sources", "target"), edits=True)
def copy(sources: list[str], target: str) -> str:
    """Copy files."""
    return "copied"


def note(text: str) -> str:
    """Note a text."""
    return text


async def start(create_harness, *wanted, tools=(copy, note)) -> tuple[ExchangeHarness, list[ToolStarted]]:
    harness = create_harness([calls(*wanted), "Done."])
    for function in tools:
        harness.exchange.tools[function.__name__] = make_tool(function)
    await harness.exchange.reply("Hi.")
    return harness, harness.events_of(ToolStarted)


async def test_a_call_starts_with_its_kind_title_and_paths(create_harness):
    arguments = {"sources": ["a.py", "../b.py", "/c/./d.py", ""], "target": "a.py"}
    b, (started,) = await start(create_harness, call("copy", json.dumps(arguments)))
    folder = b.journal.history.header.cwd
    assert folder == "/"
    assert started.kind == "edit"
    assert started.title == 'Copy ["a.py", "../b.py", "/c/./d.py", ""] to a.py'
    assert started.paths == ("/a.py", "/b.py", "/c/d.py")


async def test_paths_in_the_home_folder(create_harness, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    _, (started,) = await start(create_harness, call("copy", '{"sources": [], "target": "~/x"}'))
    assert started.paths == ("/home/ann/x",)


@pytest.mark.parametrize(
    ("name", "arguments", "title"),
    [
        ("note", '{"text": "one\\n  two"}', "note one two"),
        ("note", '{"text": "one', 'note {"text": "one'),
        ("copy", '{"sources": {"a": 1}, "target": 3}', 'Copy {"a": 1} to 3'),
        ("missing", '{"x": 1}', "missing 1"),
        ("note", json.dumps({"text": "x" * 500}), "note " + "x" * (MAX_TITLE_CHARS - 6) + "…"),
        ("note", json.dumps({"text": f"{'x' * 60} {KEY} y"}), f"note {'x' * 60} [masked:api-key] y"),
    ],
)
async def test_any_call_has_a_title_in_one_line_without_secrets(create_harness, name, arguments, title):
    _, (started,) = await start(create_harness, call(name, arguments))
    assert (started.title, started.paths) == (title, ())


async def test_a_skipped_call_has_a_title_too(create_harness):
    failing = call("copy", '{"sources": 1}', id="a")
    _, started = await start(create_harness, failing, call("note", '{"text": "x"}', id="b"))
    assert [event.title for event in started] == ["Copy 1 to", "note x"]
