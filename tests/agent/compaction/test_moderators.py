"""Tests of moderators: a long conversation is shortened rarely, and the cached prefix stays intact."""

import asyncio
import copy
import dataclasses
import json
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goose_like.agent.budget import Budget
from goose_like.agent.compaction.moderators import Passive, Summarize, Synopsis, Truncate
from goose_like.agent.compaction.summary import summarize_history, truncate_history
from goose_like.agent.view import ModelView
from goose_like.config.profile import Limits
from goose_like.core.context import estimate_tokens
from goose_like.core.errors import ContextLengthError, GooseLikeError, ModelUnavailableError, ProfileError
from goose_like.core.events import Compacted, Logged, MessageCompleted, PlanUpdated, Reminded, StateSaved, UsageRecorded
from goose_like.core.history import History
from goose_like.core.message import Message, Text, Thinking, ToolResult, Usage
from goose_like.core.notifier import Recorder
from goose_like.core.tool import tool
from goose_like.providers.base import Model
from goose_like.providers.wire import build_status_error
from goose_like.sessions.session import Session
from tests.fakes import ExchangeHarness, FakeProvider, call, calls, is_well_formed
from tests.long_session import GOAL, PLAN, Counting, exchange_over, wires, work
from tests.providers.vendor_rules import valid_for_anthropic, valid_for_openai

KINDS = {"passive": Passive, "truncate": Truncate, "summarize": Summarize, "synopsis": Synopsis}


@pytest.fixture
def session(tmp_path):
    made = Session(tmp_path / "s", "n", History())
    made._open(is_new=True)
    yield made
    made.close()


def create_moderator(name, session, **config):
    return KINDS[name](config, save_result=session.save_result)


@pytest.mark.parametrize("name", KINDS)
async def test_three_hundred_steps_keep_the_goal_and_the_plan(session, name):
    respond, look = work(300)
    config = {"limit_tokens": 20_000} if name in ("truncate", "summarize") else {}
    provider = Counting(respond, window=1_000_000 if name == "passive" else 30_000)
    exchange = exchange_over(session, provider, create_moderator(name, session, **config), look, window=30_000)
    exchange.journal.emit(PlanUpdated(tasks=PLAN))
    end = await exchange.reply(GOAL)
    assert end.reason == "stop", end.detail
    assert len(provider.requests) == 301  # 300 looks and the answer
    for number, request in enumerate(provider.requests):
        said = "\n".join(message.text for message in request.messages)
        assert GOAL in said
        assert number < 30 or all(task.description in said for task in PLAN)
        assert is_well_formed(request.messages)
    # Without compactions each request begins with the one before, and all are long: every tenth will do.
    encoded = provider.requests[1::10] if name == "passive" else provider.requests
    for bodies, is_valid in zip(wires(encoded), (valid_for_openai, valid_for_anthropic), strict=True):
        assert all(is_valid(json.loads(body)) for body in bodies)
    assert len(exchange.history.messages) > 600  # whole, whatever was sent
    compactions = [event for event in session.read_events() if isinstance(event, Compacted)]
    assert bool(compactions) == (name != "passive")
    if name in ("passive", "truncate", "summarize"):
        spoilt = sum(not after.startswith(before[:-2]) for before, after in pairwise(provider.bodies))
        assert spoilt == len(compactions)


async def test_long_results_are_shortened_first(session):
    long = "\n".join(f"line {number}" for number in range(1_000))
    respond, look = work(8, lambda number: long if number < 4 else "short")
    provider = Counting(respond)
    exchange = exchange_over(session, provider, create_moderator("truncate", session, limit_tokens=9_000), look)
    await exchange.reply(GOAL)
    (event,) = [event for event in session.read_events() if isinstance(event, Compacted)]
    assert (set(event.replacements), event.summary) == ({"c0", "c1", "c2"}, "")
    last = provider.requests[-1].messages
    assert last[0].text == GOAL
    words = last[2].tool_results[0].output
    assert words.startswith("line 0\n[1,000 lines, left out here since; all of it is in ")
    assert session.output_path("c0").read_text() == long
    assert words.endswith(f" is in {session.output_path('c0')}]")
    assert exchange.history.messages[2].tool_results[0].output == long


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        "Please reduce the length of the messages or completion.",
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
        "Input is too long for requested model.",
        "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
    ],
)
def test_vendor_messages_for_too_long_requests(words):
    assert isinstance(build_status_error(400, {"error": {"message": words}}, "m", "KEY"), ContextLengthError)


