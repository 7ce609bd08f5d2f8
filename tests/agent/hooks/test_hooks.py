"""Hooks of toolkits, through a whole exchange with a scripted model."""

import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from goose_like.agent import toolkit_hooks
from goose_like.agent.hook_runner import HOOK_POINTS, list_hook_points
from goose_like.config.profile import ToolkitChoice
from goose_like.core.errors import PromptBlockedError, TimeLimitError
from goose_like.core.events import (
    Compacted,
    MessageCompleted,
    SubagentEvent,
    ToolFinished,
    TurnStarted,
)
from goose_like.core.message import Message
from goose_like.sdk.lint import lint_toolkit
from goose_like.sessions.session import Session
from goose_like.toolkit import (
    BeforeCall,
    CallVerdict,
    CompactionEnd,
    CompactionStart,
    FollowUp,
    PermissionVerdict,
    PromptSubmitted,
    PromptVerdict,
    ResultChange,
    SessionStart,
    SubagentStart,
    SubagentStop,
    Toolkit,
)
from tests.fakes import call, calls

from .harness import ONCE, First, Second, Work, list_files, open_place, say
from .policy import Policy


async def test_a_short_toolkit_sets_the_rules_of_a_team() -> None:
    async with open_place("policy") as place:
        outputs = await place.run(say("drop table a", "1"), say("push -f", "2"), say("staging", "3"), say("fine", "4"))
        assert "a hook forbids it: tables stay" in outputs[0]
        assert outputs[1] == 'push --careful\n[policy] the call ran with other arguments: {"text":"push --careful"}'
        assert outputs[2:] == ["staging\n[policy] staging is down today", "fine"]
        assert Work.ran == ["push --careful", "staging", "fine"]
        with pytest.raises(PromptBlockedError, match="the toolkit 'policy' blocks it: it names a customer"):
            await place.exchange.reply("write to ACME")
        for number in range(3):
            place.play(calls(say("x" * 3000, f"s{number}")), "Yes.")
        place.play("Notes.")
        for _ in range(3):
            await place.exchange.reply("go")
        await place.exchange.compact("the file names")
        assert "Above all keep this: the file names\nthe ticket number" in place.provider.requests[-1].messages[-1].text
        assert Policy.told == ["before: the file names", "after: [Note"]


# --- prompts and sessions


async def test_a_blocked_prompt_leaves_no_trace_and_the_next_one_has_its_context_once(give: Any) -> None:
    seen: list[PromptSubmitted] = []

    def judge(prompt: PromptSubmitted) -> PromptVerdict | None:
        seen.append(prompt)
        return PromptVerdict("block") if "secret" in prompt.text else PromptVerdict(context="the branch is frozen")

    give(First, on_prompt_submitted=judge, on_session_start=lambda start: f"resumed: {start.is_resumed}")
    give(Second, on_prompt_submitted=lambda prompt: seen.append(prompt))
    async with open_place("first", "second") as place:
        before = len(place.recorder.events)
        with pytest.raises(PromptBlockedError, match="it gives no reason") as caught:
            await place.exchange.reply("a secret")
        assert caught.value.exit_code == 6
        assert len(place.recorder.events) == before
        assert place.exchange.history.messages == []
        assert place.provider.requests == []
        assert len(seen) == 1, "a hook after a block is not called"
        place.play("One.", "Two.")
        await place.exchange.reply("one")
        await place.exchange.reply("two")
        texts = [message.text for message in place.exchange.history.messages]
        frozen = "the branch is frozen"
        assert texts == ["one", "resumed: False", frozen, "One.", "two", frozen, "Two."]


async def test_context_reaches_a_fresh_turn(give: Any) -> None:
    give(First, on_prompt_submitted=lambda prompt: PromptVerdict(context="frozen"))
    async with open_place("first") as place:
        place.play("One.")
        await place.exchange.reply("one", is_fresh=True)
        assert [message.text for message in place.provider.requests[0].messages] == ["one", "frozen"]


