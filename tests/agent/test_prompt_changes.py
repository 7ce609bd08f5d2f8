"""A changed prompt: the recorded one stays in each request, and a message tells the model what is different now."""

from dataclasses import replace

import pytest

from goose_like.agent.compaction.moderators import Synopsis, Truncate
from goose_like.agent.prompt_changes import find_prompt_change
from goose_like.core.context import KnownPrompt
from goose_like.core.events import Compacted, PromptChanged, PromptRecorded, Reminded, Rewound
from goose_like.core.history import History
from goose_like.core.message import EffortChange, NewTools, ToolSpec
from goose_like.core.tool import TransientResult, make_tool
from goose_like.providers.base import ModelPair
from tests.agent.loop import assert_append_only, echo
from tests.fakes import call, calls

SCHEMA = {"type": "object", "properties": {}}
LOOK = ToolSpec("look", "Look.", SCHEMA)
WRITE = ToolSpec("write", "Write.", SCHEMA)


def write_file() -> str:
    """Write a file."""
    return "written"


def name_tools(*specs):
    return {spec.name: spec for spec in specs}


def add_tool(exchange, function):
    tool = make_tool(function)
    return replace(exchange, tools={**exchange.tools, tool.name: tool})


def set_effort(exchange, effort, label="scripted:x"):
    model = replace(exchange.models.processor, effort=effort, label=label)
    return replace(exchange, models=ModelPair(model, exchange.models.accelerator))


def list_changes(b):
    return b.events_of(PromptChanged)


async def test_the_recorded_prompt_stays_and_changes_follow(create_harness):
    harness = create_harness(["one", "two", "three"], echo)
    await harness.exchange.reply("Hi.")
    changed = replace(harness.exchange, system="system\n\nNever push.")
    await changed.reply("Go on.")
    await changed.reply("And on.")
    assert_append_only(harness.provider.requests)
    (event,) = list_changes(harness)
    assert event.text == "These instructions hold from now on:\n\nNever push."
    roles = [message.role for message in harness.provider.requests[-1].messages]
    assert roles == ["user", "assistant", "user", "system", "assistant", "user"]
    assert len(harness.events_of(PromptRecorded)) == 1


async def test_a_change_back_is_told_too(create_harness):
    harness = create_harness(["one", "two", "three"])
    await replace(harness.exchange, system="Be brief.\n\nOnly plan.").reply("Hi.")
    await replace(harness.exchange, system="Be brief.").reply("Go.")
    await replace(harness.exchange, system="Be brief.\n\nOnly plan.").reply("Plan.")
    gone, again = [event.text for event in list_changes(harness)]
    assert gone == "Your instructions have changed. The parts that begin like this no longer hold:\n- Only plan."
    assert again == "These instructions hold from now on:\n\nOnly plan."


async def test_a_missing_tool_is_refused_and_an_added_one_runs(create_harness):
    wanted = [calls(call("echo", '{"text": "x"}', id="a")), "refused", calls(call("write_file", id="b")), "done"]
    harness = create_harness(["one", *wanted], echo)
    await harness.exchange.reply("Hi.")
    await replace(harness.exchange, tools={}).reply("Look.")
    await add_tool(harness.exchange, write_file).reply("Write.")
    assert_append_only(harness.provider.requests)
    assert [request.allowed_tools for request in harness.provider.requests[::2]] == [
        ("echo",),
        (),
        ("echo", "write_file"),
    ]
    assert [tool.name for tool in harness.provider.requests[-1].all_tools] == ["echo", "write_file"]
    assert harness.outputs == ["not allowed: echo cannot be used in this mode; the tools are: none", "written"]
    without, with_more = list_changes(harness)
    assert without.text == "These tools cannot be used now, and a call fails: echo."
    assert with_more.text == "These tools can be used again: echo."
    assert [tool.name for tool in with_more.tools] == ["write_file"]


async def test_an_effort_is_part_of_the_conversation(create_harness):
    harness = create_harness(["one", "two", "three", "four"])
    await set_effort(harness.exchange, "low").reply("Hi.")
    await set_effort(harness.exchange, "high").reply("Think.")
    await set_effort(harness.exchange, "high").reply("More.")
    await set_effort(harness.exchange, "max", label="scripted:other").reply("Another model.")
    assert [request.first_effort for request in harness.provider.requests] == ["low", "low", "low", None]
    (change,) = [message for message in harness.provider.requests[-1].messages if message.role == "system"]
    assert change.parts == (EffortChange(effort="high"),)


