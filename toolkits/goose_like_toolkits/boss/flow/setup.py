"""Open a boss: complete and check its description, and build the exchange of its controller."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from goose_like.agent.build import build_exchange
from goose_like.agent.goose09 import load_toolkit
from goose_like.agent.subagent import narrow_limits, remaining_limits
from goose_like.config.profile import Limits, ModeratorChoice, Profile, ToolkitChoice
from goose_like.core.errors import ProfileError, UsageError
from goose_like.core.history import History
from goose_like.core.notifier import Notifier
from goose_like.providers.base import ModelPair
from goose_like.sessions.session import Session
from goose_like.toolkit import Toolkit
from goose_like.workspace.workspace import Workspace
from goose_like_toolkits.boss.memory.files import MemoryFiles
from goose_like_toolkits.boss.spec import (
    ACTIONS,
    CONTROLLER_TOOLKIT,
    DEFAULT_FILES,
    LIBRARY,
    LOGS,
    PLAN,
    BossSpec,
    Branch,
)

from .boss import Boss, BossRun
from .outcome import count_rounds

_DEFAULT_ACTIONS = ("ask_user", "re_plan", "update_plan")
_LIBRARY_ACTIONS = ("write_code", "save_code", "run_code")


@dataclass(frozen=True, slots=True)
class ControllerSetup:
    """Everything that a boss passes to the toolkit of its controller.

    `active_runs` are all bosses at work, the outermost first. `caller_memory` is the memory of the calling boss.
    """

    boss: Boss
    profile: Profile
    active_runs: list[BossRun] = field(default_factory=list)
    caller_memory: MemoryFiles | None = None


@asynccontextmanager
async def open_boss(
    boss: Boss,
    profile: Profile,
    notifier: Notifier,
    *,
    session: Session,
    limits: Limits | None = None,
    within: Workspace | None = None,
    models: ModelPair | None = None,
    active_runs: list[BossRun] | None = None,
    caller_memory: MemoryFiles | None = None,
) -> AsyncIterator[BossRun]:
    """Open a boss with its exchange, and close both at the end of the block.

    The profile gives models, toolkits and permissions. `within` and `models` are those of `build_exchange`; `within`
    is set only for a boss that works for another one.

    Raises:
        ProfileError: an unknown branch or toolkit, or memory files that can't be shared.
        UsageError: former processes used up all rounds.
    """
    boss = replace(boss, spec=_complete_spec(boss.spec, profile, session))
    _check_files(boss, {})
    limits = _narrow_limits(boss.spec, limits or profile.limits, session.history, is_sub_boss=within is not None)
    setup = ControllerSetup(boss, profile, [] if active_runs is None else active_runs, caller_memory)
    toolkits = _choose_toolkits(boss)
    controller = ToolkitChoice(name=CONTROLLER_TOOLKIT, config={"setup": setup})
    if boss.controller:
        models = ModelPair(boss.controller, models.accelerator if models else boss.controller)
    async with build_exchange(
        profile.model_copy(
            update={"toolkits": (*toolkits, controller), "moderator": ModeratorChoice(name="boss")},
        ),
        notifier,
        session=session,
        parent_workspace=within,
        limits=limits,
        models=models,
        toolkit_profile=profile.model_copy(update={"toolkits": toolkits}),  # no delegate becomes a second controller
    ) as exchange:
        run = BossRun(boss.spec.name, exchange, setup.active_runs)
        setup.active_runs.append(run)
        try:
            yield run
        finally:
            setup.active_runs.remove(run)


def get_remaining_limits(host: Toolkit, history: History) -> Limits:
    """Return the limits of a toolkit's turn that remain for a subagent with this history. Rounds are not shared."""
    left = remaining_limits(host.limits, host.session.history, resumed=history)
    return narrow_limits(host.limits, {name: value for name, value in left.items() if name != "steps"})


