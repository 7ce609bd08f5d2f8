"""What to send when the history is long: moderators answer it, the exchange records what they decide."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from goose_like.agent.view import ExchangeView
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.events import Compacted
from goose_like.core.history import History, estimate_tokens
from goose_like.core.message import Message
from goose_like.providers.base import Model
from goose_like.providers.prices import known_window

from .summarize import newest, summarized
from .truncate import GAIN, Keep, shorter

ASSUMED_WINDOW_TOKENS = 128_000
_SMALLEST_WINDOW_TOKENS = 4_000
_AGAIN = 1.2
"""Something is done, or tried, again when the conversation has grown by this much since."""

MODERATOR = "moderator"
"""The key in `History.state` of what the conversation had when something was last done or tried, in tokens."""

Live = Callable[[], Iterable[tuple[str, str]]]
"""What is true now by what the toolkits know, as titles and texts."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The messages to send. With `compacted` they are what the history's context is once that is recorded.

    `told` is for the person: why nothing was done that should have been. `again_tokens` is kept as the history's state
    `MODERATOR`: what the conversation had when something was last done or tried.
    """

    messages: Sequence[Message]
    compacted: Compacted | None = None
    told: str = ""
    again_tokens: int | None = None


class Moderator:
    """Made from the `config` of the profile, whose keys are `settings` with what they are by default.

    Must not change the history. `keep` puts a result's whole output into a file, `live` asks the toolkits. One that
    `tells_plan` puts it before the model at each step.
    """

    settings: Mapping[str, Any] = {}
    tells_plan: ClassVar[bool] = False

    def __init__(
        self, config: Mapping[str, Any], *, keep: Keep = lambda result: "the session", live: Live = tuple
    ) -> None:
        name = type(self).__name__.lower()
        for key, value in config.items():
            if key not in self.settings:
                known = did_you_mean(key, self.settings) if self.settings else "it has no settings"
                raise ProfileError(f"moderator {name!r} has no {key!r}; {known}", ("config", key))
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or value <= 0 or (key == "at" and value >= 1):
                what = "a share of the window, e.g. 0.75" if key == "at" else "a number of at least 1"
                raise ProfileError(f"`{key}` is {what}, not {value!r}", ("config", key))
        self.config = {**self.settings, **config}
        self.keep = keep
        self.live = live

    async def rewrite(self, history: History, models: ExchangeView) -> Rewrite:
        """What to send of the history in the next request."""
        return Rewrite(history.context)

    async def shrink(self, history: History, models: ExchangeView) -> Compacted | None:
        """What to try once when the vendor refused the request as too long; None: nothing is left to leave out."""
        return shorter(history, history.tokens // 2, self.keep)


class Passive(Moderator):
    """Sends everything, always."""


class _AtLimit(Moderator):
    """Does something when the conversation has reached a share of the window, or so many tokens."""

    settings = {"at": 0.75, "limit_tokens": None}

    def __init__(self, config: Mapping[str, Any], **wiring: Any) -> None:
        super().__init__(config, **wiring)
        self._windows: dict[str, int] = {}

    async def rewrite(self, history: History, models: ExchangeView) -> Rewrite:
        tokens = history.tokens
        limit = int(
            self.config["limit_tokens"] or await self._window(models.processor.model, tokens) * self.config["at"]
        )
        last = history.state.get(MODERATOR)
        # Of a longer conversation, which was gone back on since, it says nothing about this one.
        again = last * _AGAIN if isinstance(last, int) and last <= tokens else 0
        if tokens <= max(limit, again):
            return Rewrite(history.context)
        before = sum(map(estimate_tokens, history.context))
        constant = max(0, tokens - before)  # the system prompt and the tools, which are counted as well
        try:
            if before < tokens * GAIN:
                raise GooseLikeError(f"of its {tokens:,} tokens {constant:,} are the prompt and the tools")
            compacted = await self.compacted(history, models, limit)
            context = history.context_after(compacted)
            after = constant + sum(map(estimate_tokens, context))
            if after > (constant + before) * (1 - GAIN):
                raise GooseLikeError(f"of its {tokens:,} tokens {after:,} would stay")
        except GooseLikeError as error:
            told = f"the conversation stays as it is: {error}"
            return Rewrite(history.context, told=told, again_tokens=tokens)
        return Rewrite(context, compacted, again_tokens=after)

    async def _window(self, model: Model, tokens: int) -> int:
        """The model's window; looked up only for a conversation that could reach one."""
        if model.window or tokens < _SMALLEST_WINDOW_TOKENS:
            return model.window or ASSUMED_WINDOW_TOKENS
        if model.label not in self._windows:
            known = await asyncio.to_thread(known_window, model.label)
            self._windows[model.label] = known or ASSUMED_WINDOW_TOKENS
        return self._windows[model.label]

    async def compacted(self, history: History, models: ExchangeView, limit_tokens: int) -> Compacted:
        """The event after which less is sent.

        Raises:
            GooseLikeError: it can't be had, or would gain little.
        """
        raise NotImplementedError


class Truncate(_AtLimit):
    """Leaves out what is oldest when the window fills up; the first request and the plan are said again.

    It cuts to half the limit at once: cutting a little at every step would spoil the provider's prompt cache.
    """

    async def compacted(self, history: History, models: ExchangeView, limit_tokens: int) -> Compacted:
        event = shorter(history, limit_tokens // 2, self.keep)
        if event is None:
            raise GooseLikeError(f"it has about {history.tokens:,} tokens, and little of it could be left out")
        return event


class Summarize(_AtLimit):
    """Puts a summary by the fast model in the place of all but the newest steps when the window fills up."""

    settings = {**_AtLimit.settings, "newest": 0.25, "verbatim_tokens": 2_000}

    async def compacted(self, history: History, models: ExchangeView, limit_tokens: int) -> Compacted:
        kept = newest(history.messages[history.kept_from :], int(limit_tokens * self.config["newest"]))
        return await summarized(
            history, models.accelerator, kept=kept, verbatim_tokens=int(self.config["verbatim_tokens"])
        )