async def test_a_summary_brings_the_prompt_of_now(create_harness):
    harness = create_harness(["word " * 200, "word " * 200, "three"], moderator=Truncate({"limit_tokens": 400}))
    await harness.exchange.reply("Hi.")
    changed = replace(harness.exchange, system="Never push.")
    await changed.reply("Go on.")
    await changed.reply("And on.")
    assert harness.events_of(Compacted)
    first, last = harness.events_of(PromptRecorded)
    assert (first.system, last.system) == ("system", "Never push.")
    assert harness.provider.requests[-1].system == "Never push."


async def test_a_summary_brings_no_tool_twice(create_harness):
    harness = create_harness(["one", "two", "three", "four"], echo)
    await harness.exchange.reply("Hi.")
    changed = set_effort(add_tool(harness.exchange, write_file), "high")
    await changed.reply("Go on.")
    changed.journal.emit(Compacted(summary="S", kept_count=3))
    await changed.reply("And on.")
    request = harness.provider.requests[-1]
    assert [tool.name for tool in request.tools] == ["echo", "write_file"]
    assert [message.role for message in request.messages] == ["user", "user", "assistant", "user"]
    changed.rewind(2)
    await add_tool(changed, fail_late).reply("Anew.")
    assert [tool.name for tool in harness.provider.requests[-1].added_tools] == ["fail_late"]


def fail_late() -> str:
    """Fail late."""
    return "late"


async def test_a_fresh_turn_is_told_anew(create_harness):
    harness = create_harness(["one", "two", "three"])
    await harness.exchange.reply("Hi.")
    changed = replace(harness.exchange, system="system\n\nNever push.")
    await changed.reply("Go on.")
    await changed.reply("Look.", is_fresh=True)
    assert [message.text for message in harness.provider.requests[-1].messages] == [
        "Look.",
        "These instructions hold from now on:\n\nNever push.",
    ]


async def test_what_a_fresh_turn_was_told_does_not_stay(create_harness):
    harness = create_harness(["one", "two", "three", "four"])
    await replace(harness.exchange, system="A").reply("Hi.")
    await replace(harness.exchange, system="A\n\nB").reply("Go on.")
    changed = add_tool(replace(harness.exchange, system="A\n\nC"), write_file)
    await changed.reply("Look.", is_fresh=True)
    await changed.reply("And on.")
    last = harness.provider.requests[-1]
    texts = [message.text for message in last.messages if message.role == "system"]
    assert len(texts) == 2
    assert texts[1].startswith("Your instructions have changed. The parts that begin like this no longer hold:\n- B\n")
    assert [tool.name for message in last.messages for tool in message.new_tools] == ["write_file"]
    assert History.replay(harness.session.read_events()).context.messages == harness.exchange.history.context.messages


async def test_changes_from_before_a_summary_do_not_stay(create_harness):
    harness = create_harness(["one", "two", "three", "four"])
    await replace(harness.exchange, system="Act.").reply("Hi.")
    planning = replace(add_tool(set_effort(harness.exchange, "low"), write_file), system="Only plan.")
    await planning.reply("Plan.")
    harness.journal.emit(Compacted(summary="S", kept_count=3))
    acting = replace(add_tool(set_effort(harness.exchange, "max"), write_file), system="Act.")
    await acting.reply("Go.")
    last = harness.provider.requests[-1]
    assert (last.system, last.first_effort, [tool.name for tool in last.tools]) == ("Act.", "max", ["write_file"])
    assert [message.text for message in last.messages] == ["S", "Plan.", "two", "Go."]
    acting.rewind(4)
    await acting.reply("Go again.")
    assert "Only plan." not in str(harness.provider.requests[-1].messages)


async def test_a_moderator_that_rewrites_each_step_brings_all_tools(create_harness):
    """It leaves out the message that brought a tool under another moderator."""
    harness = create_harness(["one", "two", "three", "four"], echo)
    await harness.exchange.reply("Hi.")
    changed = replace(add_tool(harness.exchange, write_file), system="B")
    await changed.reply("Go on.")
    rewriting = replace(changed, moderator=Synopsis({}))
    await rewriting.reply("And on.")
    await rewriting.reply("And on.")
    last = harness.provider.requests[-1]
    assert (last.system, [tool.name for tool in last.all_tools]) == ("B", ["echo", "write_file"])
    assert len(harness.events_of(PromptRecorded)) == 2


async def test_what_a_session_file_cannot_hold_changes_nothing(create_harness):
    harness = create_harness(["one", "two"])
    tool = make_tool(echo)
    tool = replace(tool, spec=replace(tool.spec, description="\ud83d", schema={**SCHEMA, "default": float("nan")}))
    odd = replace(harness.exchange, system="A \ud83d", tools={"echo": tool})
    await odd.reply("Hi.")
    await odd.reply("Go on.")
    assert not list_changes(harness)
    (recorded,) = harness.events_of(PromptRecorded)
    assert recorded.tools == (replace(tool.spec, description="\ufffd", schema={**SCHEMA, "default": None}),)
    assert PromptRecorded.model_validate_json(recorded.model_dump_json()) == recorded


