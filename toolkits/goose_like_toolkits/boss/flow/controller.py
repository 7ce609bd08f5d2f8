"""The toolkit of a boss's controller: its actions, flows and sub-bosses, and the hooks around each round."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from typing_extensions import override

from goose_like.core.errors import ProfileError
from goose_like.core.events import Question
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import Tool, ToolSpec, accept_any, make_tool
from goose_like.toolkit import FinalResult, FollowUp, Notifier, Requirements, ToolError, Toolkit, TransientResult, tool
from goose_like_toolkits.boss.memory.files import MemoryFiles
from goose_like_toolkits.boss.python_flow import FlowBranch
from goose_like_toolkits.boss.spec import FINISH, Branch

from .boss import Boss
from .code_actions import CodeActions
from .plan_actions import PlanActions, describe_role, read_page
from .rounds import Rounds
from .setup import ControllerSetup, run_sub_boss


class ControllerToolkit(Toolkit):
    """Everything that a controller can do. Only `open_boss` uses this toolkit; profiles list `boss`."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        setup = self.config.get("setup")
        if not isinstance(setup, ControllerSetup):
            raise ProfileError("only a boss can use its controller's toolkit; list `boss` in the profile instead")
        self._setup = setup
        self._spec = setup.boss.spec
        files = MemoryFiles(self._spec.memory_files, self.workspace, self.session, setup.caller_memory)
        self._rounds = Rounds(setup.boss, files, self.session.history, notifier, self.exchange_view)
        if setup.flow_controller:
            setup.flow_controller.rounds = self._rounds
        self._plan = PlanActions(self, setup, self._rounds)
        self._code = CodeActions(self, self._rounds)
        setup.tools.mark_steps = self._plan.mark_steps
        self._choices = {choice.name: choice for choice in self._make_choices(setup.boss)}

    def _make_choices(self, boss: Boss) -> Iterator[Tool]:
        """Yield a tool for each branch that is an action, a boss or a flow. `finish` is always one of them."""
        branches = {FINISH: Branch(), **boss.spec.branches}
        actions: list[Callable[..., Any]] = [self._code.write_code, self._code.save_code, self._code.run_code]
        actions += [self._plan.re_plan, self._plan.update_plan]
        actions += [self.finish, self.ask_user]
        for action in actions:
            branch = branches.get(action.__name__)
            if branch:
                yield _describe(make_tool(action), branch.description)
        for name, branch in boss.spec.branches.items():
            sub_boss = boss.get_sub_boss(name)
            if sub_boss:
                yield _make_boss_tool(name, branch, sub_boss, partial(self._run_boss, sub_boss))
        for name, flow in boss.flows.items():
            yield _make_flow_tool(name, flow, partial(self._run_flow, flow))

    @override
    def prompt(self) -> str:
        spec = self._spec
        role = describe_role("In this work you are", spec)
        parts = [role, read_page("controller.md"), spec.controller.directions]
        return "\n\n".join(filter(None, parts))

    @override
    def tools(self) -> tuple[Tool, ...]:
        choices = tuple(self._choices.values())
        if self._setup.boss.detection is None or self._setup.flow_controller:
            return choices
        return tuple(replace(choice, function=partial(self._decide, choice.name)) for choice in choices)

    @override
    async def on_turn_start(self) -> None:
        await self._rounds.start()
        await self._plan.start()

    @override
    async def context_updates(self) -> Mapping[str, str]:
        return await self._rounds.update()

    @override
    def state_sections(self) -> list[tuple[str, str]]:
        return [*self._rounds.build_sections(), ("now", self._rounds.describe_step())]

    @override
    def before_finish(self) -> FollowUp | None:
        text = self._rounds.build_reminder(each.name for each in self.tools())
        return FollowUp(text, is_repeated=True) if text else None

    @override
    async def close(self) -> None:
        await self._rounds.close()

    @tool(title="Finish: {summary}")
    async def finish(self, result: str, summary: str) -> FinalResult:
        """End the work: the goal is reached, or can't be.

        Args:
            result: Your report, which is all that the caller reads. If the work failed, say why.
            summary: One sentence for the caller's log.
        """
        if any(each.is_error for each in self.session.history.finished_results):
            raise ToolError("a call before this one failed; look at its result first, then finish in another round")
        return FinalResult(result, replacement=summary)

    @tool(time_limit_s=None, title="Ask: {question}", display="name")
    async def ask_user(self, question: str) -> TransientResult:
        """Ask the person something that only they know.

        Args:
            question: The question, in one or two sentences.
        """
        answer = await self.notifier.ask(Question(kind="text", subject=self._spec.name, text=question))
        if answer.by == "nobody":
            raise ToolError("nobody is there to answer; decide yourself, and name your assumptions in `finish`")
        text = "the person gave no answer; decide yourself"
        if answer.text.strip():
            text = f"the person says: {answer.text}"
        return TransientResult(text, replacement=f"({question}) {text}")  # the log keeps more of a replacement

    async def _decide(self, name: str, /, **arguments: Any) -> Any:
        """Let the method `detect_finish_or_continue` of the Python API decide on a choice, and run the decision."""
        detection = self._setup.boss.detection
        assert detection is not None
        thought = self.session.history.messages[-1].text
        choice = {"command": name, "command_args": arguments, "thought": thought}
        decision = await detection.decide(choice)
        if decision.get(self._spec.early_exit_key):
            return _exit_early(decision)
        branch = decision["branch"]
        if branch not in self._choices:
            raise ToolError(f"no branch {branch!r}; {did_you_mean(branch, self._choices)}")
        return await self._choices[branch].function(**decision["branch_input_data"])

    async def _run_flow(self, flow: FlowBranch, /, **payload: Any) -> Any:
        result, summary, output = await flow.run(payload)
        if output.get(self._spec.early_exit_key):
            return _exit_early({"result": result, "summary": summary})
        if not summary:
            return result
        return TransientResult(result, replacement=summary)

    async def _run_boss(self, boss: Boss, /, goal: str = "") -> TransientResult:
        if not goal.strip():
            raise ToolError(f"{boss.spec.name} needs a `goal` with everything it must know; it sees nothing else")
        setup = self._setup
        memory = self._rounds.files
        return await run_sub_boss(boss, goal.strip(), self, setup.profile, setup=setup, caller_memory=memory)


def _describe(action: Tool, description: str) -> Tool:
    """Return an action with its description in the configuration, if it has one there."""
    if not description:
        return action
    return replace(action, spec=replace(action.spec, description=description))


def _make_flow_tool(name: str, flow: FlowBranch, function: Callable[..., Any]) -> Tool:
    properties: dict[str, Any] = {parameter: {} for parameter in flow.parameters}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(ToolSpec(name, flow.description or name, schema), function, accept_any)


@tool(resumable=True, time_limit_s=None, kind="think", title="Reach the goal: {goal}")
async def _hand_over(goal: str) -> None:
    """Hand a goal to a sub-boss.

    Args:
        goal: What it must reach and give back, with everything that it must know: it does not see your memory.
    """


def _make_boss_tool(name: str, branch: Branch, boss: Boss, function: Callable[..., Any]) -> Tool:
    goal = branch.description or boss.spec.description or name
    text = f"{goal}\n\nIt works on its own, round by round, and returns a report."
    boss_tool = make_tool(_hand_over)
    spec = replace(boss_tool.spec, name=name, description=text)
    return replace(boss_tool, spec=spec, function=function)


def _exit_early(payload: Mapping[str, Any]) -> FinalResult:
    result = str(payload.get("result", ""))
    return FinalResult(result, replacement=str(payload.get("summary") or result))
