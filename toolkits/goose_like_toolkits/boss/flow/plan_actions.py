"""The planner, and the actions `re_plan` and `update_plan`."""

import asyncio
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from goose_like.agent.view import ExchangeView
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Question, Reminded, StateSaved, Status
from goose_like.toolkit import ToolError, Toolkit, TransientResult, tool
from goose_like_toolkits.boss.memory.budget import format_sections
from goose_like_toolkits.boss.memory.log import cut_line
from goose_like_toolkits.boss.memory.plan_text import extract_plan, mark_steps
from goose_like_toolkits.boss.python_flow import Flow, call_flow, get_flow_name
from goose_like_toolkits.boss.spec import FINISH, PLAN, BossSpec

from .moderator import list_facts
from .rounds import Rounds
from .setup import ControllerSetup

PLAN_STATE = "boss.plan"
"""Key in `History.state` of the newest plan: text, the file's text before, and whether the plan is in the file."""

_CONFLICT = "somebody changed the plan meanwhile; look at it in your memory, and choose again"
_LIST_FILES = 'cd "$1" && rg --no-config --files --max-depth 4 --sort path 2>/dev/null | head -n 200'
_MAX_FILES = 80
_TOOL_CHARACTERS = 160
_NO_STEPS = (FINISH, "re_plan", "update_plan")
"""Actions that are no steps of a plan."""


