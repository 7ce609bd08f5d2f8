"""Tests of reminders: the stale plan, open tasks, repetition, context updates and hooks of toolkits."""

from itertools import count

import pytest

from goose_like.agent.compaction.moderators import Moderator
from goose_like.agent.toolkit import FollowUp
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import (
    Compacted,
    PlanUpdated,
    Reminded,
    Task,
)
from goose_like.core.notifier import Recorder
from goose_like.core.tool import tool
from goose_like.workspace.workspace import Workspace
from tests.agent.loop import assert_append_only, create_echo_steps, echo
from tests.fakes import FakeToolkit, call, calls

OPEN_TASKS = Task(description="plant", status="in-progress"), Task(description="water")


class SummarizeEachSecondStep(Moderator):
    async def rewrite(self, history, models):
        is_due = history.turn_step_count % 2 and history.messages[-1].role == "tool"
        return [Compacted(summary="Notes.", kept_count=2)] if is_due else []


async def test_a_stale_plan_is_repeated(create_harness):
    harness = create_harness([*create_echo_steps(62), "Done."], echo)
    harness.journal.emit(PlanUpdated(tasks=(Task(description="dig", status="in-progress"), Task(description="plant"))))
    await harness.exchange.reply("Hi.")
    tasks = "- [in-progress] dig\n- [planned] plant"
    reminder = f"Your plan, 0 of 2 tasks complete (update it if it has changed):\n{tasks}"
    assert harness.events_of(Reminded) == [Reminded(text=reminder, reason="plan")] * 2
    last_words = [request.messages[-1].text for request in harness.provider.requests]
    assert [index for index, text in enumerate(last_words) if text == reminder] == [30, 60]
    assert_append_only(harness.provider.requests)


async def test_a_summary_with_the_plan_needs_no_repetition(create_harness):
    harness = create_harness([*create_echo_steps(34), "Done."], echo, moderator=SummarizeEachSecondStep({}))
    harness.journal.emit(PlanUpdated(tasks=OPEN_TASKS))
    await harness.exchange.reply("Hi.")
    assert harness.events_of(Reminded) == []


async def test_open_tasks_cost_no_request_after_the_answer(create_harness):
    """The model often answers without a last look at the plan, and a later message may be about something else."""
    harness = create_harness([*create_echo_steps(3), "All of it is done.", "Noon."], echo)
    harness.journal.emit(PlanUpdated(tasks=(*OPEN_TASKS, Task(description="harvest"))))
    await harness.exchange.reply("Do it.")
    await harness.exchange.reply("When is lunch?")
    assert harness.events_of(Reminded) == []
    assert len(harness.provider.requests) == 5


@tool(accompanies_answer=True)
def show(what: str = "") -> str:
    """Shows."""
    if not what:
        raise ValueError("nothing")
    return "shown"


SHOW = call("show", '{"what": "all"}', "s")


async def test_an_answer_beside_the_last_look_at_the_plan_ends_the_turn(create_harness):
    harness = create_harness([*create_echo_steps(2), calls(SHOW, text="All of it is done.")], echo, show)
    harness.journal.emit(PlanUpdated(tasks=(Task(description="dig", status="complete"),)))
    end = await harness.exchange.reply("Do it.")
    assert (end.reason, end.answer) == ("stop", "All of it is done.")
    assert len(harness.provider.requests) == 3
    harness.provider.script += ["Noon."]
    assert (await harness.exchange.reply("When is lunch?")).answer == ""


@pytest.mark.parametrize(
    ("step", "is_open"),
    [
        (calls(SHOW), False),
        (calls(SHOW, text=" \n"), False),
        (calls(SHOW, text="Next: water."), True),
        (calls(call("show", "{}", "s"), text="Done."), False),
        (calls(SHOW, call("echo", '{"text": "x"}', "e"), text="Done."), False),
        (calls(call("none", "{}", "n"), text="Done."), False),
    ],
)
async def test_other_texts_beside_calls_do_not_end_the_turn(create_harness, step, is_open):
    harness = create_harness([step, "Done."], echo, show)
    harness.journal.emit(PlanUpdated(tasks=(Task(description="dig", status="planned" if is_open else "complete"),)))
    assert (await harness.exchange.reply("Do it.")).answer == ""
    assert len(harness.provider.requests) == 2


async def test_a_toolkit_may_object_to_an_answer_beside_calls(create_harness):
    harness = create_harness([calls(SHOW, text="Done."), "And a.py parses."], show)
    harness.add_toolkits(FakeToolkit(before_finish=lambda: "a.py does not parse"))
    assert (await harness.exchange.reply("Do it.")).answer == "Done."
    assert harness.messages[-1].text == "And a.py parses."


async def test_a_finished_plan_is_not_repeated(create_harness):
    harness = create_harness([*create_echo_steps(32), "Done."], echo)
    harness.journal.emit(PlanUpdated(tasks=(Task(description="dig", status="complete"),)))
    await harness.exchange.reply("Hi.")
    assert harness.events_of(Reminded) == []


