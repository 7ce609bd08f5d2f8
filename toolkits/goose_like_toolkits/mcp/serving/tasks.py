"""The tool `run_task`: a turn of goose_like's own agent, within the budget of the server."""

from collections.abc import Mapping
from typing import Any

from goose_like.agent.budget import narrow_limits
from goose_like.agent.exchange import Exchange
from goose_like.config.profile import Limits
from goose_like.core.message import join_answers
from goose_like.core.tool import ToolError, tool
from goose_like.providers.prices import compute_cost_usd

_OPTIONS = {"steps": "--max-steps", "tokens": "--max-tokens", "cost_usd": "--max-cost"}


class TaskRunner:
    """Runs tasks in the conversation of an exchange. `budget` limits all tasks together, by the names of `Limits`."""

    def __init__(self, exchange: Exchange, budget: Mapping[str, float | None]) -> None:
        self._exchange = exchange
        self._limits = exchange.budget.limits
        self._budget = {name: limit for name, limit in budget.items() if limit is not None}
        self._spent: dict[str, float] = dict.fromkeys(_OPTIONS, 0)

    @tool(time_limit_s=None)
    async def run_task(
        self,
        task: str,
        max_steps: int | None = None,
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
    ) -> str:
        """Let the agent goose_like do a task in this folder, with its own model and tools, and return its answer.

        All tasks are one conversation: a task may refer to those before.

        Args:
            task: What to do, and how to see that it is done.
            max_steps: The most model requests that the task may take.
            max_tokens: The most input and output tokens that the task may take.
            max_cost_usd: The most US dollars that the task may take.
        """
        wanted = {"steps": max_steps, "tokens": max_tokens, "cost_usd": max_cost_usd}
        exchange = self._exchange
        limits = narrow_limits(self._find_rest(), wanted)
        turn_count = exchange.history.turn_count
        try:
            exchange.budget.limits = limits
            exchange.budget.check_prices([model.price_label for model in exchange.models.models])
            end = await exchange.reply(task)
        finally:
            exchange.budget.limits = self._limits
            if exchange.history.turn_count > turn_count:
                self._count_spent()
        answer = end.answer or join_answers(exchange.history.messages[exchange.history.turns[-1].start :])
        note = f"[{end.reason.replace('_', ' ')}: {end.detail}]" if end.detail else ""
        text = "\n\n".join(filter(None, (answer, note)))
        if end.reason != "stop":
            raise ToolError(text or end.reason)
        return text

    def _find_rest(self) -> Limits:
        """Return the limits of the next task: those of the profile, and what the tasks before left.

        Raises:
            ToolError: nothing is left.
        """
        rest: dict[str, Any] = {}
        for name, limit in self._budget.items():
            rest[name] = limit - self._spent[name]
            if rest[name] <= 0:
                option = _OPTIONS[name]
                raise ToolError(f"the tasks of this server have used up {option} {limit:g}; start it with a higher one")
        return narrow_limits(self._limits, rest)

    def _count_spent(self) -> None:
        usage = self._exchange.history.usage
        self._spent["steps"] += usage.turn_step_count
        self._spent["tokens"] += usage.turn_total.total_tokens
        self._spent["cost_usd"] += compute_cost_usd(usage.turn_by_model) or 0
