"""ControllerToolkit: what a boss's controller can do beside the tools of its branches' toolkits."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict

from goose_like.core.entry_points import did_you_mean
from goose_like.core.events import Question
from goose_like.core.tool import AnyArguments, Tool, ToolOptions, ToolSpec, invoke
from goose_like.toolkit import FinalResult, ToolError, TransientResult, tool
from goose_like_toolkits.boss.spec import ACTIONS, FINISH, Branch

from .code_actions import Coding
from .executor import detected, executed
from .plan_actions import Planning
from .sub_boss import worked


class ControllerToolkit(Planning, Coding):
    """What a boss gives its controller; in a profile stands `boss`."""

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

    @tool(alone=True)
    async def finish(self, result: str, summary: str) -> FinalResult:
        """End the work: the goal is reached, or can't be.

        Args:
            result: All that who asked for it will read. Where it failed, why.
            summary: One sentence for their log.
        """
        return FinalResult(result, replacement=summary)

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
            f"the person says: {answer.text}" if answer.text.strip() else "the person gave no answer; decide yourself"
        )

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
            return TransientResult(result, replacement=summary) if summary else result
        if boss := self._boss.below(name):
            goal = str(payload.get("goal", "")).strip()
            if not goal:
                raise ToolError(f"{name} needs a `goal`: all that it must know, as it sees nothing else")
            return await worked(boss, goal, self, self._profile, self._line, self._notes.memory)
        if name in ACTIONS and name in (*self._spec.branches, FINISH):
            return await invoke(getattr(self, name), dict(payload))
        known = [*self._spec.branches, FINISH]
        raise ToolError(f"no branch {name!r}; {did_you_mean(name, known)}")


def _flow_tool(name: str, branch: Branch) -> Tool:
    properties: dict[str, Any] = {parameter: {} for parameter in branch.parameters}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(ToolSpec(name, branch.description or name, schema), _flow_tool, AnyArguments, ToolOptions(alone=True))


class _Goal(BaseModel):
    model_config = ConfigDict(extra="forbid")
    goal: str


def _boss_tool(name: str, branch: Branch) -> Tool:
    about = branch.description or (branch.boss.description if branch.boss else "") or name
    goal = {"type": "string", "description": "All that it must know: it sees nothing of your memory but shared files."}
    schema = {"type": "object", "properties": {"goal": goal}, "required": ["goal"]}
    spec = ToolSpec(name, f"{about}\n\nA boss of its own, with a plan of its own.", schema)
    return Tool(spec, _boss_tool, _Goal, ToolOptions(alone=True, resumes=True, time_limit_s=None))


def _early(payload: Mapping[str, Any]) -> FinalResult:
    result = str(payload.get("result", ""))
    return FinalResult(result, replacement=str(payload.get("summary") or result))