async def test_a_blocked_message_within_a_turn_returns_to_the_person(give: Any) -> None:
    def judge(prompt: PromptSubmitted) -> PromptVerdict | None:
        if prompt.is_interjected:
            return PromptVerdict("block", "no") if "secret" in prompt.text else PromptVerdict(context="noted")
        return None

    give(First, on_prompt_submitted=judge)
    async with open_place("first") as place:
        inbox = place.exchange.inbox
        place.play(calls(say("one")), calls(say("two")), "Done.")
        inbox.put("a secret")
        inbox.put("in French")
        await place.exchange.reply("go")
        assert inbox.take_refused() == ["a secret"]
        assert inbox.take() == []
        texts = [message.text for message in place.exchange.history.messages]
        assert "in French" in texts
        assert "noted" in texts
        assert "a secret" not in texts
        assert any("the toolkit 'first' blocks it: no" in text for text in place.logged)


async def test_a_session_starts_and_ends_once_in_each_process(give: Any) -> None:
    told: list[str] = []
    give(
        First,
        on_session_start=lambda start: told.append(f"resumed: {start.is_resumed}"),
        on_session_end=lambda: told.append("end"),
        close=lambda: asyncio.sleep(0, told.append("closed")),
    )
    session = Session.create("mine")
    for expected in ("resumed: False", "resumed: True"):
        async with open_place("first", session=session) as place:
            assert told == []
            place.play("One.", "Two.")
            await place.exchange.reply("one")
            await place.exchange.reply("two")
            assert told == [expected]
        assert told == [expected, "end", "closed"]
        told.clear()
    async with open_place("first", session=session):
        pass
    assert told == ["closed"], "without a message nothing starts"
    session.close()


async def test_a_turn_that_a_killed_process_left_starts_the_session_too(give: Any) -> None:
    give(First, on_session_start=lambda start: f"resumed: {start.is_resumed}")
    async with open_place("first") as place:
        place.exchange.journal.emit(TurnStarted(message=Message.user("go")))
        place.exchange.journal.emit(MessageCompleted(message=calls(say("one"))))
        place.play("Done.")
        await place.exchange.resume_turn()
        texts = [message.text for message in place.exchange.history.messages]
        assert texts == ["go", "", "", "resumed: False", "Done."]


# --- compaction, subagents, the end of a turn


async def test_an_automatic_compaction_is_told_and_keeps_what_toolkits_want(give: Any) -> None:
    told: list[object] = []
    give(First, before_compaction=lambda start: (told.append(start), "the ticket")[1], after_compaction=told.append)
    moderator = {"name": "summarize", "config": {"limit_tokens": 2_000}}
    async with open_place("first", moderator=moderator) as place:
        place.play(calls(say("a")), calls(say("x" * 12_000, "c2")), "Notes.", "Done.")
        await place.exchange.reply("go")
        compacted = place.events(Compacted)
        assert compacted
        assert told == [CompactionStart(), CompactionEnd(compacted[0].summary)]
        asked = [request for request in place.provider.requests if "the ticket" in request.messages[-1].text]
        assert len(asked) == 1


async def test_hooks_of_a_parent_hold_in_its_subagents_once(give: Any) -> None:
    told: list[Any] = []
    seen: list[BeforeCall] = []

    def judge(call: BeforeCall) -> CallVerdict | None:
        seen.append(call)
        return CallVerdict("deny", "never") if call.arguments.get("text") == "b" else None

    give(First, before_call=judge, on_session_start=told.append, on_prompt_submitted=told.append)
    give(First, on_subagent_start=lambda start: (told.append(start), "be brief")[1], on_subagent_stop=told.append)
    give(First, on_notification=lambda notification: told.append(notification.kind))
    async with open_place("first", "delegate") as place:
        place.play(
            calls(call("delegate", '{"task": "help"}', "d1")),
            calls(say("a", "1"), say("b", "2")),
            "Helped.",
            "Done.",
        )
        await place.exchange.reply("go")
        assert Work.ran == ["a"]
        assert [(call.tool, call.subagent) for call in seen] == [
            ("delegate", ""),
            ("say", "a delegate"),
            ("say", "a delegate"),
        ]
        assert [message.text for message in place.provider.requests[1].messages] == ["help", "be brief"]
    assert told == [
        SessionStart(is_resumed=False),
        PromptSubmitted("go"),
        SubagentStart("a delegate", "d1"),
        SubagentStop("a delegate", "d1", "Helped.", "stop"),
        "turn_finished",
    ]