@pytest.mark.parametrize("name", ["passive", "truncate", "summarize"])
async def test_a_too_long_request_is_shortened_once(session, name):
    respond, look = work(30)
    provider = Counting(respond, window=9_000)  # which the profile does not know
    exchange = exchange_over(session, provider, create_moderator(name, session), look)
    assert (await exchange.reply(GOAL)).reason == "stop"
    assert all(is_well_formed(request.messages) for request in provider.requests)
    assert any(isinstance(event, Compacted) for event in session.read_events())


async def test_a_request_that_cannot_be_shortened(session):
    provider = Counting(lambda number: "never", window=3_000)
    exchange = exchange_over(session, provider, create_moderator("passive", session), work(1)[1])
    end = await exchange.reply("word " * 4_000)
    assert (end.reason, end.exit_code) == ("error", 1)
    assert "too many" in end.detail
    assert provider.requests == []
    assert not [event for event in session.read_events() if isinstance(event, Compacted)]


async def test_the_newest_step_stays_before_a_reminder(session):
    respond, look = work(13, lambda number: "seen " * 300)
    exchange = exchange_over(session, Counting(respond), Passive({}), look)
    await exchange.reply(GOAL)
    exchange.rewind(len(exchange.history.messages) - 1)  # the answer; the newest step is the last one now
    exchange.journal.emit(Reminded(text="your plan is old", reason="plan"))
    event = truncate_history(exchange.history, 100, session.save_result)
    context = exchange.history.context.preview(event)
    assert [message.role for message in context] == ["user", "assistant", "tool", "system"]
    assert context[1].tool_calls[0].id == "c12"


async def test_the_truncation_summary_quotes_requests_and_notes(session):
    exchange = exchange_over(session, Counting(lambda number: "It is so. " * 300), Passive({}), work(1)[1])
    for words in (GOAL, "and never touch the cellar", "go on", "go on"):
        await exchange.reply(words)
    event = truncate_history(exchange.history, 300, session.save_result)
    assert GOAL in event.summary
    assert "- and never touch the cellar" in event.summary
    exchange.journal.emit(await summarize_history(exchange.history, exchange.view.accelerator))
    for _ in range(3):
        await exchange.reply("go on")
    event = truncate_history(exchange.history, 300, session.save_result)
    assert "State: well under way" in event.summary


@pytest.mark.parametrize("name", ["truncate", "summarize"])
async def test_a_long_prompt_does_not_lead_to_a_compaction_at_each_step(session, name):
    respond, look = work(40, lambda number: "seen " * 300)
    provider = Counting(respond)
    exchange = exchange_over(session, provider, create_moderator(name, session, limit_tokens=6_000), look)
    object.__setattr__(exchange, "system", "Mind this. " * 2_000)
    assert (await exchange.reply(GOAL)).reason == "stop"
    compactions = sum(isinstance(event, Compacted) for event in session.read_events())
    assert 0 < compactions <= 12
    assert provider.asides <= compactions + 2


async def test_a_failed_attempt_is_remembered_after_a_resume(session):
    respond, look = work(3, lambda number: "seen " * 300)
    provider = Counting(respond, aside="very long notes " * 20_000)
    moderator = create_moderator("summarize", session, limit_tokens=500)
    await exchange_over(session, provider, moderator, look).reply(GOAL)
    asides = provider.asides
    assert asides
    session.history = History.replay(session.read_events())
    await exchange_over(session, provider, create_moderator("summarize", session, limit_tokens=500), look).reply("so?")
    assert provider.asides == asides


