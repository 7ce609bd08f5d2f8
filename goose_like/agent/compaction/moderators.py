"""Moderators: they decide which messages go to the model, and the exchange records their decision."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from typing_extensions import override

from goose_like.agent.view import ExchangeView
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.events import Compacted, Logged, StateSaved
from goose_like.core.history import History
from goose_like.core.message import Message
from goose_like.core.spelling import did_you_mean
from goose_like.core.threads import run_in_thread
from goose_like.providers.base import Model
from goose_like.providers.prices import find_context_window

from .summary import (
    MIN_GAIN,
    SaveResult,
    compact_history,
    count_newest,
    format_plan,
    measure,
    quote_first_request,
    quote_later_requests,
    saves_enough,
    truncate_history,
)

ASSUMED_WINDOW_TOKENS = 128_000
_SMALLEST_WINDOW_TOKENS = 4_000
_STATE_KEY = "moderator"
"""The key in `History.state` of the context size, in tokens, after the last attempt to shorten it."""
_RETRY_GROWTH = 1.2
"""The conversation must grow by this factor before the next attempt."""

_SYNOPSIS_TITLE = "[The state of the work, as it is now; what is below it came after]"
_LINE_CHARS = 160
_MAX_NOTES = 5
_LATER_REQUESTS_TOKENS = 2_000

StateSections = Callable[[], Iterable[tuple[str, str]]]
"""Returns the current state of all toolkits as titles and texts."""


async def _keep_nothing() -> str:
    return ""


class Moderator:
    """The base class of all moderators, which sends everything. A moderator must not change the history.

    `settings` are the keys of the `config` in the profile, with their defaults. `save_result` writes a complete tool
    result to a file and returns its path. `state_sections` asks the toolkits for their state. `before_compaction` tells
    the toolkits that the conversation will be shortened, and returns what a summary must keep. A moderator that
    `includes_plan` sends the plan in each request; one that `rewrites_each_step` sends other messages in each request.
    """

    settings: Mapping[str, Any] = {}
    includes_plan: ClassVar[bool] = False
    rewrites_each_step: ClassVar[bool] = False

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        save_result: SaveResult = lambda result: "the session",
        state_sections: StateSections = tuple,
    ) -> None:
        for key, value in config.items():
            self._check_setting(key, value)
        self.config = {**self.settings, **config}
        self.save_result = save_result
        self.state_sections = state_sections
        self.before_compaction: Callable[[], Awaitable[str]] = _keep_nothing
        self._windows: dict[str, int | None] = {}

    def _check_setting(self, key: str, value: Any) -> None:
        if key not in self.settings:
            name = type(self).__name__.lower()
            hint = did_you_mean(key, self.settings) if self.settings else "it has no settings"
            raise ProfileError(f"moderator {name!r} has no {key!r}; {hint}", ("config", key))
        is_share = key == "at"
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or value <= 0 or (is_share and value >= 1):
            kind = "a share of the window, e.g. 0.75" if is_share else "a number of at least 1"
            raise ProfileError(f"`{key}` is {kind}, not {value!r}", ("config", key))

    async def rewrite(self, history: History, models: ExchangeView) -> Sequence[Compacted | Logged | StateSaved]:
        """Return the events to record before the next request. A `Compacted` shortens what the model receives."""
        return ()

    async def shrink(self, history: History, models: ExchangeView) -> Compacted | None:
        """Shorten the context once, after the vendor refused it as too long. Return None when nothing can go."""
        event = truncate_history(history, history.context.tokens // 2, self.save_result)
        return event if saves_enough(history, event) else None


class Passive(Moderator):
    """A moderator that always sends everything."""


class ThresholdModerator(Moderator):
    """A moderator that compacts at a share of the window (`at`), or at a number of tokens (`limit_tokens`)."""

    settings = {"at": 0.75, "limit_tokens": None}
    focus = ""
    """What a summary must keep, as the toolkits say before each compaction."""

    @override
    async def rewrite(self, history: History, models: ExchangeView) -> Sequence[Compacted | Logged | StateSaved]:
        tokens = history.context.tokens
        limit = await self._find_limit(models.processor.model, tokens)
        if tokens <= max(limit, _find_retry_size(history)):
            return ()
        constant = max(0, tokens - measure(history.context.messages))  # the system prompt and the tools
        try:
            if constant > tokens * (1 - MIN_GAIN):
                raise GooseLikeError(f"of its {tokens:,} tokens {constant:,} are the prompt and the tools")
            self.focus = await self.before_compaction()
            compacted = await self.compact(history, models, limit)
            after = constant + measure(history.context.preview(compacted))
            if after > tokens * (1 - MIN_GAIN):
                raise GooseLikeError(f"it is not worth it: of its {tokens:,} tokens {after:,} would stay")
        except GooseLikeError as error:
            notice = Logged(text=f"the conversation stays as it is: {error}")
            return notice, StateSaved(toolkit=_STATE_KEY, value=tokens)
        return StateSaved(toolkit=_STATE_KEY, value=after), compacted

    async def _find_limit(self, model: Model, tokens: int) -> int:
        """Find the tokens of the longest conversation that stays as it is."""
        limit_tokens = self.config["limit_tokens"]
        if not limit_tokens:
            window = await self._find_window(model, tokens)
            limit_tokens = self.config["at"] * window
        return int(limit_tokens)

    async def _find_window(self, model: Model, tokens: int) -> int:
        """Find the model's window. The price table is read only for a conversation that could fill a window."""
        if not model.window and tokens >= _SMALLEST_WINDOW_TOKENS and model.label not in self._windows:
            self._windows[model.label] = await run_in_thread(find_context_window, model.label)
        return model.window or self._windows.get(model.label) or ASSUMED_WINDOW_TOKENS

    async def compact(self, history: History, models: ExchangeView, limit_tokens: int) -> Compacted:
        """Create the event that shortens the context, or raise a GooseLikeError with the reason against it."""
        raise NotImplementedError