async def test_a_secret_in_the_description_of_a_tool_is_masked_once(create_harness):
    secret = "sk-ant-api03-" + "a1B2c3D4e5" * 9
    harness = create_harness(["one", "two"])
    tool = make_tool(echo)
    properties = {"text": {"type": "string", "default": secret}}
    tool = replace(tool, spec=replace(tool.spec, description=f"Use {secret}.", schema={"properties": properties}))
    with_secret = replace(harness.exchange, tools={"echo": tool})
    await with_secret.reply("Hi.")
    await with_secret.reply("Go on.")
    assert not list_changes(harness)
    assert secret not in harness.session.file.read_text()
    assert "Use [masked:" in harness.provider.requests[-1].tools[0].description


async def test_an_added_tool_is_found_under_a_name_with_a_prefix(create_harness):
    harness = create_harness(["one", calls(call("functions.write_file")), "done"])
    await harness.exchange.reply("Hi.")
    await add_tool(harness.exchange, write_file).reply("Write.")
    assert harness.outputs == ["written"]


async def test_a_rewind_forgets_what_was_told(create_harness):
    harness = create_harness(["one", "two", "three"])
    await harness.exchange.reply("Hi.")
    changed = replace(harness.exchange, system="system\n\nNever push.")
    await changed.reply("Go on.")
    changed.rewind(2)
    await changed.reply("Again.")
    assert len(list_changes(harness)) == 2
    assert [message.role for message in harness.provider.requests[-1].messages] == [
        "user",
        "assistant",
        "user",
        "system",
    ]


async def test_results_stay_as_they_were_sent(create_harness):
    def look() -> TransientResult:
        """Look."""
        return TransientResult("long", replacement="short")

    harness = create_harness([calls(call("look")), "seen", "again"], look)
    await harness.exchange.reply("Hi.")
    await harness.exchange.reply("Go on.")
    assert_append_only(harness.provider.requests)
    shortened = harness.exchange.history.context.preview(Compacted(summary="", kept_count=9))
    assert [result.output for message in shortened for result in message.tool_results] == ["short"]


def test_a_replay_gives_the_same_prompt():
    events = [
        PromptRecorded(system="A", tools=(LOOK,), model="m", effort="low"),
        PromptChanged(text="B", system="A\n\nB", tools=(WRITE,), unavailable=("look",), effort="high"),
        Reminded(text="R"),
    ]
    history = History.replay(events)
    assert history.context.known_prompt == KnownPrompt("A\n\nB", name_tools(LOOK, WRITE), frozenset({"look"}), "high")
    assert history.messages[0].parts[1:] == (NewTools(tools=(WRITE,)), EffortChange(effort="high"))
    assert [message.role for message in history.messages] == ["system", "system"]
    history.apply(Rewound(message_count=0))
    assert history.context.known_prompt == KnownPrompt("A", name_tools(LOOK), effort="low")
    history.apply(Compacted(summary="S", kept_count=0))
    assert history.context.known_prompt is None


CHANGES = {
    "nothing": ("A", (LOOK,), "", None),
    "unknown effort": ("A", (LOOK,), None, None),
    "another description": ("A", (replace(LOOK, description="See."),), "", "The tool look has changed. See.\n"),
    "no tool": ("A", (), "", "These tools cannot be used now, and a call fails: look."),
    "a new text": ("A\n\nB", (LOOK,), "", "These instructions hold from now on:\n\nB"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change(name):
    system, tools, effort, text = CHANGES[name]
    found = find_prompt_change(KnownPrompt("A", name_tools(LOOK)), system, name_tools(*tools), effort)
    assert (found is None) == (text is None)
    if found is not None:
        assert found.text.startswith(text)


def test_a_change_that_was_told_is_not_told_again():
    known = KnownPrompt("A", name_tools(LOOK))
    later = replace(LOOK, description="See.")
    change = find_prompt_change(known, "B", name_tools(later), "high")
    told = History.replay([PromptRecorded(system="A", tools=(LOOK,)), change]).context.known_prompt
    assert told is not None
    assert find_prompt_change(told, "B", name_tools(later), "high") is None


def test_a_long_paragraph_is_named_by_its_start():
    found = find_prompt_change(KnownPrompt("word " * 400, {}), "B", {}, None)
    assert found is not None
    assert len(found.text) < 300
