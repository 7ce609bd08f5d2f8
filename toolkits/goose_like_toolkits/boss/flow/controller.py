"""The toolkit of a boss's controller: its actions, flows and sub-bosses, and the hooks around each round."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from goose_like.agent.tool_call import invoke
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import ProfileError
from goose_like.core.events import Question
from goose_like.core.tool import AnyArguments, Tool, ToolOptions, ToolSpec, make_tool
from goose_like.toolkit import FinalResult, FollowUp, Notifier, Requirements, ToolError, Toolkit, TransientResult, tool
from goose_like_toolkits.boss.memory.files import MemoryFiles
from goose_like_toolkits.boss.memory.prompt import MemoryPrompt
from goose_like_toolkits.boss.spec import ACTIONS, FINISH, Branch

from .code_actions import CodeActions
from .executor import call_detect, run_branch
from .plan_actions import PlanActions
from .planner import read_page
from .rounds import Rounds
from .setup import ControllerSetup
from .sub_boss import run_sub_boss


class ControllerToolkit(Toolkit):
    """Everything that a controller can do. Only `open_boss` uses this toolkit; profiles list `boss`."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        setup = self.config.get("setup")
        if not isinstance(setup, ControllerSetup):
            raise ProfileError("only a boss can use its controller's toolkit; list `boss` in the profile instead")
        boss = setup.boss
        self._setup, self._boss, self._spec = setup, boss, boss.spec
        files = MemoryFiles(self._spec.memory_files, self.workspace, self.session, setup.caller_memory)
        history = self.session.history
        memory = MemoryPrompt(files, history, notifier, self.exchange_view, boss.read_memory, boss.write_entry)
        self._rounds = Rounds(self._spec, history, memory)
        self._plan, code = PlanActions(self, setup, self._rounds), CodeActions(self, memory)
        methods: tuple[Callable[..., Any], ...] = (
            *(code.write_code, code.save_code, code.run_code),
            *(self._plan.re_plan, self._plan.update_plan),
            *(self.finish, self.ask_user),
        )
        self._actions = {action.name: action for action in map(make_tool, methods)}

    @override
    def prompt(self) -> str:
        spec = self._spec
        role = f"You are the controller of {spec.name}: {spec.description}" if spec.description else ""
        return "\n\n".join(filter(None, [read_page("controller.md"), role, spec.controller.directions]))

    @override
    def tools(self) -> tuple[Tool, ...]:
        branches = self._spec.branches
        tools: dict[str, Tool] = {}
        for name, action in self._actions.items():
            if name in (*branches, FINISH):
                description = branches.get(name, Branch()).description or action.spec.description
                tools[name] = self._wrap(replace(action, spec=replace(action.spec, description=description)))
        for name, branch in branches.items():
            if name in self._boss.flows:
                tools[name] = self._wrap(_make_flow_tool(name, branch))
            elif self._boss.get_sub_boss(name):
                tools[name] = self._wrap(_make_boss_tool(name, branch))
        return tuple(tools.values())

    @override
    async def on_turn_start(self) -> None:
        await self._rounds.start()
        await self._plan.start()

    @override
    async def context_updates(self) -> Mapping[str, str]:
        return await self._rounds.update()

    @override
    def state_sections(self) -> list[tuple[str, str]]:
        return self._rounds.build_sections()

    @override
    def before_finish(self) -> FollowUp | None:
        text = self._rounds.build_reminder(each.name for each in self.tools())
        return FollowUp(text, is_repeated=True) if text else None

    @override
    async def close(self) -> None:
        await self._rounds.close()

    @tool(exclusive=True)
    async def finish(self, result: str, summary: str) -> FinalResult:
        """End the work: the goal is reached, or can't be.

        Args:
            result: Everything the caller will read. If the work failed, why.
            summary: One sentence for the caller's log.
        """
        return FinalResult(result, replacement=summary)

    @tool(exclusive=True, time_limit_s=None)
    async def ask_user(self, question: str) -> str:
        """Ask the person something that only they know.

        Args:
            question: In one or two sentences.
        """
        answer = await self.notifier.ask(Question(kind="text", subject=self._spec.name, text=question))
        if answer.by == "nobody":
            raise ToolError("nobody is there to answer; decide yourself, and name your assumptions in `finish`")
        words = answer.text
        return f"the person says: {words}" if words.strip() else "the person gave no answer; decide yourself"

    def _wrap(self, choice: Tool) -> Tool:
        """Route a tool through the `detect_finish_or_continue` method of the Python API, if there is one."""

        async def run(**arguments: Any) -> Any:
            if self._boss.detect is None:
                return await self._run_branch(choice.name, arguments)
            thought = self.session.history.messages[-1].text
            message = {"command": choice.name, "command_args": arguments, "thought": thought}
            decision = await call_detect(self._boss.detect, message)
            if decision.get(self._spec.early_exit_key):
                return _exit_early(decision)
            return await self._run_branch(str(decision.get("branch", "")), decision.get("branch_input_data") or {})

        return replace(choice, function=run)

    async def _run_branch(self, name: str, payload: Mapping[str, Any]) -> Any:
        """Run a flow, a sub-boss or an action.

        Raises:
            ToolError: no branch has that name, or the branch failed. The text is for the controller.
        """
        if flow := self._boss.flows.get(name):
            branch = self._spec.branches.get(name, Branch())
            result, summary, output = await run_branch(flow, dict(payload), branch)
            if output.get(self._spec.early_exit_key):
                return _exit_early({"result": result, "summary": summary})
            return TransientResult(result, replacement=summary) if summary else result
        if boss := self._boss.get_sub_boss(name):
            goal = str(payload.get("goal", "")).strip()
            if not goal:
                raise ToolError(f"{name} needs a `goal` with everything it must know; it sees nothing else")
            setup = self._setup
            return await run_sub_boss(boss, goal, self, setup.profile, setup.active_runs, self._rounds.memory.files)
        if name in ACTIONS and name in (*self._spec.branches, FINISH):
            return await invoke(self._actions[name].function, dict(payload))
        raise ToolError(f"no branch {name!r}; {did_you_mean(name, [*self._spec.branches, FINISH])}")


class _Goal(BaseModel):
    model_config = ConfigDict(extra="forbid")
    goal: str


def _make_flow_tool(name: str, branch: Branch) -> Tool:
    properties: dict[str, Any] = {parameter: {} for parameter in branch.parameters}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    spec = ToolSpec(name, branch.description or name, schema)
    return Tool(spec, _make_flow_tool, AnyArguments, ToolOptions(exclusive=True))  # `_wrap` replaces the function


def _make_boss_tool(name: str, branch: Branch) -> Tool:
    description = branch.description or (branch.boss.description if branch.boss else "") or name
    goal = {
        "type": "string",
        "description": "Everything it must know: it sees nothing of your memory but shared files.",
    }
    schema = {"type": "object", "properties": {"goal": goal}, "required": ["goal"]}
    spec = ToolSpec(name, f"{description}\n\nA boss of its own, with a plan of its own.", schema)
    return Tool(spec, _make_boss_tool, _Goal, ToolOptions(exclusive=True, resumable=True, time_limit_s=None))


def _exit_early(payload: Mapping[str, Any]) -> FinalResult:
    result = str(payload.get("result", ""))
    return FinalResult(result, replacement=str(payload.get("summary") or result))
