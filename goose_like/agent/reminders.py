"""Reminders: texts that goose_like adds at the end of the conversation, so that the cached prefix stays intact."""

from goose_like.agent.compaction.summary import format_plan
from goose_like.core.dataclass import dataclass
from goose_like.core.events import Reminded

from .journal import Journal
from .toolkit_hooks import ToolkitHooks

STALE_PLAN_STEPS = 30
"""Steps without a word about the plan. The model still has it, so repeating it during steady work is only noise."""
REPETITION_STEPS = 3
_MISSING_CALL = "You announced a tool call, but none came. Make the call now, or answer without one."


@dataclass(frozen=True, slots=True)
class Reminders:
    """The reminders of one exchange. A stale plan is not repeated when the moderator sends it in each request.

    `follows_plan`: the model carries its plan out. In approval mode `plan` nothing reminds it of the plan.
    """

    _journal: Journal
    _hooks: ToolkitHooks
    repeats_plan: bool
    follows_plan: bool

    async def add_before_request(self) -> None:
        """Add what the model should know before its next step."""
        self._add_repetition()
        await self.add_context_updates()
        self._add_stale_plan()

    async def add_before_finish(self, *, is_last_step: bool) -> bool:
        """Add a reason of a toolkit to continue. Return False when there is none.

        Open tasks are no reason: the work is often done without a last look at the plan. In the last step only a
        repeated follow-up is one: another reminder would turn an answer into a failure.
        """
        text = await self._hooks.find_follow_up(only_repeated=is_last_step)
        if not text:
            return False
        self._journal.emit(Reminded(text=text))
        return True

    def add_hook_context(self) -> None:
        """Add the context that hooks gave for the message before."""
        for text in self._hooks.take_context():
            self._journal.emit(Reminded(text=text))

    def add_missing_call(self) -> bool:
        """Ask for a call that was announced and did not come. Return False if the newest reminder asked for it."""
        last_messages = self._journal.history.messages[-2:-1]
        if any(message.role == "system" and message.text == _MISSING_CALL for message in last_messages):
            return False
        self._journal.emit(Reminded(text=_MISSING_CALL))
        return True

    async def add_context_updates(self) -> None:
        """Add the facts of toolkits that differ from what the model knows."""
        known = self._journal.history.context.facts
        changed: dict[str, str] = {}
        lines: list[str] = []
        for name, value in (await self._hooks.collect_facts()).items():
            if not value or known.get(name) == value:
                continue
            _, _, key = name.partition(".")
            changed[name] = value
            lines.append(f"{key}: {value}")
        if changed:
            self._journal.emit(Reminded(text="\n".join(lines), reason="context", facts=changed))

    def _add_repetition(self) -> None:
        # Repetition does not end the turn: the model may wait for something.
        history = self._journal.history
        steps = history.repeated_step_count
        is_due = steps > 0 and steps % REPETITION_STEPS == 0
        if is_due and history.messages[-1].role == "tool":
            text = f"Your last {steps} steps made the same calls and had the same results. Do something else, or end."
            self._journal.emit(Reminded(text=text, reason="repetition"))

    def _add_stale_plan(self) -> None:
        history = self._journal.history
        is_stale = history.steps_since_plan >= STALE_PLAN_STEPS
        if not (is_stale and self.repeats_plan and self.follows_plan):
            return
        if not any(task.is_open for task in history.plan):
            return
        done = sum(task.status == "complete" for task in history.plan)
        title = f"Your plan, {done} of {len(history.plan)} tasks complete (update it if it has changed)"
        text = format_plan(history, title)
        self._journal.emit(Reminded(text=text, reason="plan"))
