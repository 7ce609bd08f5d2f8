"""Options that hold for one turn: reading only, permissions of a command, another model."""

from pathlib import Path

import pytest

from goose_like.agent.build import build_exchange
from goose_like.agent.toolkit import Toolkit
from goose_like.agent.turn_request import TurnRequest, find_model_label, run_turn
from goose_like.config.entry_points import BUILTIN_ENTRY_POINTS
from goose_like.config.profile import ModelChoice, Profile
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Asked, Logged, MessageCompleted, ToolFinished
from goose_like.core.notifier import Recorder
from goose_like.core.tool import tool
from tests.loopback import Loopback, said, sse
from tests.workspace.workspace_harness import needs_sandbox


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write_script(tmp_path, text: str, name: str = "script") -> ModelChoice:
    file = tmp_path / f"{name}.yaml"
    file.write_text(text)
    return ModelChoice(model=f"scripted:{file}")


WRITES = """
- calls:
    - {tool: shell, arguments: {command: echo two > b.txt}}
    - {tool: write_file, arguments: {path: a.txt, content: one}}
- text: done
"""


@needs_sandbox
async def test_a_read_only_turn_changes_nothing_and_the_next_one_does(tmp_path, root):
    recorder = Recorder()
    async with build_exchange(Profile(processor=write_script(tmp_path, WRITES * 2)), recorder) as exchange:
        assert (await run_turn(exchange, TurnRequest("review", is_read_only=True))).reason == "stop"
        first = [event.result for event in recorder.events if isinstance(event, ToolFinished)]
        assert [result.is_error for result in first] == [False, True]
        assert "Read-only file system" in first[0].output
        assert list(root.iterdir()) == []
        assert "still run" not in str(recorder.events)
        await run_turn(exchange, TurnRequest("work"))
        assert {file.name: file.read_text() for file in root.iterdir()} == {"a.txt": "one", "b.txt": "two\n"}


class Confined(Toolkit):
    """A toolkit that promises to change things only through the workspace."""

    is_confined = True

    @tool
    def keep(self) -> str:
        """Keep the file through the workspace."""
        return "kept"


class Extended(Confined):
    """A toolkit with more tools than the one that gave the promise."""


class Reading(Toolkit):
    """A toolkit that changes nothing."""

    is_read_only = True

    @tool
    def keep(self) -> str:
        """Look at something."""
        return "kept"


@pytest.mark.parametrize(("kind", "is_offered"), [("Confined", True), ("Reading", True), ("Extended", False)])
async def test_a_read_only_turn_has_the_tools_of_toolkits_that_promise_it_themselves(
    tmp_path, root, monkeypatch, kind, is_offered
):
    monkeypatch.setitem(BUILTIN_ENTRY_POINTS["goose_like.toolkit"], "own", f"{__name__}:{kind}")
    recorder = Recorder()
    script = write_script(tmp_path, "[{calls: [{tool: keep}]}, {text: done}]")
    profile = Profile(processor=script, toolkits=("own",), sandbox="full")
    async with build_exchange(profile, recorder) as exchange:
        await run_turn(exchange, TurnRequest("review", is_read_only=True))
    (result,) = [event.result for event in recorder.events if isinstance(event, ToolFinished)]
    assert (result.output == "kept") == is_offered
    assert result.is_error != is_offered


STARTS = """
- calls: [{tool: process, arguments: {action: start, command: bash}}]
- text: started
- calls:
    - {tool: process, arguments: {action: write, id: p1, text: echo one > a.txt}}
    - {tool: process, arguments: {action: start, command: bash}}
    - {tool: process, arguments: {action: write, id: p2, text: echo two > b.txt; cat ../project/c.txt}}
- text: done
"""


@needs_sandbox
async def test_a_read_only_turn_gives_no_input_to_a_process_that_may_write(tmp_path, root):
    recorder = Recorder()
    (root / "c.txt").write_text("three\n")
    async with build_exchange(Profile(processor=write_script(tmp_path, STARTS)), recorder) as exchange:
        await run_turn(exchange, TurnRequest("work"))
        await run_turn(exchange, TurnRequest("review", is_read_only=True))
    assert str(recorder.events).count("processes of earlier turns still run") == 1
    results = [event.result for event in recorder.events if isinstance(event, ToolFinished)]
    assert "p1 may change files" in results[1].output
    assert "Read-only file system" in results[3].output
    assert "three" in results[3].output
    assert [file.name for file in root.iterdir()] == ["c.txt"]


