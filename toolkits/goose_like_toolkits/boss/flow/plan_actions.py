"""The plan: made by the planner, kept in its file, marked step by step."""

from typing import Any

from goose_like.agent.subagent import left_of, narrowed_limits
from goose_like.config.profile import Limits
from goose_like.core.events import Question, StateSaved
from goose_like.core.history import INTERRUPTED, History
from goose_like.core.tool import current_call
from goose_like.providers.base import ModelPair
from goose_like.toolkit import ToolError, TransientResult, tool
from goose_like_toolkits.boss.memory.log import cut
from goose_like_toolkits.boss.memory.plan_text import as_plan, marked
from goose_like_toolkits.boss.spec import FINISH, PLAN

from .planner import plan_question, planned
from .rounds import Rounds

PLANNED = "boss.plan"
"""The key of the newest plan: its number, its text, what the file held before, and whether it was put there."""

_CHANGED = "somebody changed the plan meanwhile; look at it in your memory, and choose again"


class Planning(Rounds):
    """The actions `re_plan` and `update_plan`, and the plan that a run begins with."""

    async def begin(self) -> None:
        """After that the Planner, where this run has no plan yet."""
        await super().begin()
        plan = self.session.history.state.get(PLANNED)
        if plan is None and self._spec.planner is not None:
            plan = await self._new_plan("")
        if isinstance(plan, dict) and not plan["is_put"] and not await self._put_plan(plan):
            self.notifier.log("the plan stays as somebody wrote it meanwhile")

    @tool(alone=True, time_limit_s=None)
    async def re_plan(self, reason: str) -> TransientResult:
        """Have a new plan made, when the plan turned out to be wrong.

        Args:
            reason: What was found out.
        """
        plan = await self._new_plan(reason)
        if not await self._put_plan(plan):
            raise ToolError(_CHANGED)
        return TransientResult(f"the plan from now on:\n{plan['text']}", replacement=f"a new plan, as {reason}")

    @tool(alone=True)
    async def update_plan(
        self,
        done: list[int],
        current: int = 0,
        failed: list[int] = [],  # noqa: B006
        plan: str = "",
    ) -> TransientResult:
        """Mark steps of the plan that were done and checked, by their numbers from 1 on.

        Args:
            done: Steps that are done now.
            current: The step that is worked on now.
            failed: Steps that can't be done.
            plan: The whole plan anew, in place of marks.
        """
        before = self._notes.texts.get(PLAN, "")
        after = as_plan(plan) if plan.strip() else marked(before, done, current, failed)
        if after == before and not self._was_cut_off:
            how = f"; when it is done, send `done`: [{left[0]}]" if (left := self._open_steps) else ""
            raise ToolError(f"the plan says that already; do the next open step{how}")
        if not await self._notes.put(PLAN, after):
            raise ToolError(_CHANGED)
        steps = self.session.history.plan
        count = sum(step.status == "complete" for step in steps)
        return TransientResult(f"the plan from now on:\n{after}", replacement=f"{count} of {len(steps)} steps done")

    @property
    def _was_cut_off(self) -> bool:
        """Whether the newest action was, so that what is chosen now may have been done already."""
        results = (message.tool_results for message in reversed(self.session.history.messages) if message.tool_results)
        return any(result.output == INTERRUPTED for result in next(results, ()))

    async def _new_plan(self, reason: str) -> dict[str, Any]:
        """Recorded before it is put into its file, so that it is put there whatever happens between."""
        known = self.session.history.state.get(PLANNED)
        number = 1 + (int(str(known["number"])) if isinstance(known, dict) else 0)
        part = self._spec.planner
        view = self.exchange_view
        is_fast = part is not None and part.model == "accelerator"
        model = self._boss.planner or (view.accelerator if is_fast else view.processor).model
        tools = [(each.name, cut(each.spec.description, 160)) for each in self.tools()]
        branches = [(name, branch.description) for name, branch in self._spec.branches.items() if branch.toolkits]
        actions = "\n".join(f"- {name}: {about}" for name, about in [*branches, *tools] if name != FINISH)
        sections = [("Goal", self._goal), *self._notes.told()]
        name, text = f"plan-{number}", ""
        while True:
            session = self.session.nested(name)
            text = await planned(
                plan_question(part.directions if part else "", sections, actions, reason),
                profile=self._profile,
                notifier=self.notifier,
                session=session,
                within=self.workspace,
                limits=self._limits_left(session.history),
                models=ModelPair(model, view.accelerator.model),
                call_id=current_call.get(name),
            )
            feedback = await self._feedback(text) if self._spec.review_plan else ""
            if not feedback:
                break
            name += "-again"
            reason = f"The person says of this plan: {feedback}\n\n{text}"
        plan = {"number": number, "text": text, "was": self._notes.texts.get(PLAN, ""), "is_put": False}
        self.notifier.notify(StateSaved(toolkit=PLANNED, value=plan))
        return plan

    async def _feedback(self, plan: str) -> str:
        """What the person would have otherwise in a plan; '' where it may stay, or nobody is there."""
        text = "is the plan good? Say what should be otherwise (Enter: it is good)"
        question = Question(kind="words", subject="plan", text=text, detail=plan.rstrip("\n"))
        return (await self.notifier.ask(question)).text

    async def _put_plan(self, plan: dict[str, Any]) -> bool:
        is_put = await self._notes.put(PLAN, plan["text"], was=plan["was"])
        self.notifier.notify(StateSaved(toolkit=PLANNED, value={**plan, "is_put": True}))
        return is_put

    def _limits_left(self, within: History) -> Limits:
        left = left_of(self.limits, self.session.history, within=within)
        return narrowed_limits(self.limits, {name: each for name, each in left.items() if name != "steps"})
