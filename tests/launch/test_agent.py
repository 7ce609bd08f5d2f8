"""The Python API: results, events, questions, and every example of its page."""

import asyncio
import json
import os
import re
import signal
import traceback
from pathlib import Path

import pytest
from pydantic import BaseModel, field_validator

from goose_like.api import Agent, Answer, GooseLikeError, Limits, RunResult, UsageError, run
from goose_like.config.yaml_reader import format_document
from goose_like.core.events import TurnFinished
from tests.e2e.pages import find_blocks
from tests.workspace.workspace_harness import needs_sandbox

PAGE = "docs/python-api.md"
WRITE = {"tool": "write_file", "arguments": {"path": "README.md", "content": "well\n"}}
OTHER_WRITE = {"tool": "write_file", "arguments": {"path": "a.py", "content": "x = 1\n"}}


@pytest.fixture
def script(tmp_path, home, monkeypatch):
    """Let the default profile play a script, and work in an empty folder."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def write(*steps):
        file = tmp_path / "script.yaml"
        file.write_text(format_document(list(steps)))
        (home / "config").mkdir(parents=True, exist_ok=True)
        profile = {"extends": "default", "processor": f"scripted:{file}", "accelerator": f"scripted:{file}"}
        (home / "config/profiles.yaml").write_text(json.dumps({"default": profile}))

    return write


class Legs(BaseModel):
    dog: int

    @field_validator("dog")
    @classmethod
    def check(cls, value: int) -> int:
        if value % 2:
            raise ValueError("an even number, please")
        return value


def test_a_result_has_what_run_prints(script):
    script({"text": "four", "usage": {"input": 7, "output": 3}})
    done = run("legs?", is_saved=False)
    assert (done.result, done.structured, done.steps, done.denied) == ("four", None, 1, ())
    assert (done.usage.total_tokens, done.reason, done.exit_code) == (10, "stop", 0)


def test_a_validator_of_the_class_goes_back_to_the_model(script):
    script('{"dog": 3}', {"text": '{"dog": 4}', "expect": "an even number, please"})
    assert run("legs?", schema=Legs, is_saved=False).structured == Legs(dog=4)


def test_an_answer_that_stays_wrong_is_a_result(script):
    script(*["four"] * 4)
    done = run("legs?", schema=Legs, is_saved=False)
    assert (done.result, done.structured, done.reason, done.exit_code) == ("", None, "error", 1)
    assert "It is no JSON" in done.detail


def test_wrong_options_are_usage_errors(script):
    script()
    with pytest.raises(UsageError, match="colour"):
        Agent(colour="red")
    with pytest.raises(UsageError, match="schema of the answer is invalid"):
        run("x", schema={"type": "strin"}, is_saved=False)
    with pytest.raises(UsageError, match="is not open"):
        Agent().fork()


async def test_run_works_where_an_event_loop_runs(script):
    script("one")
    assert run("x", is_saved=False).result == "one"


def test_an_interrupt_where_an_event_loop_runs_ends_the_turn(script):
    """As the stop button of a notebook does."""
    script({"calls": [{"tool": "wait", "arguments": {}}]}, "never")
    ends = []

    async def wait() -> str:
        """Wait for the person."""
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        return "done"

    async def run_cell():
        run("go", tools=[wait], is_saved=False)

    loop = asyncio.new_event_loop()
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(run_cell())
    loop.close()
    assert ends == ["cancelled"]


def test_an_error_is_not_shown_as_one_of_the_event_loop(script):
    with pytest.raises(GooseLikeError, match="unknown provider") as caught:
        run("go", model="nope:x")
    assert "event loop" not in "".join(traceback.format_exception(caught.value))


async def test_a_stream_that_is_left_stops_the_turn(script):
    script({"text": "a b c d", "delta_delay_s": 30}, "again")
    async with Agent() as agent:
        stream = agent.stream("x")
        async for event in stream:
            if event.type == "text_delta":
                break
        await stream.aclose()
        history = agent.conversation.exchange.history
        assert history.last_turn == TurnFinished(reason="cancelled", exit_code=130)
        assert (await agent.run("y")).result == "again"


async def test_one_turn_at_a_time(script):
    script({"text": "slow", "delay_s": 30})
    async with Agent(is_saved=False) as agent:
        running = asyncio.create_task(agent.run("x"))
        await asyncio.sleep(0)  # the turn starts
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="a turn runs"):
            await agent.run("y")
        running.cancel()
        await asyncio.wait([running])


async def test_undo_takes_back_files_and_conversation(script):
    script({"calls": [OTHER_WRITE]}, "done")
    async with Agent(sandbox="full") as agent:
        await agent.run("write")
        assert os.listdir() == ["a.py"]
        assert await agent.undo() == []
        assert os.listdir() == []
        assert agent.conversation.exchange.history.turns == []
        with pytest.raises(UsageError, match="nothing to undo"):
            await agent.undo()


async def test_async_callbacks_and_tools(script):
    asked = []

    async def ask(question):
        asked.append(question.kind)
        return Answer(choice="deny", by="person")

    async def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    script({"calls": [{"tool": "double", "arguments": {"number": 4}}, WRITE]}, {"text": "8", "expect": "8"})
    async with Agent(approval="ask", sandbox="full", tools=[double], ask=ask, is_saved=False) as agent:
        assert (await agent.run("x")).result == "8"
    assert asked == ["change"]
    assert os.listdir() == []


def test_without_a_callback_nobody_is_asked_and_the_model_knows(script):
    outside = {"tool": "write_file", "arguments": {"path": "/opt/goose_like_test.txt", "content": "x"}}
    script({"calls": [outside]}, {"text": "no", "expect": "allowed by: the rule"})
    done = run("write", is_saved=False)
    assert (done.result, done.reason, done.exit_code) == ("no", "stop", 6), done.detail
    assert [question.kind for question in done.denied] == ["outside"]


async def test_limits_that_are_not_set_are_those_of_the_profile(script):
    script(*[{"calls": [{"tool": "nothing"}]}] * 3)
    async with Agent(limits=Limits(steps=2), is_saved=False) as agent:
        done = await agent.run("x")
        assert agent.conversation.exchange.budget.limits.output_bytes == 16_000
    assert (done.reason, done.exit_code, done.steps) == ("step_limit", 3, 2)


# --- the page

PRICE = {"calls": [{"tool": "price", "arguments": {"fruit": "pear"}}]}
PLAYED = {
    "slowest": (["test_kill"], "test_kill"),
    "add a test": (["read", {"text": "added", "calls": [OTHER_WRITE]}, "done"], "added"),
    "CHANGELOG": (['{"version": "1.0", "changes": ["faster"]}'], "1.0\n- faster"),
    "have no test": (['["parse"]'], "parse"),
    "an apple": ([PRICE, {"text": "8 euros", "expect": "3"}], "8 euros"),
    "spelling": ([{"calls": [WRITE, OTHER_WRITE]}, {"text": "ok", "expect": "only change Markdown"}], ""),
    "tests pass": ([{"calls": [{"tool": f"missing_{number}"}]} for number in range(31)], "the limit of 30 steps"),
    "migration": (["a plan", "step one"], "step one"),
    "parser": (["read", "bold", "bold"], "bold\n---\nbold"),
    "Rename": ([{"calls": [OTHER_WRITE]}, {"error": {"status": 400}}], ""),
}
"""The steps of the model for each example, by words of the example, and what it prints."""


@needs_sandbox
@pytest.mark.parametrize("words", PLAYED)
def test_each_example_of_the_page(words, script, capsys):
    blocks = find_blocks(PAGE, "python")
    assert len(blocks) == len(PLAYED) == 10
    (block,) = [each for each in blocks if words in each]
    steps, printed = PLAYED[words]
    script(*steps)
    exec(compile(block, PAGE, "exec"), {"__name__": "__main__"})
    assert printed in capsys.readouterr().out
    if words == "spelling":
        assert os.listdir() == ["README.md"]
    if words == "Rename":
        assert os.listdir() == []


def test_the_tables_of_the_page_are_complete():
    text = (Path(__file__).parents[2] / PAGE).read_text()
    _, fields = re.split(r"\| the result has .*\n", text)
    named = set(re.findall(r"`(\w+)`", fields.split("\n\n")[0]))
    assert named - {"None", "stop"} == set(RunResult.__dataclass_fields__)
