"""The actions `re_plan` and `update_plan`."""

from typing import Any

from goose_like.core.events import Question, StateSaved
from goose_like.core.history import INTERRUPTED
from goose_like.toolkit import ToolError, Toolkit, TransientResult, tool
from goose_like_toolkits.boss.memory.log import cut_line
from goose_like_toolkits.boss.memory.plan_text import extract_plan, mark_steps
from goose_like_toolkits.boss.spec import FINISH, PLAN

from .planner import ask_planner, build_question
from .rounds import Rounds
from .setup import ControllerSetup

PLAN_STATE = "boss.plan"
"""Key in `History.state` of the newest plan: number, text, the file's text before, and whether it is in the file."""

_CONFLICT = "somebody changed the plan meanwhile; look at it in your memory, and choose again"


class PlanActions:
    """The plan of a boss: made by the planner, kept in its file, marked step by step."""

    def __init__(self, host: Toolkit, setup: ControllerSetup, rounds: Rounds) -> None:
        self._host = host
        self._setup = setup
        self._spec = setup.boss.spec
        self._rounds = rounds

    async def start(self) -> None:
        """Make a plan if this run has none yet, and finish an interrupted write of the plan file."""
        plan = self._host.session.history.state.get(PLAN_STATE)
        if plan is None and self._spec.planner is not None:
            plan = await self._make_plan("")
        if isinstance(plan, dict) and not plan["is_put"] and not await self._write_plan(plan):
            self._host.notifier.log("somebody wrote another plan meanwhile; that plan stays")

    @tool(exclusive=True, time_limit_s=None)
    async def re_plan(self, reason: str) -> TransientResult:
        """Have a new plan made, when the plan turned out to be wrong.

        Args:
            reason: The new finding.
        """
        plan = await self._make_plan(reason)
        if not await self._write_plan(plan):
            raise ToolError(_CONFLICT)
        return TransientResult(f"the plan from now on:\n{plan['text']}", replacement=f"a new plan, as {reason}")

    @tool(exclusive=True)
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
            plan: A whole new plan, in place of marks.
        """
        memory = self._rounds.memory
        before = memory.texts.get(PLAN, "")
        after = extract_plan(plan) if plan.strip() else mark_steps(before, done, current, failed)
        if after == before and not self._was_interrupted:
            open_steps = self._rounds.open_steps
            advice = f"; when it is done, send `done`: [{open_steps[0]}]" if open_steps else ""
            raise ToolError(f"the plan says that already; do the next open step{advice}")
        if not await memory.replace(PLAN, after):
            raise ToolError(_CONFLICT)
        tasks = self._host.session.history.plan
        count = sum(task.status == "complete" for task in tasks)
        return TransientResult(f"the plan from now on:\n{after}", replacement=f"{count} of {len(tasks)} steps done")

    @property
    def _was_interrupted(self) -> bool:
        # After an interrupted action, the change may already be in the file.
        messages = reversed(self._host.session.history.messages)
        results = next((message.tool_results for message in messages if message.tool_results), ())
        return any(result.output == INTERRUPTED for result in results)

    async def _make_plan(self, reason: str) -> dict[str, Any]:
        """Ask the planner, and the user if the plan is reviewed. Save the plan as state before anyone writes it."""
        host, spec = self._host, self._spec
        known = host.session.history.state.get(PLAN_STATE)
        number = 1 + (int(str(known["number"])) if isinstance(known, dict) else 0)
        directions = spec.planner.directions if spec.planner else ""
        sections = [("Goal", self._rounds.goal), *self._rounds.memory.build_sections()]
        name = f"plan-{number}"
        while True:
            question = build_question(directions, sections, self._list_actions(), reason)
            text = await ask_planner(host, self._setup, question, name)
            feedback = await self._ask_user(text) if spec.review_plan else ""
            if not feedback:
                break
            name += "-again"
            reason = f"The person says of this plan: {feedback}\n\n{text}"
        previous = self._rounds.memory.texts.get(PLAN, "")
        plan = {"number": number, "text": text, "previous": previous, "is_put": False}
        host.notifier.notify(StateSaved(toolkit=PLAN_STATE, value=plan))
        return plan

    def _list_actions(self) -> str:
        branches = [(name, branch.description) for name, branch in self._spec.branches.items() if branch.toolkits]
        tools = [(each.name, cut_line(each.spec.description, 160)) for each in self._host.tools()]
        return "\n".join(f"- {name}: {description}" for name, description in [*branches, *tools] if name != FINISH)

    async def _ask_user(self, plan: str) -> str:
        """Return the changes that the user wants, or an empty string."""
        text = "is the plan good? Type the changes you want (Enter: it is good)"
        question = Question(kind="text", subject="plan", text=text, detail=plan.rstrip("\n"))
        return (await self._host.notifier.ask(question)).text

    async def _write_plan(self, plan: dict[str, Any]) -> bool:
        is_put = await self._rounds.memory.replace(PLAN, plan["text"], previous=plan["previous"])
        self._host.notifier.notify(StateSaved(toolkit=PLAN_STATE, value={**plan, "is_put": True}))
        return is_put
