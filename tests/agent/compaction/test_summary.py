"""Tests of summaries: the texts that stand for what is left out, and the question for notes."""

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from goose_like.agent.compaction.summary import (
    count_newest,
    measure,
    quote_first_request,
    quote_later_requests,
    suggest_title,
    summarize_history,
    truncate_history,
)
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import (
    MessageCompleted,
    PlanUpdated,
    Reminded,
    Task,
    ToolFinished,
    TurnStarted,
    UsageRecorded,
)
from goose_like.core.history import History
from goose_like.core.message import Message, ToolResult, Usage
from tests.fakes import ExchangeHarness, call, calls


@pytest_asyncio.fixture
async def b(tmp_path):
    harness = ExchangeHarness(["Notes.", "Notes."], folder=tmp_path / "s")
    yield harness
    harness.session.close()


def add_step(b, number, output, arguments="{}"):
    """Add a call and its result to a conversation."""
    b.journal.emit(MessageCompleted(message=calls(call("look", arguments, f"c{number}"), text=f"step {number}")))
    b.journal.emit(ToolFinished(result=ToolResult(call_id=f"c{number}", output=output)))


def save_result(result):
    return f"/outputs/{result.call_id}"


LETTERS = "".join(chr(ord("a") + number % 26) for number in range(5_000))


async def test_the_question_for_notes_clips_long_arguments_and_results(b):
    b.journal.emit(TurnStarted(message=Message.user("Go.")))
    add_step(b, 1, LETTERS, LETTERS[1:])
    add_step(b, 2, LETTERS[:2_000], LETTERS[:2_001])
    await summarize_history(b.exchange.history, b.exchange.view.accelerator, focus="the cat")
    (request,) = b.provider.requests
    assert request.messages[0].text == "\n\n".join(
        [
            "The person: Go.",
            "You: step 1",
            f"You called look: {LETTERS[1:1_001]} [...] {LETTERS[-1_000:]}",
            f"It gave: {LETTERS[:1_000]} [...] {LETTERS[-1_000:]}",
            "You: step 2",
            f"You called look: {LETTERS[:1_000]} [...] {LETTERS[1_001:2_001]}",
            f"It gave: {LETTERS[:2_000]}",
            "Write the notes. Above all keep this: the cat",
        ]
    )
    assert [event.purpose for event in b.events_of(UsageRecorded)] == ["summary"]


async def test_the_question_for_notes_fits_into_half_of_the_window(b):
    b.journal.emit(TurnStarted(message=Message.user(LETTERS)))
    model = b.exchange.view.accelerator
    object.__setattr__(model.model, "known_window", 800)
    await summarize_history(b.exchange.history, model)
    whole = f"The person: {LETTERS}"
    cut = f"{whole[:300]}\n\n[... left out here ...]\n\n{whole[-900:]}\n\nWrite the notes."
    assert b.provider.requests[0].messages[0].text == cut


async def test_reminders_and_earlier_notes_are_not_words_of_the_person(b):
    history = b.exchange.history
    b.journal.emit(Reminded(text="git branch: main", reason="context"))
    b.journal.emit(TurnStarted(message=Message.user("Go.")))
    add_step(b, 1, "seen")
    b.journal.emit(await summarize_history(history, b.exchange.view.accelerator, kept_count=2))
    b.journal.emit(TurnStarted(message=Message.user("Go on.")))
    await summarize_history(history, b.exchange.view.accelerator)
    first, second = [request.messages[0].text for request in b.provider.requests]
    assert first == "A reminder by goose-like: git branch: main\n\nThe person: Go.\n\nWrite the notes."
    assert second.startswith("Earlier notes: [Notes on what was said and done before; newer steps follow them")
    assert "\n\nThe person: Go on.\n\nWrite" in second


@pytest.mark.parametrize("kept_count", [0, 2])
async def test_the_notes_say_if_newer_steps_follow(b, kept_count):
    b.journal.emit(TurnStarted(message=Message.user("Go.")))
    add_step(b, 1, "one")
    add_step(b, 2, "two")
    event = await summarize_history(b.exchange.history, b.exchange.view.accelerator, kept_count=kept_count)
    (request,) = b.provider.requests
    assert ("will be gone" in request.system, "Next step." in request.system) == (not kept_count, not kept_count)
    assert ("newer steps" in request.system, "newer steps" in event.summary) == (bool(kept_count), bool(kept_count))
    assert all(f"- {heading}: " in request.system for heading in ("Constraints", "Findings", "Failed attempts"))


