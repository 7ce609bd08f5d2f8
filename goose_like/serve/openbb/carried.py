"""What a request leaves for the next one, sent along with a call: what was done here before it."""

import hashlib
from collections.abc import Iterable

from pydantic import JsonValue

from goose_like.core.events import Task
from goose_like.core.history import History
from goose_like.core.message import Message, RedactedThinking, Thinking, ToolResult, Value


class Carried(Value):
    """What the next request must know and the client does not record: what was done here before a call was handed off.

    `after` tells which words stood before, without which the thinking is worth nothing; `taken` how many of the last
    message's open calls the client has been asked for.
    """

    messages: tuple[Message, ...]
    results: tuple[ToolResult, ...] = ()
    plan: tuple[Task, ...] = ()
    state: dict[str, JsonValue] = {}
    after: str = ""
    taken: int = 1


def carried(history: History, taken: int) -> JsonValue:
    """What is to be sealed along with a call: what this turn made, for `fold` to put back. Data and words of the
    client are not in it, as it sends them again. The client was asked for `taken` of the open calls.
    """
    start = history.turns[-1].start
    start += start in history.said
    made = [_without_images(message) for message in history.messages[start:]]
    is_whole = history.summary is None and not history.kept_from and not history.elided
    return Carried(
        messages=tuple(made if is_whole else [message.to_be_kept({}) for message in made]),
        results=_without_images(Message(role="tool", parts=history.results)).tool_results,
        plan=history.plan,
        state=history.state,
        after=digest(history.messages[:start]) if any(map(_has_thinking, made)) else "",
        taken=taken,
    ).model_dump(mode="json")


def _without_images(message: Message) -> Message:
    """Pictures that tools made here stay here: they are too large to go along."""
    if not message.images:
        return message
    parts = [
        part.model_copy(update={"images": (), "output": f"{part.output}\n[its picture is not kept]".lstrip()})
        if isinstance(part, ToolResult) and part.images
        else part
        for part in message.parts
    ]
    return message.model_copy(update={"parts": tuple(parts)})


def _has_thinking(message: Message) -> bool:
    return any(isinstance(part, Thinking | RedactedThinking) for part in message.parts)


def digest(messages: Iterable[Message]) -> str:
    """A few letters that stand for these very messages."""
    text = "\n".join(message.model_dump_json() for message in messages)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
