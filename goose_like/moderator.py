"""What to send when the history is long: moderators answer it, the exchange records what they decide."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .errors import ProfileError
from .events import Compacted
from .history import History, estimate_tokens
from .message import Message
from .provider import Models

ASSUMED_WINDOW_TOKENS = 128_000
FIRST_REQUEST_CHARACTERS = 8_000
"""How much of the first request is said again: a pasted file must not fill the window a second time."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The messages to send. With `compacted` they are what the history's context is once that is recorded."""

    messages: Sequence[Message]
    compacted: Compacted | None = None


class Moderator(Protocol):
    """Made from the `config` of the profile. Must not change the history."""

    def __init__(self, config: dict[str, Any]) -> None: ...

    async def rewrite(self, history: History, models: Models) -> Rewrite:
        """What to send of the history in the next request."""
        ...


class Passive:
    """Sends everything, always."""

    def __init__(self, config: dict[str, Any]) -> None:
        if config:
            raise ProfileError(f"moderator 'passive' takes no config, not {', '.join(map(repr, config))}")

    async def rewrite(self, history: History, models: Models) -> Rewrite:
        return Rewrite(history.context)


class Truncate:
    """Leaves out the oldest messages when the window fills up; the task and the plan are said again in one line.

    It cuts to half the budget at once: cutting a little at every step would spoil the provider's prompt cache.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        unknown = set(config) - {"limit_tokens"}
        if unknown:
            raise ProfileError(f"moderator 'truncate' has no {unknown.pop()!r}; its config is: limit_tokens")
        self._limit_tokens: int | None = config.get("limit_tokens")

    async def rewrite(self, history: History, models: Models) -> Rewrite:
        window = models.processor.window or ASSUMED_WINDOW_TOKENS
        budget = self._limit_tokens or window * 3 // 4
        context = history.context
        if history.tokens <= budget:
            return Rewrite(context)
        kept, size = 0, 0
        own = history.messages[history.kept_from :]  # of the context all but its summary
        for count, message in enumerate(reversed(own), 1):
            size += estimate_tokens(message)
            if size > budget // 2 and kept:
                break
            if message.role != "tool":  # a result is never sent without its call
                kept = count
        if kept == len(own):
            return Rewrite(context)
        compacted = Compacted(summary=_what_is_left_out(history, len(history.messages) - kept), kept=kept)
        stand = (message.without_thinking for message in own[-kept:])  # see `History.context`
        return Rewrite([Message.user(compacted.summary), *stand], compacted)


def _what_is_left_out(history: History, count: int) -> str:
    first = next((message.text for message in history.messages if message.role == "user"), "")
    first = first[:FIRST_REQUEST_CHARACTERS]
    plan = "\n".join(f"- [{task.status}] {task.description}" for task in history.plan)
    return (
        f"[The oldest {count} messages of this conversation are left out here because the window was full.]\n"
        f"It began with this request:\n{first}" + (f"\n\nThe plan so far:\n{plan}" if plan else "")
    )