async def test_no_notes_are_asked_for_when_the_prompt_fills_the_window(session):
    look = work(1)[1]
    provider = Counting(lambda number: "so far so good")
    exchange = exchange_over(session, provider, create_moderator("summarize", session, limit_tokens=500), look)
    await exchange.reply(GOAL)
    prompt = Usage(input_tokens=90_000, output_tokens=5)
    exchange.journal.emit(MessageCompleted(message=Message.assistant("yes"), usage=prompt))
    await exchange.reply("and now?")
    assert provider.asides == 0
    (notice,) = [event.text for event in session.read_events() if isinstance(event, Logged)]
    assert notice.startswith("the conversation stays as it is: of its 90,")
    assert notice.endswith(" are the prompt and the tools")


async def test_no_second_attempt_at_the_same_conversation(session):
    respond, look = work(3, lambda number: "seen " * 300)
    exchange = exchange_over(session, Counting(respond), Passive({}), look)
    await exchange.reply(GOAL)
    tokens = session.history.context.tokens

    async def rewrite(limit):
        moderator = create_moderator("truncate", session, limit_tokens=limit)
        return await moderator.rewrite(session.history, exchange.view)

    assert await rewrite(tokens) == ()
    assert await rewrite(tokens - 1) != ()
    exchange.journal.emit(StateSaved(toolkit="moderator", value=tokens))
    assert await rewrite(tokens - 1) == ()


@pytest.mark.parametrize("window", [8_000, 80_000])
async def test_the_window_of_the_model_counts(session, window):
    respond, look = work(24, lambda number: "seen " * 250)
    exchange = exchange_over(session, Counting(respond), create_moderator("truncate", session), look, window=window)
    await exchange.reply(GOAL)
    assert session.history.context.tokens < 60_000
    assert any(isinstance(event, Compacted) for event in session.read_events()) == (window == 8_000)


async def test_the_synopsis_names_all_parts_of_the_state(session):
    respond, look = work(3, lambda number: "seen")
    exchange = exchange_over(session, Counting(respond), Passive({}), look)
    await exchange.reply(GOAL)
    await exchange.reply("and the cellar")
    exchange.journal.emit(PlanUpdated(tasks=PLAN[:1]))
    exchange.journal.emit(Reminded(text="mind the cat", reason="plan"))
    exchange.journal.emit(MessageCompleted(message=calls(call("look", id="last"))))
    moderator = Synopsis({"steps": 3}, state_sections=lambda: [("Files", "a.py"), ("Nothing", "")])
    (event,) = await moderator.rewrite(session.history, exchange.view)
    step = "- you said: I look at part 2 now, and compare it with the program."
    assert event.summary.split("\n\n") == [
        "[The state of the work, as it is now; what is below it came after]",
        f"# Asked for\nIt began with this request:\n{GOAL}",
        "# Said since\nLater the person said, word for word:\n- and the cellar",
        "# Files\na.py",
        "# Done so far\n- ...\n"
        f'{step}\n- look {{"number": 2}}: done\n- you said: All of it is done.\n- you said: All of it is done.\n'
        "- you were told: mind the cat",
        "# Plan\nThe plan so far:\n- [complete] read the pages",
    ]
    assert (event.kept_count, event.is_routine) == (1, True)


async def test_a_failed_attempt_is_ignored_after_a_rewind(session):
    respond, look = work(6, lambda number: "seen " * 300)
    provider = Counting(respond, aside="very long notes " * 20_000)
    exchange = exchange_over(session, provider, create_moderator("summarize", session, limit_tokens=1_500), look)
    await exchange.reply(GOAL)
    assert not [event for event in session.read_events() if isinstance(event, Compacted)]
    exchange.rewind(0)
    provider.aside, provider.respond = "Goal: quince-marmalade.", work(99, lambda number: "seen " * 300)[0]
    tried_at = session.history.state["moderator"]
    exchange = dataclasses.replace(exchange, budget=Budget(Limits(steps=6), session))
    await exchange.reply(GOAL)
    assert [event for event in session.read_events() if isinstance(event, Compacted)]
    assert session.history.state["moderator"] < tried_at


