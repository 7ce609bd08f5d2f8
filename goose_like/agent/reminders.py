"""Reminders: texts that goose_like adds at the end of the conversation, so that the cached prefix stays intact."""

from goose_like.agent.compaction.truncate import format_plan
from goose_like.core.events import Reminded, StateSaved
from goose_like.core.history import PROMPT_STATE_KEY

from .journal import Journal
from .toolkit_hooks import ToolkitHooks

STALE_PLAN_STEPS = 8
REPETITION_STEPS = 3


class Reminders:
    """The reminders of one exchange.

    `prompt_digest` identifies the model, its prompt and its tools. With `repeats_plan` a stale plan is repeated; a
    moderator that sends the plan in each request needs no such reminder.
    """

    def __init__(self, journal: Journal, hooks: ToolkitHooks, prompt_digest: str, *, repeats_plan: bool) -> None:
        self._journal = journal
        self._hooks = hooks
        self._prompt_digest = prompt_digest
        self._repeats_plan = repeats_plan

    async def add_before_request(self) -> None:
        """Add what the model should know before its next step."""
        self._add_repetition()
        await self.add_context_updates()
        self._add_stale_plan()
        self.record_prompt(has_thinking=False)

    def add_before_finish(self) -> bool:
        """Add a reason to continue, from a toolkit or from open tasks. Return False when there is none."""
        if text := self._hooks.find_follow_up():
            self._journal.emit(Reminded(text=text))
            return True
        history = self._journal.history
        open_tasks = [task.description for task in history.plan if task.is_open]
        if not open_tasks or history.is_plan_questioned:
            return False
        tasks = "\n".join(f"- {description}" for description in open_tasks)
        text = (
            f"These tasks of your plan are open:\n{tasks}\n"
            "Continue with them; or mark what is done, and say what is not."
        )
        self._journal.emit(Reminded(text=text, reason="open_tasks"))
        return True

    async def add_context_updates(self) -> None:
        """Add the facts of toolkits that differ from what the model knows."""
        facts = await self._hooks.collect_facts()
        known = self._journal.history.facts
        changed = {name: fact for name, fact in facts.items() if fact[1] and known.get(name) != fact[1]}
        if changed:
            text = "\n".join(f"{key}: {value}" for key, value in changed.values())
            new = {name: value for name, (_, value) in changed.items()}
            self._journal.emit(Reminded(text=text, reason="context", facts=new))

    def record_prompt(self, *, has_thinking: bool) -> None:
        """Record which prompt precedes the thinking of the model. Thinking after another prompt is sent no more."""
        known = self._journal.history.state.get(PROMPT_STATE_KEY)
        if known != self._prompt_digest and (known or has_thinking):
            self._journal.emit(StateSaved(toolkit=PROMPT_STATE_KEY, value=self._prompt_digest))

    def _add_repetition(self) -> None:
        # Repetition does not end the turn: the model may wait for something.
        history = self._journal.history
        steps = history.repeated_steps
        if steps and steps % REPETITION_STEPS == 0 and history.messages[-1].role == "tool":
            text = f"Your last {steps} steps made the same calls and had the same results. Do something else, or end."
            self._journal.emit(Reminded(text=text, reason="repetition"))

    def _add_stale_plan(self) -> None:
        history = self._journal.history
        is_open = self._repeats_plan and any(task.is_open for task in history.plan)
        if is_open and history.steps_since_plan >= STALE_PLAN_STEPS:
            done = sum(task.status == "complete" for task in history.plan)
            title = f"Your plan, {done} of {len(history.plan)} tasks complete (update it if it has changed)"
            self._journal.emit(Reminded(text=format_plan(history, title), reason="plan"))