@pytest.mark.parametrize("kept_count", [3, 4])
async def test_no_notes_without_an_older_message(b, kept_count):
    b.journal.emit(TurnStarted(message=Message.user("Go.")))
    add_step(b, 1, "one")
    with pytest.raises(GooseLikeError, match="no messages older than the newest steps"):
        await summarize_history(b.exchange.history, b.exchange.view.accelerator, kept_count=kept_count)
    assert b.provider.requests == []


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ('"The cat sat."\n', "The cat sat"),
        ("# **The cat**", "The cat"),
        ("The\n  cat 'sat'", "The cat 'sat"),
        ("x" * 90, "x" * 80),
    ],
)
async def test_a_title_is_one_short_line(b, answer, title):
    b.journal.emit(TurnStarted(message=Message.user("y" * 5_000)))
    b.provider.script = [answer]
    assert await suggest_title(b.exchange.history, b.exchange.view.accelerator) == title
    (request,) = b.provider.requests
    assert request.messages[0].text == "The person: " + "y" * (4_000 - 12)
    assert request.system.startswith("You name conversations.")
    assert [event.purpose for event in b.events_of(UsageRecorded)] == ["title"]


def test_without_a_request_nothing_is_quoted():
    assert quote_first_request(History()) == ""


ROLES = {
    "u": Message.user("x" * 30),
    "a": calls(call("look"), text="y" * 90),
    "t": Message(role="tool", parts=(ToolResult(call_id="c1", output="z" * 300),)),
}


@given(st.text("ua", max_size=8).map(lambda roles: roles.replace("a", "at")), st.integers(0, 900), st.booleans())
def test_the_newest_messages_that_fit_are_kept(roles, room, at_least_a_step):
    messages = [ROLES[role] for role in roles]
    starts = [start for start in range(len(messages) + 1) if roles[start : start + 1] != "t"]
    fitting = [start for start in starts if measure(messages[start:]) <= room]
    start = min(fitting)
    if at_least_a_step:
        start = min(start, max((at for at in starts if "a" in roles[at:]), default=0))
    assert count_newest(messages, room, at_least_a_step=at_least_a_step) == len(messages) - start
    if not at_least_a_step:
        assert count_newest(messages, room) == len(messages) - start


async def test_only_long_results_are_shortened_and_only_once(b):
    b.journal.emit(TurnStarted(message=Message.user("Go.")))
    saved = []

    def note_result(result):
        saved.append(result.call_id)
        return save_result(result)

    for number in range(8):
        add_step(b, number, "short" if number % 2 else "first line\n" + "long line\n" * 500)
    for expected in (["c0", "c2", "c4"], ["c6"]):
        event = truncate_history(b.exchange.history, 2_600, note_result)
        assert saved == expected
        assert set(event.replacements) == set(expected)
        b.journal.emit(event)
        saved.clear()
        add_step(b, 10 + len(expected), "short")
        add_step(b, 20 + len(expected), "long line\n" * 500)
    replaced = b.exchange.history.context.replacements["c0"]
    assert replaced == "first line\n[501 lines, left out here since; all of it is in /outputs/c0]"


async def test_the_summary_of_a_truncated_history_begins_with_the_count(b):
    b.journal.emit(TurnStarted(message=Message.user("Go.")))
    b.journal.emit(PlanUpdated(tasks=(Task(description="look", status="planned"),)))
    for number in range(8):
        add_step(b, number, "some words " * 100)
    event = truncate_history(b.exchange.history, 400, save_result)
    count = len(b.exchange.history.messages) - event.kept_count
    assert event.summary == (
        f"[The oldest {count} messages of this conversation are left out here because the window was full.]\n\n"
        "It began with this request:\nGo.\n\nThe plan so far:\n- [planned] look"
    )


async def test_more_goes_where_the_vendor_counts_more(b):
    b.journal.emit(TurnStarted(message=Message.user("Go.")))
    for number in range(30):
        add_step(b, number, "some words " * 120)
    estimated = truncate_history(b.exchange.history, 5_000, save_result)
    tokens = 3 * b.exchange.history.context.tokens
    b.journal.emit(MessageCompleted(message=Message.assistant("So."), usage=Usage(input_tokens=tokens)))
    measured = truncate_history(b.exchange.history, 5_000, save_result)
    sizes = [measure(b.exchange.history.context.preview(event)) for event in (estimated, measured)]
    assert sizes[1] < sizes[0] / 2


@pytest.mark.parametrize(
    ("limit_tokens", "lines"),
    [
        (8, ["- second one", "- third: two"]),
        (7, ["- third: two"]),
        (4, ["- third: two"]),
        (3, ["- third:  [...]"]),
    ],
)
async def test_the_newest_requests_that_fit_are_quoted(b, limit_tokens, lines):
    for text in ("first", "second one", "third: two", "not yet"):
        b.journal.emit(TurnStarted(message=Message.user(text)))
    quoted = quote_later_requests(b.exchange.history, 3, limit_tokens)
    assert quoted == "\n".join(["Later the person said, word for word:", *lines])
    assert quote_later_requests(b.exchange.history, 1, limit_tokens) == ""
