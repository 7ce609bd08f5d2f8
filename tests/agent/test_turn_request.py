"""Options that hold for one turn: reading only, permissions of a command, another model."""

from pathlib import Path

import pytest

from goose_like.agent.build import build_exchange
from goose_like.agent.turn_request import TurnRequest, find_model_label, run_turn
from goose_like.config.profile import ModelChoice, Profile
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Asked, Logged, MessageCompleted, ToolFinished
from goose_like.core.notifier import Recorder
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
    - {tool: write_file, arguments: {path: a.txt, content: one}}
    - {tool: shell, arguments: {command: echo two > b.txt}}
- text: done
"""


@needs_sandbox
async def test_a_read_only_turn_changes_nothing_and_the_next_one_does(tmp_path, root):
    recorder = Recorder()
    async with build_exchange(Profile(processor=write_script(tmp_path, WRITES * 2)), recorder) as exchange:
        assert (await run_turn(exchange, TurnRequest("review", is_read_only=True))).reason == "stop"
        first = [event.result for event in recorder.events if isinstance(event, ToolFinished)]
        assert [result.is_error for result in first] == [True, False]
        assert "Read-only file system" in first[1].output
        assert list(root.iterdir()) == []
        await run_turn(exchange, TurnRequest("work"))
        assert {file.name: file.read_text() for file in root.iterdir()} == {"a.txt": "one", "b.txt": "two\n"}


STARTS = """
- calls: [{tool: start_process, arguments: {command: bash}}]
- text: started
- text: it still runs
- calls:
    - {tool: write_to_process, arguments: {id: p1, text: echo one > a.txt}}
    - {tool: start_process, arguments: {command: bash}}
    - {tool: write_to_process, arguments: {id: p2, text: echo two > b.txt; cat ../project/c.txt}}
- text: done
"""


@needs_sandbox
async def test_a_read_only_turn_gives_no_input_to_a_process_that_may_write(tmp_path, root):
    recorder = Recorder()
    (root / "c.txt").write_text("three\n")
    async with build_exchange(Profile(processor=write_script(tmp_path, STARTS)), recorder) as exchange:
        await run_turn(exchange, TurnRequest("work"))
        await run_turn(exchange, TurnRequest("review", is_read_only=True))
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
        ("mini", "openai", "openai:gpt-"),
        ("claude-sonnet-4-5-20250929", "openai", "anthropic:claude-sonnet-4-5-20250929"),
    ],
)
def test_a_short_name_becomes_a_full_one(name, provider, start):
    assert find_model_label(name, provider).startswith(start)


def test_a_name_that_nobody_knows_is_no_model():
    with pytest.raises(GooseLikeError, match="write it as PROVIDER:MODEL"):
        find_model_label("nobody", "openai")
