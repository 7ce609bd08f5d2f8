"""Moderators that act when the conversation reaches a share of the model's window: truncate and summarize."""

import asyncio

from typing_extensions import override

from goose_like.agent.view import ExchangeView
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Compacted
from goose_like.core.history import History, estimate_tokens
from goose_like.providers.base import Model
from goose_like.providers.prices import find_context_window

from .base import MODERATOR_STATE_KEY, Moderator, Rewrite
from .summarize import summarize_history
from .truncate import MIN_GAIN, count_newest, truncate_history

ASSUMED_WINDOW_TOKENS = 128_000
_SMALLEST_WINDOW_TOKENS = 4_000
_RETRY_GROWTH = 1.2
"""The conversation must grow by this factor before the next attempt."""


class ThresholdModerator(Moderator):
    """A moderator that compacts at a share of the window (`at`), or at a number of tokens (`limit_tokens`)."""

    settings = {"at": 0.75, "limit_tokens": None}

    @override
    async def rewrite(self, history: History, models: ExchangeView) -> Rewrite:
        tokens = history.context_tokens
        limit = int(
            self.config["limit_tokens"] or await self._find_window(models.processor.model, tokens) * self.config["at"]
        )
        last = history.state.get(MODERATOR_STATE_KEY)
        # After a rewind, an attempt at a longer conversation says nothing about this one.
        retry_at = last * _RETRY_GROWTH if isinstance(last, int) and last <= tokens else 0
        if tokens <= max(limit, retry_at):
            return Rewrite()
        before = sum(map(estimate_tokens, history.context))
        constant = max(0, tokens - before)  # the system prompt and the tools
        try:
            if before < tokens * MIN_GAIN:
                raise GooseLikeError(f"of its {tokens:,} tokens {constant:,} are the prompt and the tools")
            compacted = await self.compact(history, models, limit)
            after = constant + sum(map(estimate_tokens, history.preview_context(compacted)))
            if after > (constant + before) * (1 - MIN_GAIN):
                raise GooseLikeError(f"of its {tokens:,} tokens {after:,} would stay")
        except GooseLikeError as error:
            return Rewrite(notice=f"the conversation stays as it is: {error}", attempted_tokens=tokens)
        return Rewrite(compacted, attempted_tokens=after)

    async def _find_window(self, model: Model, tokens: int) -> int:
        """Find the model's window. The price table is read only for a conversation that could fill a window."""
        window = model.window
        if not window and tokens >= _SMALLEST_WINDOW_TOKENS:
            window = await asyncio.to_thread(find_context_window, model.label)
        return window or ASSUMED_WINDOW_TOKENS

    async def compact(self, history: History, models: ExchangeView, limit_tokens: int) -> Compacted:
        """Create the event that shortens the context.

        Raises:
            GooseLikeError: that is impossible, or would save little.
        """
        raise NotImplementedError


class Truncate(ThresholdModerator):
    """A moderator that leaves out the oldest steps when the window fills up, and repeats first request and plan.

    It truncates to half of the limit at once: cutting a little at every step would defeat the provider's prompt cache.
    """

    @override
    async def compact(self, history: History, models: ExchangeView, limit_tokens: int) -> Compacted:
        event = truncate_history(history, limit_tokens // 2, self.save_result)
        if event is None:
            raise GooseLikeError(f"it has about {history.context_tokens:,} tokens, and little of it could be left out")
        return event


class Summarize(ThresholdModerator):
    """A moderator that replaces all but the newest steps with a summary by the fast model when the window fills up."""

    settings = {**ThresholdModerator.settings, "newest": 0.25, "verbatim_tokens": 2_000}

    @override
    async def compact(self, history: History, models: ExchangeView, limit_tokens: int) -> Compacted:
        newest_tokens = int(limit_tokens * self.config["newest"])
        own = history.messages[history.kept_start :]
        kept_count = count_newest(own, list(map(estimate_tokens, own)), newest_tokens)
        return await summarize_history(
            history, models.accelerator, kept_count=kept_count, verbatim_tokens=int(self.config["verbatim_tokens"])
        )