class PlanActions:
    """The plan of a boss: made by the planner, kept in its file, marked step by step."""

    def __init__(self, host: Toolkit, setup: ControllerSetup, rounds: Rounds) -> None:
        self._host = host
        self._setup = setup
        self._spec = setup.boss.spec
        self._rounds = rounds
        self._mark_lock = asyncio.Lock()  # calls that run in parallel may each mark a step

    async def start(self) -> None:
        """Make a plan if this run has none yet, and finish an interrupted write of the plan file."""
        plan = self._host.session.history.state.get(PLAN_STATE)
        if plan is None and self._spec.planner is not None:
            plan = await self._make_plan("")
        if isinstance(plan, dict) and not plan["is_put"] and not await self._write_plan(plan):
            self._host.notifier.log("somebody wrote another plan meanwhile; that plan stays")

    @tool(time_limit_s=None, kind="think", title="Plan again: {reason}")
    async def re_plan(self, reason: str) -> TransientResult:
        """Have a new plan made, when the plan turned out to be wrong.

        Args:
            reason: The new finding.
        """
        plan = await self._make_plan(reason)
        if not await self._write_plan(plan):
            raise ToolError(_CONFLICT)
        count = len(self._host.session.history.plan)
        return TransientResult(f"your memory has the new plan, with {count} steps", f"a new plan, as {reason}")

    @tool(kind="think", title="Update the plan", display="nothing")
    async def update_plan(
        self,
        done: list[int] = [],  # noqa: B006
        current: int = 0,
        failed: list[int] = [],  # noqa: B006
        plan: str = "",
    ) -> TransientResult:
        """Correct the plan: mark steps by their numbers from 1 on, or write it anew.

        Args:
            done: Steps that are finished and checked.
            current: The step in progress.
            failed: Steps that can't be done.
            plan: A whole new plan, in place of marks.
        """
        before = self._rounds.texts.get(PLAN, "")
        if plan.strip():
            after = extract_plan(plan)
        else:
            after = mark_steps(before, done, current, failed)
        if not await self._rounds.replace(PLAN, after):
            raise ToolError(_CONFLICT)
        tasks = self._host.session.history.plan
        done_count = sum(task.status == "complete" for task in tasks)
        progress = f"{done_count} of {len(tasks)} steps done"
        text = progress
        open_steps = self._rounds.open_steps
        if open_steps and after == before:
            text += f"; the plan said that already: work on step {open_steps[0]}"
        return TransientResult(text, replacement=progress)

    async def mark_steps(self, numbers: Sequence[int]) -> None:
        """Mark steps that the argument `done` of a call names. The call runs even if that fails."""
        async with self._mark_lock:
            try:
                after = mark_steps(self._rounds.texts.get(PLAN, ""), numbers)
                is_marked = await self._rounds.replace(PLAN, after)
                problem = "" if is_marked else _CONFLICT
            except GooseLikeError as error:
                problem = str(error)
        if problem:
            self._host.notifier.notify(Reminded(text=f"`done` {list(numbers)} was not marked: {problem}"))

    async def _make_plan(self, reason: str) -> dict[str, Any]:
        """Ask the planner, and the user if the plan is reviewed. Save the plan as state before anyone writes it."""
        while True:
            answer = await self._ask_planner(self._build_question(reason))
            text = extract_plan(answer)
            if not self._spec.review_plan:
                break
            feedback = await self._ask_user(text)
            if not feedback:
                break
            reason = f"The person says of this plan: {feedback}\n\n{text}"
        plan = {"text": text, "previous": self._rounds.texts.get(PLAN, ""), "is_put": False}
        self._host.notifier.notify(StateSaved(toolkit=PLAN_STATE, value=plan))
        return plan

    async def _ask_planner(self, question: str) -> str:
        """Ask the planner's model or flow. Raise GooseLikeError if there is no plan."""
        self._host.notifier.notify(Status(text="planning"))
        flow = self._setup.boss.parts.get("Planner")
        if flow is None:
            return await self._ask_model(question)
        return await self._ask_flow(flow, question)

    async def _ask_model(self, question: str) -> str:
        host = self._host
        view = host.exchange_view
        if self._setup.models:
            view = ExchangeView(host.session, self._setup.models, host.notifier, host.budget)
        planner = self._spec.planner
        uses_accelerator = planner is not None and planner.model == "accelerator"
        model = view.accelerator if uses_accelerator else view.processor
        sections = [
            ("files", await self._list_files()),
            ("facts", "\n".join(list_facts(host.session.history))),
        ]
        text = f"{format_sections(sections)}\n\n{question}".strip()
        return await model.ask(text, system=self._write_prompt(), purpose="plan")

    async def _ask_flow(self, flow: Flow, question: str) -> str:
        payload = {**self._rounds.build_payload(), "question": f"{self._write_prompt()}\n\n{question}"}
        output = await call_flow(flow, payload)
        text = output
        if isinstance(output, Mapping):
            text = output.get("plan", output.get("result"))
        if not isinstance(text, str) or not text.strip():
            name = get_flow_name(flow)
            raise GooseLikeError(f"the Planner {name!r} gave no plan but {output!r}; return {{'plan': text}}")
        return text

    def _write_prompt(self) -> str:
        """Write the system prompt of the planner, which is the same for each plan of a boss."""
        parts = [read_page("planner.md"), describe_role("The agent is", self._spec)]
        if self._spec.planner:
            parts.append(self._spec.planner.directions)
        return "\n\n".join(filter(None, parts))

    def _build_question(self, reason: str) -> str:
        """Build the question for the planner. `reason` says why the previous plan has to change."""
        sections = [
            ("tools", self._list_tools()),
            *self._rounds.build_sections(),
            ("goal", self._rounds.goal),
            ("reason for a new plan", reason),
        ]
        return format_sections(sections)

    def _list_tools(self) -> str:
        """List what can take a step: the branches with toolkits, and the tools."""
        described = [(name, branch.description) for name, branch in self._spec.branches.items() if branch.toolkits]
        for spec in self._setup.tools.specs:
            described.append((spec.name, cut_line(spec.description, _TOOL_CHARACTERS)))
        lines = []
        for name, text in described:
            if text and name not in _NO_STEPS:
                lines.append(f"- {name}: {text}")
        return "\n".join(lines)

    async def _list_files(self) -> str:
        """List files of the workspace that git does not ignore, without the memory; none if no command can run."""
        workspace = self._host.workspace
        try:
            _, listing = await workspace.run_internal(["bash", "-c", _LIST_FILES, "bash", str(workspace.root)])
        except GooseLikeError:
            return ""
        memory = set(self._rounds.files.paths.values())
        shown = []
        for line in listing.decode(errors="replace").splitlines():
            if workspace.root / line not in memory and not workspace.is_ignored(line):
                shown.append(line)
        if len(shown) > _MAX_FILES:
            shown = [*shown[:_MAX_FILES], "[... and more]"]
        return "\n".join(shown)

    async def _ask_user(self, plan: str) -> str:
        """Return the changes that the user wants, or an empty string."""
        text = "is the plan good? Type the changes you want (Enter: it is good)"
        question = Question(kind="text", subject="plan", text=text, detail=plan.rstrip("\n"))
        answer = await self._host.notifier.ask(question)
        return answer.text

    async def _write_plan(self, plan: dict[str, Any]) -> bool:
        is_put = await self._rounds.replace(PLAN, plan["text"], previous=plan["previous"])
        self._host.notifier.notify(StateSaved(toolkit=PLAN_STATE, value={**plan, "is_put": True}))
        return is_put


def describe_role(start: str, spec: BossSpec) -> str:
    """Describe a boss by its name and description, or return an empty string for one without a description."""
    if not spec.description:
        return ""
    return f"{start} {spec.name}: {spec.description}"


def read_page(name: str) -> str:
    """Read a prompt from this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()
