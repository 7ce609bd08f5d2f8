"""A boss at work: a goal in, an outcome out; between them one exchange, whose steps are the rounds."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.agent.goose09 import load_toolkit
from goose_like.agent.subagent import narrowed_limits
from goose_like.config.profile import Limits, ModeratorChoice, Profile, ToolkitChoice
from goose_like.core.errors import ProfileError, UsageError
from goose_like.core.events import TurnFinished
from goose_like.core.history import History
from goose_like.core.message import Message
from goose_like.core.notifier import Notifier
from goose_like.providers.base import Model, ModelPair
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace
from goose_like_toolkits.boss.memory.files import Memory
from goose_like_toolkits.boss.memory.log import entries
from goose_like_toolkits.boss.spec import ACTIONS, CONTROLLER, FILES, LIBRARY, LOGS, PLAN, BossSpec, Branch

from .executor import Detect, Executor
from .outcome import Outcome, Status

_DEFAULT_ACTIONS = ("ask_user", "re_plan", "update_plan")
_LIBRARY_ACTIONS = ("write_code", "save_code", "run_code")
_NEWEST = 10
_STATUS: dict[str, Status] = {"step_limit": "max_round", "budget": "budget", "cancelled": "interrupted"}
_GO_ON = "Go on with the goal, from where your memory says that you are."


@dataclass(frozen=True, slots=True)
class Boss:
    """What a boss is told, and what of it is somebody's Python, by the names of branches.

    `detect` stands between controller and executor; `planner` and `controller` are models that take the places of the
    profile's; `reading` and `writing` do with the memory what is done here without them.
    """

    spec: BossSpec
    flows: Mapping[str, Executor] = field(default_factory=dict)
    bosses: Mapping[str, "Boss"] = field(default_factory=dict)
    detect: Detect | None = None
    planner: Model | None = None
    controller: Model | None = None
    reading: Executor | None = None
    writing: Executor | None = None

    def below(self, name: str) -> "Boss | None":
        """The boss that this branch is, if it is one."""
        spec = self.spec.branches[name].boss if name in self.spec.branches else None
        return self.bosses.get(name) or (Boss(spec) if spec else None)

    @asynccontextmanager
    async def opened(
        self,
        profile: Profile,
        notifier: Notifier,
        *,
        session: Session,
        limits: Limits | None = None,
        workspace: Workspace | None = None,
        within: Workspace | None = None,
        models: ModelPair | None = None,
        line: "list[Run] | None" = None,
        memory: Memory | None = None,
    ) -> AsyncIterator["Run"]:
        """The boss with all that it works with, closed at the end; `profile` gives models, toolkits and permissions.

        `workspace`, `within` and `models` are as for `build_exchange`; `line` are the bosses that it works for, and
        `memory` is that of the last of them.

        Raises:
            ProfileError: a branch or a toolkit that there is not, or memory files that can't be the same.
            UsageError: all rounds were had in former processes.
        """
        boss = replace(self, spec=_filled(self.spec, profile, session))
        _check_own(boss, {})
        line = [] if line is None else line
        limits = _limits(boss.spec, limits or profile.limits, session.history, is_lower=within is not None)
        own = _profile(boss, profile, line, memory)
        theirs = own.model_copy(update={"toolkits": own.toolkits[:-1], "moderator": profile.moderator})
        if boss.controller:
            models = ModelPair(boss.controller, models.accelerator if models else boss.controller)
        async with build_exchange(
            own,
            notifier,
            session=session,
            workspace=workspace,
            within=within,
            limits=limits,
            models=models,
            profile_within=theirs,
        ) as exchange:
            run = Run(boss.spec.name, exchange, line)
            line.append(run)
            try:
                yield run
            finally:
                line.remove(run)


class Run:
    """One boss at work. `end` is how its newest turn ended."""

    def __init__(self, name: str, exchange: Exchange, line: "list[Run]") -> None:
        self.name = name
        self.history = exchange.history
        self._exchange = exchange
        self._line = line
        self._turn: asyncio.Task[TurnFinished] | None = None
        self._note: Awaitable[str] | None = None

    @property
    def end(self) -> TurnFinished:
        return self.history.last_turn or TurnFinished(reason="error", exit_code=1)

    @property
    def inner_names(self) -> tuple[str, ...]:
        """The bosses that work now, the outermost first."""
        return tuple(run.name for run in self._line)

    async def work(self, goal: str | Message) -> Outcome:
        """What comes of the goal; it does not raise where the work fails.

        Raises:
            SessionError: the session file can't be written.
        """
        return await self._outcome(self._exchange.reply(goal))

    async def go_on(self) -> Outcome:
        """The same of a goal that a former process began; one that was finished there has its outcome."""
        if self.history.is_in_turn:
            return await self._outcome(self._exchange.go_on())
        if self.history.has_final_result:
            return outcome(self.history)
        return await self.work(Message.user(_GO_ON))

    def leave(self, note: Awaitable[str]) -> bool:
        """Ends the innermost boss that works for this one; its caller gets what `note` gives. False: there is none."""
        inner = self._line[-1]
        if inner is self or inner._turn is None or inner._note is not None or not inner._turn.cancel():
            return False
        inner._note = note
        return True

    async def _outcome(self, turn: Coroutine[Any, Any, TurnFinished]) -> Outcome:
        self._turn = asyncio.create_task(turn)
        try:
            await self._turn
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._note is None or (task and task.cancelling()):
                raise
            return _with_note(outcome(self.history), await self._note)
        return outcome(self.history)


def has_ended(history: History) -> bool:
    """Whether a boss's work came to an end of its own."""
    end = history.last_turn
    return end is not None and end.reason != "cancelled"


