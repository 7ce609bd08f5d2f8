"""The planner, and the actions `re_plan` and `update_plan`."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from goose_like.agent.view import ExchangeView
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Question, StateSaved, Status
from goose_like.toolkit import ToolError, Toolkit, TransientResult, tool
from goose_like_toolkits.boss.memory.log import cut_line
from goose_like_toolkits.boss.memory.plan_text import extract_plan, mark_steps
from goose_like_toolkits.boss.python_flow import call_flow, get_flow_name
from goose_like_toolkits.boss.spec import FINISH, PLAN

from .rounds import Rounds
from .setup import ControllerSetup

PLAN_STATE = "boss.plan"
"""Key in `History.state` of the newest plan: text, the file's text before, and whether the plan is in the file."""

_ROLE = "You plan the work of an agent."
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

    @tool(time_limit_s=None)
    async def re_plan(self, reason: str) -> TransientResult:
        """Have a new plan made, when the plan turned out to be wrong.

        Args:
            reason: The new finding.
        """
        plan = await self._make_plan(reason)
        if not await self._write_plan(plan):
            raise ToolError(_CONFLICT)
        return TransientResult(f"the plan from now on:\n{plan['text']}", replacement=f"a new plan, as {reason}")

    @tool
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
        before = self._rounds.texts.get(PLAN, "")
        after = extract_plan(plan) if plan.strip() else mark_steps(before, done, current, failed)
        if not await self._rounds.replace(PLAN, after):
            raise ToolError(_CONFLICT)
        tasks, open_steps = self._host.session.history.plan, self._rounds.open_steps
        count = sum(task.status == "complete" for task in tasks)
        heading = "the plan from now on:"
        if after == before and open_steps:
            heading = f"the plan said that already; do step {open_steps[0]}, then send `done`: [{open_steps[0]}]"
        return TransientResult(f"{heading}\n{after}", replacement=f"{count} of {len(tasks)} steps done")

    async def _make_plan(self, reason: str) -> dict[str, Any]:
        """Ask the planner, and the user if the plan is reviewed. Save the plan as state before anyone writes it."""
        while True:
            text = extract_plan(await self._ask_planner(self._build_question(reason)))
            feedback = await self._ask_user(text) if self._spec.review_plan else ""
            if not feedback:
                break
            reason = f"The person says of this plan: {feedback}\n\n{text}"
        plan = {"text": text, "previous": self._rounds.texts.get(PLAN, ""), "is_put": False}
        self._host.notifier.notify(StateSaved(toolkit=PLAN_STATE, value=plan))
        return plan

    async def _ask_planner(self, question: str) -> str:
        """Ask the planner's model or flow. Raise GooseLikeError if there is no plan."""
        host, models, planner = self._host, self._setup.models, self._spec.planner
        host.notifier.notify(Status(text="planning"))
        flow = self._setup.boss.parts.get("Planner")
        if flow is None:
            view = ExchangeView(host.session, models, host.notifier) if models else host.exchange_view
            model = view.accelerator if planner and planner.model == "accelerator" else view.processor
            return await model.ask(question, system=_ROLE, purpose="plan")
        output = await call_flow(flow, {**self._rounds.build_payload(), "question": question})
        text = output.get("plan", output.get("result")) if isinstance(output, Mapping) else output
        if not isinstance(text, str) or not text.strip():
            name = get_flow_name(flow)
            raise GooseLikeError(f"the Planner {name!r} gave no plan but {output!r}; return {{'plan': text}}")
        return text

    def _build_question(self, reason: str) -> str:
        """Build the question for the planner. `reason` says why the previous plan has to change."""
        rounds, directions = self._rounds, self._spec.planner.directions if self._spec.planner else ""
        sections = [
            ("Possible actions", self._list_actions()),
            ("Goal", rounds.goal),
            *rounds.build_sections(),
            ("Why another plan is needed", reason),
        ]
        context = (f"# {title}\n{text}" for title, text in sections if text)
        return "\n\n".join(filter(None, [*context, read_page("planner.md"), directions]))

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
        is_put = await self._rounds.replace(PLAN, plan["text"], previous=plan["previous"])
        self._host.notifier.notify(StateSaved(toolkit=PLAN_STATE, value={**plan, "is_put": True}))
        return is_put


def read_page(name: str) -> str:
    """Read a prompt from this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()
