"""The tool `run_task`: a turn of goose_like's own agent, within the budget of the server."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from goose_like.agent.budget import narrow_limits
from goose_like.agent.exchange import Exchange
from goose_like.core.message import Message, join_answers
from goose_like.core.tool import ToolError, tool
from goose_like.providers.prices import compute_cost_usd

_OPTIONS = {"steps": "--max-steps", "tokens": "--max-tokens", "cost_usd": "--max-cost"}


class ServerBudget:
    """What the models of a server may take for all calls together. `limits` have the names of `Limits`."""

    def __init__(self, exchange: Exchange, limits: Mapping[str, float | None]) -> None:
        self._exchange = exchange
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        self._spent: dict[str, float] = dict.fromkeys(_OPTIONS, 0)

    @contextmanager
    def draw(self, *, free_steps: int = 0) -> Iterator[None]:
        """Keep the turn of the block within what the calls before it left, and count what it takes.

        `free_steps` of the turn are no requests: a call that the client chose counts as a step in the history.
        """
        exchange = self._exchange
        limits = exchange.budget.limits
        turn_count = exchange.history.turn_count
        rest = {name: max(0, limit - self._spent[name]) for name, limit in self._limits.items()}
        if "steps" in rest:
            rest["steps"] += free_steps
        exchange.budget.limits = narrow_limits(limits, rest)
        try:
            yield
        finally:
            exchange.budget.limits = limits
            if exchange.history.turn_count > turn_count:
                self._count_spent(free_steps)

    def describe_end(self) -> str:
        """Describe the limit that is used up, or return an empty text."""
        for name, limit in self._limits.items():
            if self._spent[name] >= limit:
                option = _OPTIONS[name]
                return f"the calls of this server have used up {option} {limit}; start it with a higher one"
        return ""

    def _count_spent(self, free_steps: int) -> None:
        usage = self._exchange.history.usage
        self._spent["steps"] += max(0, usage.turn_step_count - free_steps)
        self._spent["tokens"] += usage.turn_total.total_tokens
        self._spent["cost_usd"] += compute_cost_usd(usage.turn_by_model) or 0


class TaskRunner:
    """Runs tasks in the conversation of an exchange, within the limits that its budget has at their start."""

    def __init__(self, exchange: Exchange, budget: ServerBudget) -> None:
        self._exchange = exchange
        self._budget = budget

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
        used_up = self._budget.describe_end()
        if used_up:
            raise ToolError(used_up)
        wanted = {"steps": max_steps, "tokens": max_tokens, "cost_usd": max_cost_usd}
        exchange = self._exchange
        exchange.budget.limits = narrow_limits(exchange.budget.limits, wanted)  # until this call ends
        exchange.budget.check_prices([model.price_label for model in exchange.models.models])
        # A whole message, because the task is not the person's: it names no files, and attaches none.
        end = await exchange.reply(Message.user(task))
        answer = end.answer or join_answers(exchange.history.messages[exchange.history.turns[-1].start :])
        note = f"[{end.reason.replace('_', ' ')}: {end.detail}]" if end.detail else ""
        text = "\n\n".join(filter(None, (answer, note)))
        if end.reason != "stop":
            raise ToolError(text or end.reason)
        return text