@needs_sandbox
@pytest.mark.parametrize(("allow", "asked"), [((), ["command", "command"]), (("echo",), ["command"])])
async def test_permissions_end_with_the_turn(tmp_path, root, allow, asked):
    recorder = Recorder()
    steps = '[{calls: [{tool: shell, arguments: {command: echo "$HOME"}}]}, {text: done}]'
    script = write_script(tmp_path, steps[:-1] + ", " + steps[1:])
    async with build_exchange(Profile(processor=script, approval="ask"), recorder) as exchange:
        await run_turn(exchange, TurnRequest("one", allow=allow))
        await run_turn(exchange, TurnRequest("two"))
    assert [event.question.kind for event in recorder.events if isinstance(event, Asked)] == asked


async def test_another_model_answers_for_one_turn(tmp_path, root):
    main, other = write_script(tmp_path, "- text: main\n" * 2), write_script(tmp_path, "- text: other\n", "other")
    recorder = Recorder()
    async with build_exchange(Profile(processor=main), recorder) as exchange:
        await run_turn(exchange, TurnRequest("one", model=other.model))
        await run_turn(exchange, TurnRequest("two"))
    answers = [event.message.text for event in recorder.events if isinstance(event, MessageCompleted)]
    assert answers == ["other", "main"]


@pytest.mark.parametrize("name", ["opus", "nobody:x", "anthropic:claude-opus-5-5"])
async def test_a_model_that_cannot_be_used_is_reported(tmp_path, root, name):
    recorder = Recorder()
    async with build_exchange(Profile(processor=write_script(tmp_path, "- text: main\n")), recorder) as exchange:
        assert (await run_turn(exchange, TurnRequest("one", model=name))).reason == "stop"
    (note,) = [event.text for event in recorder.events if isinstance(event, Logged) and name in event.text]
    assert f"the model '{name}' can't be used: " in note


@pytest.mark.parametrize(
    ("name", "provider", "start"),
    [
        ("haiku", "anthropic", "anthropic:claude-haiku-"),
        ("opus", "anthropic", "anthropic:claude-opus-"),
        ("sonnet", "anthropic", "anthropic:claude-sonnet-"),
        ("sonnet", "openai", "anthropic:claude-sonnet-"),
        ("fable", "openai", "anthropic:claude-fable-"),
        ("gpt-99", "anthropic", "openai:gpt-99"),
        ("own-7b", "vllm", "vllm:own-7b"),
        ("claude-sonnet-4-5-20250929", "openai", "anthropic:claude-sonnet-4-5-20250929"),
    ],
)
def test_a_short_name_becomes_a_full_one(name, provider, start):
    assert find_model_label(name, provider).startswith(start)


@pytest.mark.parametrize(("effort", "sent"), [("low", "low"), (None, "high")])
async def test_the_effort_of_one_turn(root, monkeypatch, effort, sent):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    async with Loopback([sse(said("one")), sse(said("two"))]) as server:
        choice = ModelChoice(model="openai:any", base_url=server.base_url, effort="high")
        profile = Profile(processor=choice, sandbox="full")
        async with build_exchange(profile, Recorder()) as exchange:
            await run_turn(exchange, TurnRequest("one", effort=effort), choice)
            await run_turn(exchange, TurnRequest("two"), choice)
        assert [asked.json["reasoning_effort"] for asked in server.requests] == [sent, "high"]


async def test_an_effort_that_the_model_does_not_know_is_reported(root, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    recorder = Recorder()
    async with Loopback([sse(said("one"))]) as server:
        choice = ModelChoice(model="openai:gpt-6.2-sol", base_url=server.base_url, wire="chat")
        async with build_exchange(Profile(processor=choice, sandbox="full"), recorder) as exchange:
            await run_turn(exchange, TurnRequest("one", effort="none"), choice)
        assert "reasoning_effort" not in server.requests[0].json
    (note,) = [event.text for event in recorder.events if isinstance(event, Logged) and "effort" in event.text]
    assert "the effort 'none' can't be used: gpt-6.2-sol does not know the effort 'none'; it knows low," in note


def test_a_name_that_nobody_knows_is_no_model():
    with pytest.raises(GooseLikeError, match="write it as PROVIDER:MODEL"):
        find_model_label("nobody", "openai")
