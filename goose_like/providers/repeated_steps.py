"""Steps that a small model repeats: it copies what it reads, so each copy in the conversation brings the next one."""

from collections.abc import Sequence

from goose_like.core.message import Message
from goose_like.core.pattern import compile_later

_VARYING = compile_later(r"0x[0-9a-f]+|\b\d+\.\d+ ?s\b|\n\[this very call has failed \d+ times;[^\]\n]*\]")
"""Parts of a result that differ from run to run: addresses, times, and the note that counts equal failures."""

_Key = tuple[object, ...]


def drop_repeated_steps(messages: Sequence[Message]) -> tuple[list[Message], int]:
    """Leave out the steps of the newest turn that later ones repeat: with equal calls and results, or equal answers.

    Returns:
        The other messages, and how many of the newest steps in a row repeat earlier ones.
    """
    start = _find_turn(messages)
    steps: dict[_Key, list[Message]] = {}
    count = 0
    for step in _split_steps(messages[start:]):
        key = _build_key(step)
        if key in steps:
            count += 1
            del steps[key]  # the newest of equal steps stays, at its own place
        else:
            count = 0
        steps[key] = step
    kept = list(messages[:start])
    for step in steps.values():
        kept += step
    return kept, count


def _find_turn(messages: Sequence[Message]) -> int:
    """Return the place behind the newest message of the person and the reminders about it."""
    place = 0
    for number, message in enumerate(messages, 1):
        if message.role == "user":
            place = number
    while place < len(messages) and messages[place].role == "system":
        place += 1
    return place


def _split_steps(messages: Sequence[Message]) -> list[list[Message]]:
    """Split messages into steps: an answer of the model and what follows it."""
    steps: list[list[Message]] = []
    for message in messages:
        if message.role == "assistant" or not steps:
            steps.append([])
        steps[-1].append(message)
    return steps


def _build_key(step: Sequence[Message]) -> _Key:
    parts: list[object] = []
    for message in step:
        if message.role == "assistant":
            calls = [(call.name, call.arguments) for call in message.tool_calls]
            parts += calls
            if not calls:
                parts.append(message.text)
        for result in message.tool_results:
            parts.append(_VARYING.sub("", result.output))
    return tuple(parts)