def write_bare_profile(home: Path) -> None:
    """Write a profile with the toolkit `work` alone, and a script for its model."""
    profiles = home / "config" / "profiles"
    profiles.mkdir(parents=True)
    script = home / "script.yaml"
    script.write_text(
        "- calls:\n    - {tool: say, arguments: {text: a}}\n    - {tool: write, arguments: {path: a}}\n"
        "    - {tool: look, arguments: {text: b}}\n- text: Helped.\n"
    )
    (profiles / "bare.yaml").write_text(f"processor: scripted:{script}\nsandbox: full\ntoolkits: [work]\n")


async def test_a_subagent_without_the_toolkit_obeys_its_hooks(give: Any, home: Path) -> None:
    write_bare_profile(home)
    give(First, before_call=lambda call: CallVerdict("deny", "never") if call.tool == "say" else None)
    give(First, on_permission_asked=lambda asked: PermissionVerdict("deny", "nor this"))
    give(First, after_call=lambda call: ResultChange(context="seen"))
    delegate = ToolkitChoice(name="delegate", config={"profiles": ["bare"]})
    toolkits = (ToolkitChoice(name="first"), delegate, ToolkitChoice(name="work"))
    async with open_place(toolkits=toolkits, approval="ask", answer=ONCE) as place:
        await place.run(call("delegate", '{"task": "help"}', "d1"))
        outputs = [
            event.event.result.output for event in place.events(SubagentEvent) if isinstance(event.event, ToolFinished)
        ]
    assert "a hook forbids it: never" in outputs[0]
    assert "the toolkit 'first' denies it: nor this" in outputs[1]
    assert outputs[2] == "b\n[first] seen"
    assert list_files() == []


@pytest.mark.parametrize(("config", "count"), [({}, 1), ({"is_strict": False}, 2)])
async def test_a_subagent_cannot_be_laxer_by_another_config(
    give: Any, home: Path, config: dict[str, bool], count: int
) -> None:
    seen: list[str] = []
    write_bare_profile(home)
    profile = home / "config" / "profiles" / "bare.yaml"
    first = f"{{name: first, config: {json.dumps(config)}}}"
    profile.write_text(profile.read_text().replace("[work]", f"[{first}, work]"))
    give(First, before_call=lambda call: seen.append(call.tool) if call.subagent else None)
    give(First, on_permission_asked=lambda asked: seen.append(asked.question.kind))
    delegate = ToolkitChoice(name="delegate", config={"profiles": ["bare"]})
    toolkits = (ToolkitChoice(name="first"), delegate, ToolkitChoice(name="work"))
    async with open_place(toolkits=toolkits, approval="ask", answer=ONCE) as place:
        await place.run(call("delegate", '{"task": "help"}', "d1"))
    assert seen == ["say"] * count + ["write"] * count + ["change"] * count + ["look"] * count


async def test_a_message_is_not_lost_when_its_turn_is_cancelled_before_it_starts(give: Any) -> None:
    judging = asyncio.Event()

    async def judge(prompt: PromptSubmitted) -> None:
        if prompt.is_interjected:
            judging.set()
            await asyncio.Event().wait()

    give(First, on_prompt_submitted=judge)
    async with open_place("first") as place:
        place.exchange.inbox.put("one")
        place.exchange.inbox.put("two")
        turn = asyncio.create_task(place.exchange.reply("go"))
        await judging.wait()
        turn.cancel()
        await asyncio.wait([turn])
        assert turn.cancelled()
        assert place.exchange.inbox.take() == ["one", "two"]


async def test_a_message_that_the_person_takes_back_is_not_sent(give: Any) -> None:
    def judge(prompt: PromptSubmitted) -> None:
        if prompt.text == "one":
            inboxes[0].take_newest()

    give(First, on_prompt_submitted=judge)
    async with open_place("first") as place:
        inboxes = [place.exchange.inbox]
        inboxes[0].put("one")
        place.play("Done.")
        await place.exchange.reply("go")
        assert [message.text for message in place.exchange.history.messages] == ["go", "Done."]