def outcome(history: History) -> Outcome:
    """What the newest turn came to."""
    last = history.messages[-1] if history.messages else Message.user("")
    final = next((result for result in last.tool_results if result.is_final), None)
    if final is not None:
        return Outcome(result=final.output, summary=final.replacement or final.output, status="finished")
    end = history.last_turn or TurnFinished(reason="cancelled")
    status = _STATUS.get(end.reason, "failed")
    why = "it named no action" if end.reason == "stop" else detail(history)
    done = [entry.line for entry in entries(history)]
    words = last.text.strip() if last.role == "assistant" else ""
    told = [
        f"not finished ({status.replace('_', ' ')}{f': {why}' if why else ''})",
        *([f"said last: {words}"] if words else []),
        f"the newest of {len(done)} actions:" if done else "no action was taken",
        *done[-_NEWEST:],
    ]
    return Outcome(result="\n".join(told), summary=f"{told[0]} after {len(done)} actions", status=status)


def detail(history: History) -> str:
    """What there is to say of how the newest turn ended; where it was the rounds, those of all turns count."""
    end = history.last_turn
    if end is None or end.reason != "step_limit":
        return end.detail if end else ""
    return f"round {sum(message.role == 'assistant' for message in history.messages)} was the last"


def _with_note(ended: Outcome, note: str) -> Outcome:
    said = f"the person ended it and says: {note}" if note.strip() else "the person ended it"
    return ended.model_copy(update={"result": f"{said}\n{ended.result}", "summary": said})


def _limits(spec: BossSpec, limits: Limits, history: History, *, is_lower: bool) -> Limits:
    """Those of the newest turn: rounds count over all of them. One that works for another has its outcome then."""
    start = history.turns[-1].start if history.is_in_turn else len(history.messages)
    had = sum(message.role == "assistant" for message in history.messages[:start])
    if had >= spec.max_round and not history.has_final_result and not is_lower:
        raise UsageError(
            f"its {spec.max_round} rounds are used up; go on with more of them, e.g. --max-round {2 * spec.max_round}"
        )
    own = spec.model_dump(include={"tokens", "cost_usd", "time_s"})
    return narrowed_limits(limits.model_copy(update={"steps": max(1, spec.max_round - had)}), own)