def _complete_spec(spec: BossSpec, profile: Profile, session: Session) -> BossSpec:
    """Use the profile's toolkits if there are no branches, and the session's folder for files without a path."""
    branches = dict(spec.branches)
    if not branches:
        toolkits = tuple(choice for choice in profile.toolkits if choice.name not in ("boss", CONTROLLER_TOOLKIT))
        actions = (*_DEFAULT_ACTIONS, *(_LIBRARY_ACTIONS if LIBRARY in spec.memory_files else ()))
        branches = {"tools": Branch(toolkits=toolkits), **dict.fromkeys(actions, Branch())}
    needed = [PLAN, LOGS, *([LIBRARY] if branches.keys() & set(_LIBRARY_ACTIONS) else [])]
    files = {name: str(session.folder / "memory" / DEFAULT_FILES[name]) for name in needed}
    return spec.model_copy(update={"branches": branches, "memory_files": files | spec.memory_files})


def _check_files(boss: Boss, callers: Mapping[str, str]) -> None:
    """Refuse one file for two names, and a plan or log shared with a caller. `callers` are boss names by file."""
    name, files = boss.spec.name, dict[str, str]()
    for key, path in boss.spec.memory_files.items():
        file = os.path.normpath(path)
        if file in files:
            raise ProfileError(f"{key!r} and {files[file]!r} of the boss {name!r} are both {file!r}; give each a file")
        files[file] = key
        if key in (PLAN, LOGS) and file in callers:
            raise ProfileError(
                f"the bosses {callers[file]!r} and {name!r}, which works for it, both have {file!r}; "
                f"give {name!r} a {key} of its own below `memory_files`"
            )
    callers = {**callers, **{file: name for file, key in files.items() if key in (PLAN, LOGS)}}
    for branch in boss.spec.branches:
        if sub_boss := boss.get_sub_boss(branch):
            _check_files(sub_boss, callers)


def _narrow_limits(spec: BossSpec, limits: Limits, history: History, *, is_sub_boss: bool) -> Limits:
    # Rounds count over all turns, but limits hold for the newest turn.
    used = count_rounds(history, history.turns[-1].start if history.is_in_turn else None)
    if used >= spec.max_round and not history.has_final_result and not is_sub_boss:
        raise UsageError(
            f"all {spec.max_round} rounds are used up; continue with more of them, "
            f"e.g. --max-round {2 * spec.max_round}"
        )
    own = spec.model_dump(include={"tokens", "cost_usd", "time_s"})
    return narrow_limits(limits.model_copy(update={"steps": max(1, spec.max_round - used)}), own)


def _choose_toolkits(boss: Boss) -> tuple[ToolkitChoice, ...]:
    """Return the toolkits of all branches, without tools that have the name of an action."""
    toolkits: dict[str, ToolkitChoice] = {}
    taken: set[str] = {*ACTIONS}
    for name, branch in boss.spec.branches.items():
        if not (name.isidentifier() and name.isascii()):
            raise ProfileError(f"the branch name {name!r} can't be the name of an action; use letters, digits and _")
        if name in boss.flows or boss.get_sub_boss(name):
            taken.add(name)
        elif not branch.toolkits and name not in ACTIONS:
            raise ProfileError(
                f"branch {name!r} is none of {', '.join(ACTIONS)}; give it `toolkits: [...]` or `boss: {{...}}`"
            )
        for choice in branch.toolkits:
            if toolkits.setdefault(choice.name, choice) != choice:
                raise ProfileError(f"toolkit {choice.name!r} stands in two branches with different settings")
    return tuple(_remove_tools(choice, taken) for choice in toolkits.values())


def _remove_tools(choice: ToolkitChoice, taken: set[str]) -> ToolkitChoice:
    names = load_toolkit(choice.name).tool_names()
    picked = choice.config.get("tools", names)
    left = [name for name in picked if name not in taken]
    if len(left) == len(picked):
        return choice
    return choice.model_copy(update={"config": {**choice.config, "tools": left}})
