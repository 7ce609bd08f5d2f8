"""ControllerToolkit: what a boss's controller can do beside its branches' tools, and its memory from round to round."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from itertools import takewhile
from typing import Any

from pydantic import BaseModel, ConfigDict

from goose_like.errors import GooseLikeError, ProfileError
from goose_like.events import Question, StateSaved
from goose_like.exchange import OPEN
from goose_like.history import INTERRUPTED, History
from goose_like.nested import left_of, narrowed_limits
from goose_like.output import Output
from goose_like.plugins import did_you_mean
from goose_like.profile import Limits, Profile
from goose_like.provider import Models
from goose_like.tool import Marks, Tool, ToolSpec, current_call, invoke
from goose_like.toolkit import Final, Notifier, Passing, Requirements, ToolError, Toolkit, tool

from . import library
from .boss import Boss, Run
from .entries import cut, entries
from .executor import detected, executed
from .lower import worked
from .memory import Memory
from .notes import Notes
from .plan_text import as_plan, marked
from .planner import plan_question, planned
from .program import Ran, run
from .spec import ACTIONS, FINISH, LIBRARY, PLAN, Branch

DRAFT = "boss.draft"
"""The key in `History.state` of the code that `write_code` made and `save_code` saves."""
PLANNED = "boss.plan"
"""The key of the newest plan: its number, its text, what the file held before, and whether it was put there."""

_MOST_WORDS = 3
_SAME_TOLD = 2
_TRIAL_S = 120.0
_ROOM_BYTES = 8_000
_CHANGED = "somebody changed the plan meanwhile; look at it in your memory, and choose again"


class _Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


class ControllerToolkit(Toolkit):
    """What a boss gives its controller; in a profile stands `boss`."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        if not isinstance(self.config.get("boss"), Boss):
            raise ProfileError("it is what a boss gives its controller; put `boss` into the profile")
        self._boss: Boss = self.config["boss"]
        self._profile: Profile = self.config["profile"]
        self._line: list[Run] = self.config["line"]
        self._spec = self._boss.spec
        memory = Memory(self._spec.memory_files, self.workspace, self.session, self.config.get("memory"))
        self._notes = Notes(
            memory,
            self.session.history,
            notifier,
            self.exchange_view,
            reading=self._boss.reading,
            writing=self._boss.writing,
        )

    # --- what the model is told

    def prompt(self) -> str:
        """What a controller does, and what this one is for."""
        page = files(__package__).joinpath("controller.md").read_text(encoding="utf-8").strip()
        about = f"You are the controller of {self._spec.name}: {self._spec.description}"
        return "\n\n".join(filter(None, [page, about * bool(self._spec.description), self._spec.controller.directions]))

    def tools(self) -> tuple[Tool, ...]:
        """The actions that the branches name and those that every controller has, flows and bosses as one tool each."""
        branches = self._spec.branches
        made: dict[str, Tool] = {}
        for own in super().tools():
            if own.name in (*branches, FINISH):
                about = branches.get(own.name, Branch()).description or own.spec.description
                made[own.name] = self._chosen(replace(own, spec=replace(own.spec, description=about)))
        for name, branch in branches.items():
            if name in self._boss.flows:
                made[name] = self._chosen(_flow_tool(name, branch))
            elif self._boss.below(name):
                made[name] = self._chosen(_boss_tool(name, branch))
        return tuple(made.values())

    def live(self) -> list[tuple[str, str]]:
        """The memory, and where in its rounds the controller is."""
        history = self.session.history
        had = sum(message.role == "assistant" for message in history.messages)
        last = " It is the last one: finish." if had + 1 == self._spec.max_round else ""
        left = self._open_steps
        step = "Check whether the goal is reached; then finish."
        if left:
            step = f"Work on step {left[0]} of the plan: {history.plan[left[0] - 1].description}"
        now = f"Round {had + 1} of {self._spec.max_round}.{last} {step}{self._again()}"
        return [*self._notes.told(), ("Now", now)]

    async def begin(self) -> None:
        """MemoryReading, then the Planner, where this run has no plan yet."""
        await self._notes.write(_first_line(self._goal))
        await self._notes.read()
        plan = self.session.history.state.get(PLANNED)
        if plan is None and self._spec.planner is not None:
            plan = await self._new_plan("")
        if isinstance(plan, dict) and not plan["is_put"] and not await self._put_plan(plan):
            self.notifier.log("the plan stays as somebody wrote it meanwhile")

    async def news(self) -> Mapping[str, str]:
        """MemoryWriting and MemoryReading, ahead of each round; what it gives is what others changed."""
        if not self.session.history.turns:
            return {}
        faults: dict[str, None] = {}
        for step in (self._notes.write, self._notes.read):
            try:
                await step()
            except GooseLikeError as error:
                faults[str(error)] = None
        told = {"memory": f"not as it should be: {'; '.join(faults)}"} if faults else {}
        edits = self._notes.edits().items()
        return told | {self._spec.memory_files[name]: f"changed by somebody else:\n{diff}" for name, diff in edits}

    def demand(self) -> str | None:
        """An action, for some times in a turn; then it is given up."""
        history = self.session.history
        answers = [message for message in history.messages[history.turns[-1].start :] if message.role == "assistant"]
        idle = list(takewhile(lambda message: not message.tool_calls, reversed(answers)))
        if len(idle) > _MOST_WORDS:
            return None
        names = ", ".join(each.name for each in self.tools())
        return (
            f"You named no action, and words alone do nothing. Call one: {names} or a tool; `finish` when you are done."
        )

    async def close(self) -> None:
        """What was done in the last round goes into the log, too."""
        if self.session.history.turns:
            await self._notes.write()

    # --- the actions that every boss knows

    @tool(alone=True)
    async def finish(self, result: str, summary: str) -> Final:
        """End the work: the goal is reached, or can't be.

        Args:
            result: All that who asked for it will read. Where it failed, why.
            summary: One sentence for their log.
        """
        return Final(result, later=summary)

    @tool(alone=True)
    async def re_plan(self, reason: str) -> Passing:
        """Have a new plan made, when the plan turned out to be wrong.

        Args:
            reason: What was found out.
        """
        plan = await self._new_plan(reason)
        if not await self._put_plan(plan):
            raise ToolError(_CHANGED)
        return Passing(f"the plan from now on:\n{plan['text']}", later=f"a new plan, as {reason}")

    @tool(alone=True)
    async def update_plan(
        self,
        done: list[int],
        current: int = 0,
        failed: list[int] = [],  # noqa: B006
        plan: str = "",
    ) -> Passing:
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
        return Passing(f"the plan from now on:\n{after}", later=f"{count} of {len(steps)} steps done")

    @tool(alone=True, time_limit_s=None)
    async def ask_user(self, question: str) -> str:
        """Ask the person something that only they know.

        Args:
            question: In one or two sentences.
        """
        answer = await self.notifier.ask(Question(kind="words", subject=self._spec.name, text=question))
        if answer.by == "nobody":
            raise ToolError("nobody is there to answer; decide yourself, and say in `finish` what you took for granted")
        return (
            f"the person says: {answer.words}" if answer.words.strip() else "the person gave no answer; decide yourself"
        )

    @tool(alone=True)
    async def write_code(self, code: str, tests: str = "") -> Passing:
        """Write functions for the code library as a draft, and try them. `save_code` keeps the newest draft.

        Args:
            code: Python definitions, with docstrings.
            tests: Statements that fail if the code is wrong, such as `assert add(1, 2) == 3`.
        """
        names = library.defined(code)
        self._saved(code, replace=True)
        if tests.strip():
            ran = await self._run(f"{code}\n\n{tests}")
            if not ran.is_well:
                raise ToolError(f"the tests fail; send the code anew:\n{ran.told}")
        self.notifier.notify(StateSaved(toolkit=DRAFT, value=code))
        how = "passes its tests" if tests.strip() else "can be read; it was not run"
        return Passing(f"the draft of {names} {how}; `save_code` keeps it", later=f"a draft of {names} {how}")

    @tool(alone=True)
    async def save_code(self, replace: bool = False) -> Passing:
        """Put the newest draft into the code library.

        Args:
            replace: Whether functions that are there already may be replaced.
        """
        code = self.session.history.state.get(DRAFT)
        if not isinstance(code, str):
            raise ToolError("there is no draft; make one with `write_code`")
        after = self._saved(code, replace=replace)
        if not await self._notes.put(LIBRARY, after):
            raise ToolError("somebody changed the library meanwhile; look at it in your memory, and save again")
        names = library.defined(code)
        return Passing(
            f"{names}: in the library; `from {self._module} import ...` brings it", later=f"{names} is in the library"
        )

    @tool(alone=True, time_limit_s=None)
    async def run_code(self, code: str) -> str:
        """Run Python in a fresh process. The library is there to be imported, as it is now.

        Args:
            code: A script; only what it prints is seen.
        """
        ran = await self._run(code)
        if not ran.is_well:
            raise ToolError(ran.told)
        return ran.told

    # --- branches

    def _chosen(self, tool: Tool) -> Tool:
        """A branch as a tool. What a subclass of the Python API says stands between the choice and what is done."""

        async def act(**arguments: Any) -> Any:
            if self._boss.detect is None:
                return await self._branch(tool.name, arguments)
            said = self.session.history.messages[-1].text
            choice = {"command": tool.name, "command_args": arguments, "thought": said}
            payload = await detected(self._boss.detect, choice)
            if payload.get(self._spec.early_exit_key):
                return _early(payload)
            return await self._branch(str(payload.get("branch", "")), payload.get("branch_input_data") or {})

        return replace(tool, function=act)

    async def _branch(self, name: str, payload: Mapping[str, Any]) -> Any:
        """What a branch gives to this.

        Raises:
            ToolError: there is none of that name, or it failed; the text is for the controller.
        """
        if flow := self._boss.flows.get(name):
            branch = self._spec.branches.get(name, Branch())
            result, summary, given = await executed(flow, dict(payload), branch)
            if given.get(self._spec.early_exit_key):
                return _early({"result": result, "summary": summary})
            return Passing(result, later=summary) if summary else result
        if boss := self._boss.below(name):
            goal = str(payload.get("goal", "")).strip()
            if not goal:
                raise ToolError(f"{name} needs a `goal`: all that it must know, as it sees nothing else")
            return await worked(boss, goal, self, self._profile, self._line, self._notes.memory)
        if name in ACTIONS and name in (*self._spec.branches, FINISH):
            return await invoke(getattr(self, name), dict(payload))
        known = [*self._spec.branches, FINISH]
        raise ToolError(f"no branch {name!r}; {did_you_mean(name, known)}")

    @property
    def _open_steps(self) -> list[int]:
        """The numbers of the plan's steps that are still to be done."""
        return [number for number, step in enumerate(self.session.history.plan, 1) if step.status in OPEN]

    def _again(self) -> str:
        """What is said to a controller that goes round in circles."""
        done = [(entry.call.name, entry.call.arguments, entry.result.output) for entry in entries(self.session.history)]
        times = sum(1 for _ in takewhile(lambda each: each == done[-1], reversed(done)))
        if times < _SAME_TOLD:
            return ""
        left = self._open_steps if "update_plan" in self._spec.branches else []
        mark = f" If step {left[0]} is done, call update_plan with `done`: [{left[0]}]." if left else ""
        return f"\nThe newest {times} actions were one and the same, and so was their result: do something else.{mark}"

    # --- the plan, and trying code

    @property
    def _was_cut_off(self) -> bool:
        """Whether the newest action was, so that what is chosen now may have been done already."""
        results = (message.tool_results for message in reversed(self.session.history.messages) if message.tool_results)
        return any(result.output == INTERRUPTED for result in next(results, ()))

    @property
    def _goal(self) -> str:
        history = self.session.history
        return history.messages[history.turns[0].start].text

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
                models=Models(model, view.accelerator.model),
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
        return (await self.notifier.ask(question)).words

    async def _put_plan(self, plan: dict[str, Any]) -> bool:
        is_put = await self._notes.put(PLAN, plan["text"], was=plan["was"])
        self.notifier.notify(StateSaved(toolkit=PLANNED, value={**plan, "is_put": True}))
        return is_put

    def _limits_left(self, within: History) -> Limits:
        left = left_of(self.limits, self.session.history, within=within)
        return narrowed_limits(self.limits, {name: each for name, each in left.items() if name != "steps"})

    @property
    def _module(self) -> str:
        return library.module_name(self._notes.memory.path(LIBRARY))

    def _saved(self, code: str, *, replace: bool) -> str:
        return library.saved(self._notes.texts.get(LIBRARY, ""), code, replace=replace, module=self._module)

    async def _run(self, code: str) -> Ran:
        memory = self._notes.memory
        file = memory.path(LIBRARY) if LIBRARY in self._spec.memory_files else None
        source = self._notes.texts.get(LIBRARY, "") if file and memory.is_ours(LIBRARY) else None
        output = Output(self.session.output_of(current_call.get("code")), _ROOM_BYTES)
        return await run(code, file, self.workspace, output, self.progress, time_limit_s=_TRIAL_S, source=source)


def _flow_tool(name: str, branch: Branch) -> Tool:
    properties: dict[str, Any] = {parameter: {} for parameter in branch.parameters}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(ToolSpec(name, branch.description or name, schema), _flow_tool, _Anything, Marks(alone=True))


class _Goal(BaseModel):
    model_config = ConfigDict(extra="forbid")
    goal: str


def _boss_tool(name: str, branch: Branch) -> Tool:
    about = branch.description or (branch.boss.description if branch.boss else "") or name
    goal = {"type": "string", "description": "All that it must know: it sees nothing of your memory but shared files."}
    schema = {"type": "object", "properties": {"goal": goal}, "required": ["goal"]}
    spec = ToolSpec(name, f"{about}\n\nA boss of its own, with a plan of its own.", schema)
    return Tool(spec, _boss_tool, _Goal, Marks(alone=True, resumes=True, time_limit_s=None))


def _early(payload: Mapping[str, Any]) -> Final:
    result = str(payload.get("result", ""))
    return Final(result, later=str(payload.get("summary") or result))


def _first_line(text: str) -> str:
    return cut(text.strip().split("\n")[0], 120)
