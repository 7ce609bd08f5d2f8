"""The status line: model, context, profile, branch, tokens, cost."""

import time

from rich.cells import cell_len

from goose_like.agent.exchange import Exchange
from goose_like.config.profile import Profile
from goose_like.providers.prices import compute_cost_usd
from goose_like.terminal.escape import escape_controls

_REFRESH_S = 2.0


class StatusLine:
    """A line about an exchange, formatted for each frame; slow values are refreshed every two seconds."""

    def __init__(self, exchange: Exchange, profile: Profile) -> None:
        self._exchange = exchange
        self._profile = profile
        self._refreshed_at = 0.0
        self._branch = ""
        self._money = ""

    def format(self, width: int) -> str:
        """Return the line with ANSI colours, without the last parts if it is too long."""
        now = time.monotonic()
        if now - self._refreshed_at > _REFRESH_S:
            self._refreshed_at, self._branch, self._money = now, self._exchange.workspace.branch, self._format_cost()
        history, model = self._exchange.history, self._exchange.models.processor
        used = (
            f"{history.context_tokens / model.window:.0%} of {_shorten(model.window)}"
            if model.window
            else _shorten(history.context_tokens)
        )
        usage = history.total_usage
        parts = [
            model.label,
            f"context {used}",
            self._profile.name,
            self._branch,
            f"{_shorten(usage.total_tokens)} tokens",
            f"{usage.cache_read_tokens / usage.input_tokens:.0%} cached" if usage.cache_read_tokens else "",
        ]
        parts += [self._money, self._profile.approval if self._profile.approval != "auto" else ""]
        line = ""
        for part in filter(None, parts):
            longer = f"{line} · {part}" if line else part
            if cell_len(longer) > width - 1:
                break
            line = longer
        return f"\x1b[2m{escape_controls(line)}\x1b[0m"

    def _format_cost(self) -> str:
        usage = self._exchange.history.usage
        if not any(model_usage.total_tokens for model_usage in usage.values()):
            return ""
        cost = compute_cost_usd(usage)
        return "cost unknown" if cost is None else f"${cost:.4f}" if cost else ""


def _shorten(count: int) -> str:
    return f"{count / 1000:.1f}k" if count >= 1000 else str(count)