async def test_hooks_of_a_message_keep_the_time_limit_of_its_turn(give: Any) -> None:
    give(First, on_prompt_submitted=lambda prompt: asyncio.Event().wait())
    async with open_place("first", limits={"time_s": 0.01}) as place:
        with pytest.raises(TimeLimitError, match=r"took all of the time limit of 0\.01 s") as caught:
            await place.exchange.reply("go")
        assert caught.value.exit_code == 124
        assert place.exchange.history.messages == []


async def test_a_hook_before_the_end_may_be_async(give: Any) -> None:
    demands = iter(["run the tests", "", ""])

    async def look() -> FollowUp:
        await asyncio.sleep(0)
        return FollowUp(next(demands), is_repeated=True)

    give(First, before_finish=look)
    async with open_place("first") as place:
        place.play("Done.", "They pass.")
        await place.exchange.reply("go")
        texts = [message.text for message in place.exchange.history.messages]
        assert texts == ["go", "Done.", "run the tests", "They pass."]


async def test_a_session_without_hooks_does_no_work_for_them(give: Any) -> None:
    async with open_place() as place:
        assert place.exchange.hooks.calls.is_empty
        assert await place.run(say("a")) == ["a"]
    give(First, on_permission_denied=lambda denial: None)
    async with open_place("first") as place:
        assert not place.exchange.hooks.calls.is_empty


async def test_a_hook_that_hangs_does_not_keep_the_process(give: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("stopped")

    monkeypatch.setattr(toolkit_hooks, "_END_LIMIT_S", 0.01)
    give(First, on_session_end=hang, on_notification=lambda notification: hang())
    async with open_place("first") as place:
        await place.run(say("a"))
    await asyncio.sleep(0)
    assert stopped == ["stopped"] * 2
    assert "hooks were stopped that had not ended 0.01 s after the session" in place.logged


async def test_a_toolkit_follows_all_events_and_a_failing_one_hears_no_more(give: Any) -> None:
    seen: list[Any] = []
    failures: list[Any] = []

    def fail(event: Any) -> None:
        failures.append(event)
        raise ValueError("no")

    give(First, on_event=fail)
    give(Second, on_event=seen.append)
    async with open_place("first", "second") as place:
        await place.run(say("a"))
        assert len(failures) == 1
        assert sorted(event.type for event in seen) == sorted(event.type for event in place.recorder.events)
        kinds = [event.type for event in seen]
        assert kinds[0] == "session_started"
        assert kinds[-1] == "turn_finished"
        (told,) = [text for text in place.logged if "on_event" in text]
        assert told.startswith("toolkit 'first' failed in 'on_event', which is not called again: ")


async def test_a_toolkit_is_not_told_what_it_emits_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def log(self: Any, event: Any) -> None:
        told.append(event.type)
        self.notifier.log(f"saw {event.type}")

    for kind in (First, Second):
        monkeypatch.setattr(kind, "on_event", log)
    async with open_place("first", "second") as place:
        await place.run(say("a"))
        assert len([text for text in place.logged if text == "saw turn_finished"]) == 2
        assert not [text for text in place.logged if "on_event" in text]
        assert told.count("turn_finished") == 2


def test_each_hook_point_is_a_method_that_changes_nothing() -> None:
    for name in HOOK_POINTS:
        assert inspect.isfunction(getattr(Toolkit, name)), name
    assert list_hook_points(Toolkit) == []
    assert list_hook_points(Policy) == ["on_prompt_submitted", "before_call", "before_compaction", "after_compaction"]


def test_a_misspelt_hook_is_named() -> None:
    class Team(Toolkit):
        def before_cal(self, call: object) -> None:
            """Judge a call."""

        def on_lunch(self) -> None:
            """Eat."""

        def after_call(self, call: object) -> None:
            """Judge a result."""

    assert list(lint_toolkit(Team)) == [
        "method 'before_cal' is no hook, so nothing calls it; did you mean 'before_call'?"
    ]