async def test_handed_off_calls_prevent_compaction(tmp_path):
    @tool(remote=True)
    def afar() -> None:
        """Runs at the client's."""

    harness = ExchangeHarness([calls(call("afar"))], afar, folder=tmp_path / "s")
    assert (await harness.exchange.reply("go")).reason == "handed_off"
    with pytest.raises(GooseLikeError, match="calls wait for their results"):
        await harness.exchange.compact()
    harness.session.close()


async def test_a_summary_quotes_the_user(session):
    provider = Counting(lambda number: "It is so. " * 200)
    exchange = exchange_over(session, provider, Passive({}), work(1)[1])
    for words in (GOAL, "mind the cat", "mind the dog", "and then? " * 5):
        assert (await exchange.reply(words)).reason == "stop"
    model = exchange.view.accelerator
    all_of_it = (await summarize_history(exchange.history, model)).summary
    assert GOAL in all_of_it
    assert "- mind the cat\n- mind the dog\n- and then? and" in all_of_it
    some = (await summarize_history(exchange.history, model, verbatim_tokens=25)).summary
    assert GOAL in some
    assert "mind the cat" not in some
    assert "- mind the dog\n- and then? and" in some
    little = (await summarize_history(exchange.history, model, verbatim_tokens=5)).summary
    assert "- and then? and [...]" in little


class TestNoLoop:
    async def test_a_summary_that_saves_little_changes_nothing(self, session):
        respond, look = work(12)
        provider = Counting(respond, aside="very long notes " * 20_000)
        exchange = exchange_over(session, provider, create_moderator("summarize", session, limit_tokens=1_500), look)
        await exchange.reply(GOAL)
        events = list(session.read_events())
        assert not [event for event in events if isinstance(event, Compacted)]
        report = [event.text for event in events if isinstance(event, Logged)]
        assert report
        assert all("it is not worth it" in text for text in report)
        assert provider.asides == len(report) < 8  # only when it has grown by a fifth
        assert [request.messages[0].text for request in provider.requests] == [GOAL] * len(provider.requests)

    @pytest.mark.parametrize("error", [ModelUnavailableError("HTTP 500", is_retryable=False), asyncio.CancelledError()])
    async def test_a_summary_that_fails_changes_nothing(self, tmp_path, error):
        long = "word " * 2_000
        harness = ExchangeHarness(
            [long, [error], "fine"], folder=tmp_path / "s", moderator=Summarize({"limit_tokens": 500})
        )
        await harness.exchange.reply("first")
        before = harness.exchange.history.context.messages
        if isinstance(error, asyncio.CancelledError):
            with pytest.raises(asyncio.CancelledError):
                await harness.exchange.reply("second")
        else:
            await harness.exchange.reply("second")
            assert "the conversation stays as it is: HTTP 500" in [event.text for event in harness.events_of(Logged)]
        assert harness.exchange.history.context.messages[:2] == before
        assert not harness.events_of(Compacted)
        harness.session.close()

    async def test_a_cut_summary_is_none(self, tmp_path):
        cut = [MessageCompleted(message=Message.assistant("Goal: hal"), is_cut=True)]
        harness = ExchangeHarness(
            ["word " * 2_000, cut, "fine"], folder=tmp_path / "s", moderator=Summarize({"limit_tokens": 500})
        )
        await harness.exchange.reply("first")
        await harness.exchange.reply("second")
        assert "was cut" in harness.events_of(Logged)[0].text
        assert not harness.events_of(Compacted)
        assert harness.events_of(UsageRecorded)
        harness.session.close()

    @settings(max_examples=30, deadline=None)
    @given(
        name=st.sampled_from(["truncate", "summarize"]),
        limit=st.integers(200, 6_000),
        sizes=st.lists(st.integers(0, 8_000), min_size=1, max_size=25),
        aside=st.sampled_from(["short", "long words " * 300]),
    )
    def test_each_compaction_saves_a_fifth(self, name, limit, sizes, aside):
        async def run(folder):
            session = Session(folder, "n", History())
            session._open(is_new=True)
            respond, look = work(len(sizes), lambda number: "x " * (sizes[number] // 2))
            exchange = exchange_over(
                session, Counting(respond, aside=aside), create_moderator(name, session, limit_tokens=limit), look
            )
            contexts = [0]
            emit = exchange.journal.emit

            def emit_and_measure(event):
                before = sum(map(estimate_tokens, exchange.history.context.messages))
                emit(event)
                if isinstance(event, Compacted):
                    after = sum(map(estimate_tokens, exchange.history.context.messages))
                    contexts.append(after / before)

            object.__setattr__(exchange.journal, "emit", emit_and_measure)
            assert (await exchange.reply(GOAL)).reason == "stop"
            assert max(contexts) <= 0.8
            session.close()

        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(run(Path(folder) / "s"))


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("truncate", {"limt_tokens": 3}, "did you mean 'limit_tokens'"),
        ("summarize", {"at": 1.5}, "a share of the window"),
        ("summarize", {"verbatim_tokens": "many"}, "a number of at least 1"),
        ("passive", {"at": 0.5}, "it has no settings"),
        ("synopsis", {"steps": 0}, "a number of at least 1"),
    ],
)
def test_wrong_settings(name, config, words):
    with pytest.raises(ProfileError, match=words) as caught:
        KINDS[name](config)
    assert caught.value.path == ("config", *config)


