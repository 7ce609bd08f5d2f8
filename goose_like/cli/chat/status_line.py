"""The status line: which profile and model, which branch, how full the window is, what was spent."""

import time

from rich.cells import cell_len

from goose_like.agent.exchange import Exchange
from goose_like.config.profile import Profile
from goose_like.providers.prices import cost_usd
from goose_like.terminal.escape import visible

_LOOK_EVERY_S = 2.0


class StatusLine:
    """One line about an exchange, made anew for each frame; what costs something is looked at every two seconds."""

    def __init__(self, exchange: Exchange, profile: Profile) -> None:
        self._exchange = exchange
        self._profile = profile
        self._looked_at = 0.0
        self._branch = ""
        self._money = ""

    def text(self, width: int) -> str:
        """The line with ANSI colours; where it is too long, what matters least is left out."""
        now = time.monotonic()
        if now - self._looked_at > _LOOK_EVERY_S:
            self._looked_at, self._branch, self._money = now, self._exchange.workspace.branch, self._cost()
        history, model = self._exchange.history, self._exchange.models.processor
        used = (
            f"{history.tokens / model.window:.0%} of {_short(model.window)}" if model.window else _short(history.tokens)
        )
        spent = history.total_usage
        parts = [
            model.label,
            f"context {used}",
            self._profile.name,
            self._branch,
            f"{_short(spent.total_tokens)} tokens",
            f"{spent.cache_read_tokens / spent.input_tokens:.0%} cached" if spent.cache_read_tokens else "",
        ]
        parts += [self._money, self._profile.approval if self._profile.approval != "auto" else ""]
        line = ""
        for part in filter(None, parts):
            longer = f"{line} · {part}" if line else part
            if cell_len(longer) > width - 1:
                break
            line = longer
        return f"\x1b[2m{visible(line)}\x1b[0m"

    def _cost(self) -> str:
        usage = self._exchange.history.usage
        if not any(spent.total_tokens for spent in usage.values()):
            return ""
        cost = cost_usd(usage)
        return "cost unknown" if cost is None else f"${cost:.4f}" if cost else ""


def _short(count: int) -> str:
    return f"{count / 1000:.1f}k" if count >= 1000 else str(count)
