"""Steps that a small model repeats: which messages stay, and how many of the newest steps repeat earlier ones."""

from itertools import chain

import pytest

from goose_like.core.message import Message, Text, ToolCall, ToolResult
from goose_like.providers.repeated_steps import drop_repeated_steps


def step(name: str, output: str) -> list[Message]:
    call = ToolCall(id=name, name="shell", arguments=name)
    return [Message.assistant("", (call,)), Message(role="tool", parts=(ToolResult(call_id=name, output=output),))]


def remind(text: str) -> Message:
    return Message(role="system", parts=(Text(text=text),))


A = step("a", "ran in 0.12s")
LATER_A = step("a", "ran in 3.45s")
WARNED_A = step("a", "ran in 3.45s\n[this very call has failed 3 times; do something else, or say what you need]")
B = step("b", "no")
OTHER_B = step("b", "yes")
SORRY = [Message.assistant("I can't."), remind("This failed: b")]


@pytest.mark.parametrize(
    ("steps", "kept", "count"),
    [
        ([], [], 0),
        ([A, B], [A, B], 0),
        ([A, B, OTHER_B], [A, B, OTHER_B], 0),
        ([A, B, B, B], [A, B], 2),
        ([A, B, LATER_A], [B, LATER_A], 1),
        ([A, A, WARNED_A], [WARNED_A], 2),
        ([A, SORRY, A, SORRY], [A, SORRY], 2),
        ([A, A, B], [A, B], 0),
    ],
)
def test_only_the_newest_of_equal_steps_is_kept(steps, kept, count):
    start = [*A, Message.user("go"), remind("The files here: x.py")]
    messages = [*start, *chain.from_iterable(steps)]
    assert drop_repeated_steps(messages) == ([*start, *chain.from_iterable(kept)], count)


def test_a_new_turn_counts_from_the_start():
    messages = [Message.user("go"), *B, *B, Message.user("again")]
    assert drop_repeated_steps(messages) == (messages, 0)