# --- the prefix, and what a crash leaves


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(0, 4_000)),
        st.tuples(st.just("pair"), st.integers(0, 900)),
        st.tuples(st.just("say"), st.integers(0, 500)),
        st.tuples(st.just("resume"), st.just(0)),
        st.tuples(st.just("plan"), st.integers(0, 2)),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(["passive", "truncate", "summarize"]), steps=STEPS, limit=st.integers(500, 9_000))
def test_requests_only_grow_except_at_a_compaction(name, steps, limit):
    """Over random sessions with both wires, plans, tools side by side, resumed in between."""

    async def run(folder):
        session = Session(folder, "n", History())
        session._open(is_new=True)
        requests = []
        spoilt_by_design = set()
        queue = list(steps)

        def look(size: int) -> str:
            """Looks."""
            return "seen äöü " * (size // 9)

        def respond(number):
            while queue and queue[0][0] == "plan":
                exchange.journal.emit(PlanUpdated(tasks=PLAN[: 1 + queue.pop(0)[1]]))
            if not queue or queue[0][0] in ("say", "resume"):
                return "so far so good"
            kind, size = queue.pop(0)
            wanted = [
                call("look", f'{{"size": {size}}}', f"c{len(queue)}-{i}") for i in range(2 if kind == "pair" else 1)
            ]
            return calls(*wanted, text="I look")

        def open_exchange():
            config = {} if name == "passive" else {"limit_tokens": limit}
            made_now = exchange_over(session, provider, create_moderator(name, session, **config), look)
            emit = made_now.journal.emit

            def noting(event):
                if isinstance(event, Compacted):
                    spoilt_by_design.add(len(provider.requests))
                emit(event)

            made_now.journal.emit = noting
            return made_now

        provider = Counting(respond)
        exchange = open_exchange()
        await exchange.reply(GOAL)
        while queue:
            kind, size = queue.pop(0)
            if kind == "resume":
                session.close()
                session = Session(folder, "n", History())
                session._open(is_new=False)
                session.history = History.replay(session.read_events())
                exchange = open_exchange()
            await exchange.reply(f"more, please {'!' * size}")
        requests = provider.requests
        for bodies in wires(requests):
            for number, (before, after) in enumerate(pairwise(bodies), 1):
                if number not in spoilt_by_design:
                    assert after.startswith(before.removesuffix(b"]}")), number
        assert all(is_well_formed(request.messages) for request in requests)
        session.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "s"))