def _filled(spec: BossSpec, profile: Profile, session: Session) -> BossSpec:
    """With what is left open: the branches are the profile's toolkits, and files lie in the session's folder."""
    branches = dict(spec.branches)
    if not branches:
        toolkits = tuple(choice for choice in profile.toolkits if choice.name not in ("boss", CONTROLLER))
        branches = {"tools": Branch(toolkits=toolkits), **dict.fromkeys(_DEFAULT_ACTIONS, Branch())}
        branches |= dict.fromkeys(_LIBRARY_ACTIONS, Branch()) if LIBRARY in spec.memory_files else {}
    needed = [PLAN, LOGS, *([LIBRARY] if branches.keys() & set(_LIBRARY_ACTIONS) else [])]
    files = {name: str(session.folder / "memory" / FILES[name]) for name in needed}
    return spec.model_copy(update={"branches": branches, "memory_files": files | spec.memory_files})


def _check_own(boss: Boss, held: Mapping[str, str]) -> None:
    """A file is one memory's; a plan and a log are one boss's own. `held` are those of its callers."""
    files: dict[str, str] = {}
    for name, path in boss.spec.memory_files.items():
        file = os.path.normpath(path)
        if file in files:
            raise ProfileError(
                f"{name!r} and {files[file]!r} of the boss {boss.spec.name!r} are both {file!r}; give each a file"
            )
        files[file] = name
        if name in (PLAN, LOGS) and file in held:
            raise ProfileError(
                f"the bosses {held[file]!r} and {boss.spec.name!r}, which works for it, both have {file!r}; "
                f"give {boss.spec.name!r} a {name} of its own below `memory_files`"
            )
    held = {**held, **{file: boss.spec.name for file, name in files.items() if name in (PLAN, LOGS)}}
    for branch in boss.spec.branches:
        if lower := boss.below(branch):
            _check_own(lower, held)


def _profile(boss: Boss, profile: Profile, line: Sequence[Run], memory: Memory | None) -> Profile:
    """The profile of its controller's exchange: the branches' toolkits, and the actions."""
    toolkits: dict[str, ToolkitChoice] = {}
    for name, branch in boss.spec.branches.items():
        if not (name.isidentifier() and name.isascii()):
            raise ProfileError(f"branch {name!r} can't be the name of an action: letters, digits and _, please")
        is_known = branch.toolkits or boss.below(name) or name in boss.flows or name in ACTIONS
        if not is_known:
            raise ProfileError(
                f"branch {name!r} is none of {', '.join(ACTIONS)}; give it `toolkits: [...]` or `boss: {{...}}`"
            )
        for choice in branch.toolkits:
            if toolkits.setdefault(choice.name, choice) != choice:
                raise ProfileError(f"toolkit {choice.name!r} stands in two branches with different settings")
    taken = {*ACTIONS, *(name for name in boss.spec.branches if name in boss.flows or boss.below(name))}
    own = ToolkitChoice(name=CONTROLLER, config={"boss": boss, "profile": profile, "line": line, "memory": memory})
    return profile.model_copy(
        update={
            "toolkits": (*(_without(choice, taken) for choice in toolkits.values()), own),
            "moderator": ModeratorChoice(name="boss"),
        }
    )


def _without(choice: ToolkitChoice, taken: set[str]) -> ToolkitChoice:
    """The toolkit but for tools whose names are actions' here (the developer's `update_plan`)."""
    names = load_toolkit(choice.name).tool_names()
    picked = choice.config.get("tools", names)
    left = [name for name in picked if name not in taken]
    return (
        choice if len(left) == len(picked) else choice.model_copy(update={"config": {**choice.config, "tools": left}})
    )