def _find_retry_size(history: History) -> float:
    """Find the tokens from which another attempt is worth it, after one that saved little."""
    last = history.state.get(_STATE_KEY)
    if not isinstance(last, int):
        return 0
    # After a rewind, an attempt at a longer conversation says nothing about this one.
    is_rewound = last > history.context.tokens
    return 0 if is_rewound else last * _RETRY_GROWTH


class Truncate(ThresholdModerator):
    """A moderator that leaves out the oldest steps when the window fills up, and repeats first request and plan."""

    @override
    async def compact(self, history: History, models: ExchangeView, limit_tokens: int) -> Compacted:
        # Half of the limit at once: cutting a little at every step would defeat the provider's prompt cache.
        return truncate_history(history, limit_tokens // 2, self.save_result)


class Summarize(ThresholdModerator):
    """A moderator that replaces all but the newest steps with a summary by the fast model when the window fills up."""

    settings = {**ThresholdModerator.settings, "newest": 0.25, "verbatim_tokens": 2_000}

    @override
    async def compact(self, history: History, models: ExchangeView, limit_tokens: int) -> Compacted:
        newest_tokens = int(limit_tokens * self.config["newest"])
        return await compact_history(
            history,
            models,
            focus=self.focus,
            kept_count=count_newest(history.context.kept_messages, newest_tokens),
            verbatim_tokens=int(self.config["verbatim_tokens"]),
        )


class Synopsis(Moderator):
    """A moderator that sends one message with the current state, then the newest step.

    The state holds the state of all toolkits, the steps so far and the plan. The request stays small forever, but each
    step costs the vendor's cache for the message; the system prompt and the tools stay cached.
    """

    settings = {"steps": 40}
    includes_plan = True
    rewrites_each_step = True

    @override
    async def rewrite(self, history: History, models: ExchangeView) -> Sequence[Compacted]:
        messages = history.messages
        answers = [index for index, message in enumerate(messages) if message.role == "assistant"]
        if not answers:
            return ()
        start = answers[-1]
        sections = [
            ("Asked for", quote_first_request(history)),
            ("Said since", quote_later_requests(history, start, _LATER_REQUESTS_TOKENS)),
            *self.state_sections(),
            ("Done so far", "\n".join(self._list_done(history, answers))),
            ("Plan", format_plan(history)),
        ]
        parts = [_SYNOPSIS_TITLE]
        for title, text in sections:
            if text:
                parts.append(f"# {title}\n{text}")
        summary = "\n\n".join(parts)
        return (Compacted(summary=summary, kept_count=len(messages) - start, is_routine=True),)

    def _list_done(self, history: History, answers: list[int]) -> Iterator[str]:
        """List the steps before the newest one, and the newest reminders before it."""
        messages = history.messages
        *former, newest = answers
        shown = former[-int(self.config["steps"]) :]
        if len(shown) < len(former):
            yield "- ..."
        for index in shown:
            yield from _describe_step(messages[index], messages[index + 1])
        reminders = [message.text for message in messages[:newest] if message.role == "system"]
        texts = list(filter(None, reminders))
        for text in texts[-_MAX_NOTES:]:
            yield f"- you were told: {_clip(text)}"


def _describe_step(answer: Message, after: Message) -> Iterator[str]:
    text = answer.text.strip()
    if text:
        yield f"- you said: {_clip(text)}"
    for call, result in zip(answer.tool_calls, after.tool_results, strict=False):
        outcome = "done"
        if result.is_error:
            outcome = f"failed: {_clip(result.output)}"
        yield f"- {call.name} {_clip(call.arguments)}: {outcome}"


def _clip(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= _LINE_CHARS:
        return line
    return f"{line[:_LINE_CHARS]}..."
