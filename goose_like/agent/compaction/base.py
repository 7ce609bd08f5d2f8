"""Moderators: they decide which messages go to the model, and the exchange records their decision."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from goose_like.agent.view import ExchangeView
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import ProfileError
from goose_like.core.events import Compacted
from goose_like.core.history import History

from .truncate import SaveResult, truncate_history

MODERATOR_STATE_KEY = "moderator"
"""The key in `History.state` of the context size, in tokens, at the last attempt to shorten it."""

StateSections = Callable[[], Iterable[tuple[str, str]]]
"""Returns the current state of all toolkits as titles and texts."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A decision about the next request. The model receives the context of the history once `compacted` is recorded.

    `notice` tells the user why a necessary step failed. `attempted_tokens` is saved as the state `MODERATOR_STATE_KEY`.
    """

    compacted: Compacted | None = None
    notice: str = ""
    attempted_tokens: int | None = None


class Moderator:
    """The base class of all moderators, which sends everything. A moderator must not change the history.

    `settings` are the keys of the `config` in the profile, with their defaults. `save_result` writes a complete tool
    result to a file and returns its path. `state_sections` asks the toolkits for their state. A moderator that
    `includes_plan` sends the plan in each request.
    """

    settings: Mapping[str, Any] = {}
    includes_plan: ClassVar[bool] = False

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

    def _check_setting(self, key: str, value: Any) -> None:
        if key not in self.settings:
            known = did_you_mean(key, self.settings) if self.settings else "it has no settings"
            raise ProfileError(f"moderator {type(self).__name__.lower()!r} has no {key!r}; {known}", ("config", key))
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or value <= 0 or (key == "at" and value >= 1):
            kind = "a share of the window, e.g. 0.75" if key == "at" else "a number of at least 1"
            raise ProfileError(f"`{key}` is {kind}, not {value!r}", ("config", key))

    async def rewrite(self, history: History, models: ExchangeView) -> Rewrite:
        """Choose the messages of the next request."""
        return Rewrite()

    async def shrink(self, history: History, models: ExchangeView) -> Compacted | None:
        """Shorten the context once, after the vendor refused it as too long. Return None when nothing can go."""
        return truncate_history(history, history.context_tokens // 2, self.save_result)


class Passive(Moderator):
    """A moderator that always sends everything."""
