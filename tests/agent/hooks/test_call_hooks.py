"""Hooks around tool calls and permissions, through a whole exchange with a scripted model."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from goose_like.config.profile import PermissionLists
from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer, Asked, Question
from goose_like.toolkit import (
    AfterCall,
    BeforeCall,
    CallVerdict,
    Notification,
    PermissionAsked,
    PermissionDenied,
    PermissionVerdict,
    ResultChange,
)
from tests.fakes import call, calls

from .harness import ALWAYS_HERE, NO, NOBODY, ONCE, First, Place, Second, Work, crash, list_files, open_place, say

# --- before a call


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
async def test_the_strictest_verdict_wins_and_nothing_follows_a_denial(give: Any, order: Sequence[str]) -> None:
    asked: list[str] = []

    def answer(name: str, verdict: CallVerdict | None) -> Callable[[BeforeCall], CallVerdict | None]:
        return lambda call: (asked.append(name), verdict)[1]

    give(First, before_call=answer("first", CallVerdict("ask", "it is late")))
    give(Second, before_call=answer("second", CallVerdict("deny", "never")))
    async with open_place(*order, answer=ONCE) as place:
        (output,) = await place.run(say("hi"))
        assert output.startswith("not allowed: call say: a hook forbids it: never")
        assert asked == list(order[: order.index("second") + 1])
        assert place.recorder.questions == []
        assert Work.ran == []


@pytest.mark.parametrize(("answer", "runs"), [(ONCE, True), (NO, False), (NOBODY, False)])
async def test_a_doubt_lets_the_person_decide_about_each_call(give: Any, answer: Answer, runs: bool) -> None:
    give(First, before_call=lambda call: CallVerdict("ask", "it is late"))
    for lists in ({}, {"allow": ("tool:say",)}):
        Work.ran.clear()
        async with open_place("first", answer=answer, permissions=PermissionLists(**lists)) as place:
            outputs = await place.run(say("a", "1"), say("b", "2"))
            assert Work.ran == (["a", "b"] if runs else [])
            assert all(("not allowed" in output) is not runs for output in outputs)
            questions = place.recorder.questions
            assert [question.subject for question in questions] == ['say {"text":"a"}', 'say {"text":"b"}']
            assert {question.detail for question in questions} == {"asked about because it is late"}
            assert {question.prefix for question in questions} == {""}


async def test_an_answer_for_the_session_does_not_settle_a_doubt(give: Any) -> None:
    give(First, before_call=lambda call: CallVerdict("ask") if call.arguments["text"] == "b" else None)
    lists = PermissionLists(ask=("tool:say",))
    async with open_place("first", answer=ALWAYS_HERE, permissions=lists) as place:
        await place.run(say("a", "1"), say("a", "2"), say("b", "3"), say("b", "4"))
        assert [question.subject[-4:-2] for question in place.recorder.questions] == ['"a', '"b', '"b']


@pytest.mark.parametrize("approval", ["auto", "yolo", "plan"])
async def test_no_verdict_allows_what_a_rule_denies(give: Any, approval: str) -> None:
    seen: list[str] = []
    give(First, before_call=lambda call: (seen.append(call.tool), CallVerdict(arguments={"path": "b.pem"}))[1])
    lists = PermissionLists(deny=("path:*.pem",))
    async with open_place("first", answer=ONCE, approval=approval, permissions=lists) as place:
        if approval != "plan":  # there the tools of packages that may write are missing
            (output,) = await place.run(call("write", '{"path": "a.txt"}'))
            assert output.startswith("not allowed")
            assert "b.pem" in output
        assert list_files() == []


async def test_a_rule_judges_the_replaced_arguments(give: Any) -> None:
    give(First, before_call=lambda call: CallVerdict(arguments={"text": "b"}))
    async with open_place("first", answer=ONCE, permissions=PermissionLists(ask=("tool:say",))) as place:
        await place.run(say("a"))
        assert [question.subject for question in place.recorder.questions] == ['say {"text":"b"}']
        assert Work.ran == ["b"]


async def test_a_hook_sees_what_the_one_before_it_replaced_and_cannot_change_it_in_place(give: Any) -> None:
    seen: list[Any] = []

    def spoil(call: BeforeCall) -> CallVerdict:
        seen.append(dict(call.arguments))
        call.arguments["text"] = "spoiled"  # type: ignore[index]
        return CallVerdict(arguments={"text": "two", "times": 2}, context="doubled")

    give(First, before_call=spoil)
    give(Second, before_call=lambda call: seen.append(dict(call.arguments)))
    async with open_place("first", "second") as place:
        (output,) = await place.run(say("one"))
        assert seen == [{"text": "one"}, {"text": "two", "times": 2}]
        assert output.splitlines()[0] == "twotwo"
        assert output.splitlines()[-1] == "[first] doubled"


@pytest.mark.parametrize(
    "arguments", [{}, {"text": 3}, {"text": "a", "more": 1}, {"text": object()}, {"text": "a", "times": "many"}]
)
async def test_wrong_arguments_of_a_hook_run_nothing(give: Any, arguments: dict[str, Any]) -> None:
    give(First, before_call=lambda call: CallVerdict(arguments=arguments))
    async with open_place("first") as place:
        (output,) = await place.run(say("one"))
        assert output.startswith("say did not run: the toolkit 'first' wanted other arguments, which can't be used: ")
        assert Work.ran == []


async def test_the_client_runs_only_what_the_model_wrote(give: Any) -> None:
    give(First, before_call=lambda call: CallVerdict(arguments={"text": "b"}))
    async with open_place("first") as place:
        (output,) = await place.run(call("show", '{"text": "a"}'))
        assert "the client runs this tool with the arguments of the model" in output
    give(First, before_call=lambda call: CallVerdict("deny", "hidden"))
    async with open_place("first") as place:
        (output,) = await place.run(call("show", '{"text": "a"}'))
        assert "hidden" in output


@pytest.mark.parametrize(
    "hook", [crash, lambda call: "deny", lambda call: {"decision": "deny"}, lambda call: CallVerdict("denied")]
)
@pytest.mark.parametrize(("answer", "runs"), [(ONCE, True), (NO, False), (NOBODY, False)])
async def test_a_check_that_fails_asks_each_time_and_is_logged_once(
    give: Any, hook: Callable[..., Any], answer: Answer, runs: bool
) -> None:
    give(First, before_call=hook)
    async with open_place("first", answer=answer, approval="yolo") as place:
        await place.run(say("a", "1"), say("b", "2"))
        assert Work.ran == (["a", "b"] if runs else [])
        assert len(place.recorder.questions) == 2
        (report,) = [text for text in place.logged if "failed in 'before_call'" in text]
        assert "so the person is asked about each call" in report
        assert report in place.recorder.questions[0].detail


async def test_a_call_that_cannot_run_reaches_no_hook(give: Any) -> None:
    told: list[object] = []
    give(First, before_call=told.append, after_call=told.append)
    async with open_place("first", permissions=PermissionLists(deny=("tool:look",))) as place:
        outputs = await place.run(call("none", "{}", "1"), say("x", "2", wrong=1), call("look", '{"text": "x"}', "3"))
        assert len(outputs) == 3
        assert told == []


# --- after a call


async def test_calls_that_fail_are_told_apart_and_each_output_can_be_replaced(give: Any) -> None:
    seen: list[AfterCall] = []

    def mark(call: AfterCall) -> ResultChange:
        seen.append(call)
        return ResultChange(f"<{call.output}>", "checked")

    give(First, after_call=mark)
    give(Second, after_call=lambda call: ResultChange(context=call.output))
    async with open_place("first", "second") as place:
        outputs = await place.run(say("fine", "1"), say("fail", "2"))
        assert outputs == [
            "<fine>\n[first] checked\n[second] <fine>",
            "<it failed>\n[first] checked\n[second] <it failed>",
        ]
        assert [(call.output, call.is_error, call.arguments) for call in seen] == [
            ("fine", False, {"text": "fine"}),
            ("it failed", True, {"text": "fail"}),
        ]
        results = [result for message in place.exchange.history.messages for result in message.tool_results]
        assert [result.is_error for result in results] == [False, True]


async def test_a_replaced_output_stands_for_all_that_the_tool_gave(give: Any) -> None:
    give(First, after_call=lambda call: ResultChange("hidden"))
    async with open_place("first") as place:
        await place.run(call("draw", "{}"))
        place.play(calls(call("finish", '{"text": "end"}', "c2")))
        await place.exchange.reply("finish")
        results = [result for message in place.exchange.history.messages for result in message.tool_results]
        assert [result.output for result in results] == ["hidden", "hidden"]
        assert [result.images for result in results] == [(), ()]
        assert results[1].replacement is None
        assert results[1].is_final


async def test_a_failing_hook_after_a_call_leaves_the_output(give: Any) -> None:
    give(First, after_call=crash)
    async with open_place("first") as place:
        assert await place.run(say("a", "1"), say("b", "2")) == ["a", "b"]
        (report,) = [text for text in place.logged if "failed in 'after_call'" in text]
        assert "not called again" in report


async def test_parallel_calls_keep_their_own_notes(give: Any) -> None:
    async def judge(call: BeforeCall) -> CallVerdict:
        await asyncio.sleep(0)
        text = call.arguments["text"]
        return CallVerdict(arguments={"text": text.upper()}, context=f"about {text}")

    give(First, before_call=judge, after_call=lambda call: ResultChange(context=call.call_id))
    async with open_place("first") as place:
        outputs = await place.run(*(call("look", json.dumps({"text": text}), text) for text in "abc"))
        assert [output.splitlines()[0] for output in outputs] == ["A", "B", "C"]
        assert [output.splitlines()[2:] for output in outputs] == [
            [f"[first] about {text}", f"[first] {text}"] for text in "abc"
        ]


# --- permissions and notifications


@pytest.mark.parametrize("denies", [True, False])
async def test_a_hook_may_deny_a_permission_before_the_person_is_asked(give: Any, denies: bool) -> None:
    seen: list[PermissionAsked] = []
    denied: list[PermissionDenied] = []

    def judge(permission: PermissionAsked) -> PermissionVerdict | None:
        seen.append(permission)
        return PermissionVerdict("deny", "not here") if denies else None

    give(First, on_permission_asked=judge, on_permission_denied=denied.append)
    async with open_place("first", answer=ONCE, approval="ask") as place:
        (output,) = await place.run(call("write", '{"path": "a"}', "w"))
        (permission,) = seen
        assert permission.question.kind == "change"
        assert permission.call is not None
        assert permission.call.id == "w"
        assert list_files() == ([] if denies else ["a"])
        assert len(place.recorder.questions) == len(place.events(Asked)) == (not denies)
        assert [(denial.tool, denial.arguments, denial.text) for denial in denied] == (
            [("write", {"path": "a"}, output)] if denies else []
        )
        assert ("the toolkit 'first' denies it: not here" in output) is denies


async def test_each_denial_is_told(give: Any) -> None:
    denied: list[str] = []
    give(First, on_permission_denied=lambda denial: denied.append(denial.call_id))
    give(Second, before_call=lambda call: CallVerdict("deny") if call.arguments.get("text") == "hook" else None)
    lists = PermissionLists(deny=("path:rule",), ask=("tool:look",))
    async with open_place("first", "second", answer=NO, permissions=lists) as place:
        await place.run(
            say("hook", "by hook"),
            call("write", '{"path": "rule"}', "by rule"),
            call("look", '{"text": "a"}', "by person"),
            say("fine", "not"),
            say("fail", "not either"),
        )
        assert denied == ["by hook", "by rule", "by person"]


async def test_a_hook_about_permissions_that_fails_leaves_the_question_to_the_person(give: Any) -> None:
    give(First, on_permission_asked=crash)
    for answer, is_written in ((NOBODY, False), (NO, False), (ONCE, True)):
        async with open_place("first", answer=answer, approval="ask") as place:
            await place.run(call("write", '{"path": "a"}'), call("write", '{"path": "a"}', "c2"))
            assert list_files() == (["a"] if is_written else [])
            assert len([text for text in place.logged if "failed in 'on_permission_asked'" in text]) == 1


async def test_a_hook_about_permissions_may_use_the_workspace_but_asks_nobody(give: Any) -> None:
    outcomes: list[str] = []

    async def check(permission: PermissionAsked) -> None:
        workspace = places[0].exchange.workspace
        process = await workspace.spawn(["true"], is_own=True)
        outcomes.append(str(await process.wait()))
        try:
            await workspace.write_bytes("b", b"x")
        except Exception as error:
            outcomes.append(str(error))

    give(First, on_permission_asked=check)
    places: list[Place] = []
    async with open_place("first", answer=ONCE, approval="ask") as place:
        places.append(place)
        async with asyncio.timeout(60):
            await place.run(call("write", '{"path": "a"}'))
    assert outcomes[0] == "0"
    assert "nobody is there to allow it" in outcomes[1]
    assert list_files() == ["a"]


@pytest.mark.parametrize("denies", [True, False])
async def test_work_that_outlives_its_call_meets_the_hooks_too(give: Any, denies: bool) -> None:
    seen: list[PermissionAsked] = []

    def judge(permission: PermissionAsked) -> PermissionVerdict | None:
        seen.append(permission)
        return PermissionVerdict("deny") if denies else None

    give(First, on_permission_asked=judge)
    async with open_place("first", answer=ONCE, approval="ask") as place:
        assert await place.run(call("write_later", '{"path": "a"}')) == ["soon"]
        await asyncio.wait(Work.later)
        assert [(permission.question.kind, permission.call) for permission in seen] == [("change", None)]
        assert list_files() == ([] if denies else ["a"])
        errors = [task.exception() for task in Work.later]
        assert [isinstance(error, DeniedError) for error in errors] == [denies]


async def test_between_turns_no_host_is_asked_for(give: Any) -> None:
    seen: list[PermissionAsked] = []
    give(First, on_permission_asked=seen.append)
    async with open_place("first", answer=ONCE) as place:
        answer = await place.exchange.journal.ask(Question(kind="domain", subject="a.example", text="Reach it?"))
        assert not answer.is_allowed
        assert seen == []


async def test_the_person_is_told_in_other_ways_too(give: Any) -> None:
    told: list[Notification] = []
    give(First, on_notification=told.append)
    async with open_place("first", approval="ask", answer=ONCE) as place:
        await place.run(call("write", '{"path": "a"}'))
        place.play("Yes.")
        await place.exchange.journal.ask(Question(kind="text", subject="colour", text="Which colour?"))
        await place.exchange.reply("go")
    kinds = [notification.kind for notification in told]
    assert kinds == ["question", "turn_finished", "question", "turn_finished"]
    assert told[2].text == "Which colour?"
    assert told[3].text == "stop"


async def test_the_end_of_a_session_waits_for_notifications(give: Any) -> None:
    told: list[str] = []

    async def tell(notification: Notification) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        told.append(notification.kind)

    give(First, on_notification=tell)
    async with open_place("first") as place:
        await place.run(say("a"))
    assert told == ["turn_finished"]


# --- a call that calls another tool


async def test_hooks_judge_the_inner_call_by_its_own_name(give: Any) -> None:
    told: list[tuple[str, dict[str, Any]]] = []

    def judge(call: BeforeCall) -> CallVerdict:
        told.append((call.tool, dict(call.arguments)))
        return CallVerdict("ask", "it is late", {"text": "B"}, context="a note")

    def learn(call: AfterCall) -> None:
        told.append((call.tool, dict(call.arguments)))

    give(First, before_call=judge, after_call=learn)
    async with open_place("first", answer=ONCE) as place:
        (output,) = await place.run(call("relay", '{"text": "a"}'))
    assert told == [("say", {"text": "a"}), ("say", {"text": "B"})]
    assert [question.subject for question in place.recorder.questions] == ['say {"text":"B"}']
    assert output.startswith("B\n[first] the call ran with other arguments")
    assert output.endswith("[first] a note")
    assert Work.ran == ["B"]


async def test_rules_hold_for_the_inner_call(give: Any) -> None:
    told: list[PermissionDenied] = []
    give(First, on_permission_denied=told.append)
    async with open_place("first", permissions=PermissionLists(deny=("tool:say",))) as place:
        (output,) = await place.run(call("relay", '{"text": "a"}'))
    assert output.startswith('not allowed: call say with {"text":"a"}: a rule forbids it')
    assert [(denial.tool, denial.arguments) for denial in told] == [("say", {"text": "a"})]
    assert Work.ran == []


@pytest.mark.parametrize("rule", ["tool:say", "tool:relay"])
async def test_a_rule_asks_about_either_name(rule: str) -> None:
    async with open_place(answer=ONCE, permissions=PermissionLists(ask=(rule,))) as place:
        assert await place.run(call("relay", '{"text": "a"}')) == ["a"]
    name = rule.removeprefix("tool:")
    assert [question.subject for question in place.recorder.questions] == [f'{name} {{"text":"a"}}']