@pytest.mark.parametrize("name", KINDS)
async def test_a_crash_between_any_two_events(session, name, tmp_path):
    """A resumed session sends the same bytes as a session that was never stopped."""
    respond, look = work(12)
    config = {"limit_tokens": 3_000} if name in ("truncate", "summarize") else {}
    exchange = exchange_over(session, Counting(respond), create_moderator(name, session, **config), look)
    exchange.journal.emit(PlanUpdated(tasks=PLAN))
    await exchange.reply(GOAL)
    await exchange.reply("and now?")
    lines = session.file.read_bytes().splitlines(keepends=True)
    events = list(session.read_events())
    assert len(events) == len(lines)
    live = History()

    async def list_bodies(folder, history):
        """Send the next message from this history in a new process."""
        reopened = Session(folder, "n", history)
        reopened._open(is_new=not reopened.file.exists())
        if history is None:
            reopened.history = History.replay(reopened.read_events())
        provider = Counting(lambda number: "so it is")
        await exchange_over(reopened, provider, create_moderator(name, reopened, **config), look).reply("go on")
        reopened.close()
        return provider.bodies

    for count, event in enumerate(events, 1):
        live.apply(event)
        stopped = copy.deepcopy(live)
        stopped.close()
        folder = tmp_path / f"cut{count}"
        folder.mkdir()
        (folder / "events.jsonl").write_bytes(b"".join(lines[:count]))
        assert await list_bodies(folder, None) == await list_bodies(tmp_path / f"live{count}", stopped)


async def test_thinking_is_sent_after_a_resume_with_other_tools(session):
    thought = Message(role="assistant", parts=(Thinking(text="hm", signature="SIG"), Text(text="yes")))
    look = work(1)[1]
    await exchange_over(session, Counting(lambda number: thought), Passive({}), look).reply("is it?")
    session.history = History.replay(session.read_events())
    provider = Counting(lambda number: "so it is")
    await exchange_over(session, provider, Passive({}), look).reply("and?")
    assert provider.requests[0].messages[1] == thought
    session.history = History.replay(session.read_events())

    def other(text: str) -> str:
        """Another tool: it follows as a message, since the thought would be refused after it."""
        return text

    await exchange_over(session, provider, Passive({}), look, other).reply("and?")
    first, second = provider.requests
    assert (second.system, second.tools) == (first.system, first.tools)
    assert second.messages[: len(first.messages)] == first.messages
    assert [tool.name for tool in second.added_tools] == ["other"]


async def test_the_request_for_notes_has_each_result_behind_its_call(session):
    look, fail = call("look", '{"path": "a"}', "c1"), call("fail", "{}", "c2")
    results = ToolResult(call_id="c1", output="A"), ToolResult(call_id="c2", output="no", is_error=True)
    session.history.messages += [
        Message.user("Go."),
        calls(look, fail, text="I look."),
        Message(role="tool", parts=results),
        calls(look),
    ]
    session.history.user_message_indexes.append(0)
    provider = FakeProvider(["Notes."])
    model = Model(provider, "x", "scripted:x")
    await summarize_history(session.history, ModelView(model, session, Recorder(), Budget(Limits(), session)))
    assert provider.requests[0].messages[0].text == "\n\n".join(
        [
            *("The person: Go.", "You: I look.", 'You called look: {"path": "a"}', "It gave: A"),
            *("You called fail: {}", "It failed: no", 'You called look: {"path": "a"}', "Write the notes."),
        ]
    )