async def test_nothing_reminds_of_a_plan_in_plan_mode(create_harness, tmp_path):
    planning = Workspace(tmp_path, mode="full", approval="plan", notifier=Recorder())
    harness = create_harness([*create_echo_steps(32), "The plan."], echo, workspace=planning)
    harness.journal.emit(PlanUpdated(tasks=OPEN_TASKS))
    await harness.exchange.reply("Hi.")
    assert harness.events_of(Reminded) == []


async def test_context_updates_are_added_once(create_harness):
    true = {"a": {"notes: of two": "one\ntwo: three", "same": "1"}, "b": {"same": "2", "none": ""}}
    harness = create_harness([*create_echo_steps(3), "Done.", "Done."], echo)

    def source(name):
        async def news():
            return true[name]

        return news

    harness.add_toolkits(*(FakeToolkit(context_updates=source(name)) for name in true))
    await harness.exchange.reply("Hi.")
    (report,) = harness.events_of(Reminded)
    assert report.text == "notes: of two: one\ntwo: three\nsame: 1\nsame: 2"
    assert [message.text for message in harness.messages[:2]] == [report.text, "Hi."]
    true["b"]["same"] = "3"
    await harness.exchange.reply("Hi.")
    assert [event.text for event in harness.events_of(Reminded)][1:] == ["same: 3"]
    assert_append_only(harness.provider.requests)


async def test_repetition_is_reminded(create_harness):
    same = calls(call("echo", '{"text": "one"}'))
    harness = create_harness([*[same] * 7, "Done."], echo)
    assert (await harness.exchange.reply("Hi.")).reason == "stop"
    said = [event.text for event in harness.events_of(Reminded)]
    assert [text.partition(" made")[0] for text in said] == ["Your last 3 steps", "Your last 6 steps"]
    assert "Do something else, or end." in said[0]
    assert harness.outputs == ["one"] * 7
    assert_append_only(harness.provider.requests)
    harness.provider.script += [same, "Done."]
    await harness.exchange.reply("Again.")
    assert len(harness.events_of(Reminded)) == 2


async def test_a_changed_step_is_no_repetition(create_harness):
    counter = count()

    def look() -> str:
        """Looks."""
        return str(next(counter) // 2)

    other = [calls(call("echo", '{"text": "one"}')), calls(call("echo", '{"text": "two"}'))]
    harness = create_harness([*[calls(call("look"))] * 8, *other * 4, "Done."], echo, look)
    assert (await harness.exchange.reply("Hi.")).reason == "stop"
    assert harness.events_of(Reminded) == []


async def test_a_string_from_before_finish_counts_once_a_turn(create_harness):
    harness = create_harness(
        ["Done.", "Really.", "Done again.", "Yes."],
        toolkits=[FakeToolkit(), FakeToolkit(before_finish=lambda: "run it")],
    )
    for _ in range(2):
        assert (await harness.exchange.reply("Hi.")).reason == "stop"
    assert harness.events_of(Reminded) == [Reminded(text="run it")] * 2
    said = [message.text for message in harness.messages]
    assert said == ["Hi.", "Done.", "run it", "Really.", "Hi.", "Done again.", "run it", "Yes."]
    assert_append_only(harness.provider.requests)


async def test_a_repeated_follow_up_counts_each_time(create_harness):
    demands = iter(["call one", "call two", None])
    harness = create_harness(["a", "b", "c"])
    harness.add_toolkits(
        FakeToolkit(before_finish=lambda: (text := next(demands)) and FollowUp(text, is_repeated=True))
    )
    end = await harness.exchange.reply("go")
    assert end.reason == "stop"
    assert [message.text for message in harness.messages] == ["go", "a", "call one", "b", "call two", "c"]


async def test_on_turn_start_runs_first_and_its_error_ends_the_turn(create_harness):
    async def begin() -> None:
        harness.journal.log("planned")
        if len(harness.messages) > 2:
            raise GooseLikeError("no plan")

    harness = create_harness(["a"])
    harness.add_toolkits(FakeToolkit(on_turn_start=begin))
    assert (await harness.exchange.reply("go")).reason == "stop"
    kinds = [event.type for event in harness.recorder.events]
    assert kinds.index("turn_started") < kinds.index("logged") < kinds.index("message_completed")
    end = await harness.exchange.reply("again")
    assert (end.reason, end.detail) == ("error", "no plan")


async def test_facts_are_repeated_in_the_first_request_after_a_summary(create_harness):
    harness = create_harness([*create_echo_steps(6), "Done."], echo, moderator=SummarizeEachSecondStep({}))
    harness.add_toolkits(FakeToolkit(context_updates=lambda: {"git branch": "main"}))
    await harness.exchange.reply("Hi.")
    assert len(harness.events_of(Compacted)) == 3
    for request in harness.provider.requests:
        assert "git branch: main" in [message.text for message in request.messages]
