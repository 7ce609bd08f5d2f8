"""Open a boss, for a person or for another boss: complete its description, and build the exchange of its controller."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, replace
from pathlib import Path

from goose_like.agent.budget import Budget, narrow_limits
from goose_like.agent.build import build_exchange
from goose_like.agent.goose09 import load_toolkit
from goose_like.agent.subagent import EventRelay
from goose_like.config.profile import Limits, ModeratorChoice, Profile, ToolkitChoice
from goose_like.core.errors import ProfileError, UsageError
from goose_like.core.history import History
from goose_like.core.message import Message
from goose_like.core.notifier import Notifier
from goose_like.core.tool import current_call
from goose_like.providers.base import ModelPair
from goose_like.sessions.session import Session
from goose_like.toolkit import Toolkit, TransientResult
from goose_like.workspace.workspace import Workspace
from goose_like_toolkits.boss.memory.files import MemoryFiles
from goose_like_toolkits.boss.spec import (
    ACTIONS,
    CONTROLLER_TOOLKIT,
    DEFAULT_FILES,
    LIBRARY,
    LOGS,
    PLAN,
    TESTS,
    BossSpec,
    Branch,
)

from .boss import Boss, BossRun, Outcome, build_outcome, count_rounds
from .flow_controller import FlowController
from .tools import BossTools

_DEFAULT_ACTIONS = ("ask_user", "re_plan", "update_plan")
_LIBRARY_ACTIONS = ("write_code", "save_code", "run_code")


@dataclass(frozen=True, slots=True)
class ControllerSetup:
    """Everything that a boss passes to the toolkit of its controller.

    `models` are those for the planner and for sub-bosses; None stands for the models of the exchange. `active_runs` are
    all bosses at work, the outermost first. `caller_memory` is the memory of the calling boss. `tools` are complete
    when the exchange is built.
    """

    boss: Boss
    profile: Profile
    models: ModelPair | None
    active_runs: list[BossRun]
    caller_memory: MemoryFiles | None
    flow_controller: FlowController | None
    tools: BossTools


@asynccontextmanager
async def open_boss(
    boss: Boss,
    profile: Profile,
    notifier: Notifier,
    *,
    session: Session,
    limits: Limits | None = None,
    within: Workspace | None = None,
    budget: Budget | None = None,
    models: ModelPair | None = None,
    active_runs: list[BossRun] | None = None,
    caller_memory: MemoryFiles | None = None,
    logs_prints: bool = False,
) -> AsyncIterator[BossRun]:
    """Open a boss with its exchange, and close both at the end of the block.

    The profile gives models, toolkits and permissions. `within` and `budget` are those of the caller, `models` are
    those of `build_exchange`, and so is `logs_prints`.

    Raises:
        ProfileError: an unknown toolkit, or memory files that can't be shared.
        UsageError: former processes used up all rounds.
    """
    boss = replace(boss, spec=_complete_spec(boss, profile, session))
    _check_files(boss, {})
    rounds = _count_rounds_left(boss.spec, session.history, is_sub_boss=within is not None)
    limits = limits or profile.limits
    if budget is None and rounds > limits.steps:  # who asks for more rounds allows more steps
        limits = limits.model_copy(update={"steps": rounds})
    own = boss.spec.model_dump(include={"tokens", "cost_usd", "time_s"})
    flow_controller = None
    own_models = models
    flow = boss.parts.get("Controller")
    if flow is not None:
        flow_controller = FlowController(flow, boss.detection)
        accelerator = models.accelerator if models else flow_controller.model
        own_models = ModelPair(flow_controller.model, accelerator)
    if active_runs is None:
        active_runs = []
    tools = BossTools()
    setup = ControllerSetup(boss, profile, models, active_runs, caller_memory, flow_controller, tools)
    toolkits = _choose_toolkits(boss)
    controller = ToolkitChoice(name=CONTROLLER_TOOLKIT, config={"setup": setup})
    own_profile = profile.model_copy(
        update={"toolkits": (*toolkits, controller), "moderator": ModeratorChoice(name="boss")}
    )
    async with build_exchange(
        own_profile,
        notifier,
        session=session,
        parent_workspace=within,
        limits=narrow_limits(limits, own),
        parent_budget=budget,
        rounds=rounds,
        models=own_models,
        logs_prints=logs_prints,
        toolkit_profile=profile.model_copy(update={"toolkits": toolkits}),  # no delegate becomes a second controller
    ) as exchange:
        tools.specs = tuple(tool.spec for tool in exchange.tools.values() if not tool.spec.deferred_group)
        if flow is None:  # a flow sends the arguments of its commands, among which may be `done`
            exchange = replace(exchange, tools=tools.accept_done(exchange.tools))
        run = BossRun(boss.spec.name, exchange, active_runs)
        active_runs.append(run)
        try:
            yield run
        finally:
            active_runs.remove(run)


async def run_sub_boss(
    boss: Boss,
    goal: str,
    caller: Toolkit,
    profile: Profile,
    *,
    setup: ControllerSetup | None = None,
    caller_memory: MemoryFiles | None = None,
) -> TransientResult:
    """Work on a goal for the running call of `caller`. After a crash, continue in the session of that call.

    `setup` and `caller_memory` are those of a calling boss. Raise ToolError if the caller has used up its limits.
    """
    call_id = current_call.get("")
    name = boss.spec.name
    session = caller.session.open_subagent_session(call_id)
    relay = EventRelay(caller.notifier, call_id, who=name, purpose="boss")
    models = _choose_models(caller, setup)
    end = session.history.last_turn
    has_ended = end is not None and end.reason != "cancelled"

    async def work() -> Outcome:
        if not has_ended:
            caller.budget.check_rest()
        opened = open_boss(
            boss,
            profile,
            relay,
            session=session,
            within=caller.workspace,
            budget=caller.budget,
            limits=caller.limits,
            models=models,
            active_runs=setup.active_runs if setup else None,
            caller_memory=caller_memory,
        )
        async with opened as run:
            if has_ended:
                return build_outcome(run.history)
            if run.history.turns:
                return await run.resume()
            return await run.work(Message.user(goal))

    try:
        # A new context: the boss runs outside of the current tool call.
        outcome = await asyncio.create_task(work(), context=Context())
    finally:
        session.close()
    for note in await caller.workspace.inspect_changes():
        caller.notifier.log(note)
    return _report_outcome(name, outcome)


def _choose_models(caller: Toolkit, setup: ControllerSetup | None) -> ModelPair:
    """Return the models of the calling boss, or else those of the caller's exchange."""
    if setup and setup.models:
        return setup.models
    view = caller.exchange_view
    return ModelPair(view.processor.model, view.accelerator.model)


def _report_outcome(name: str, outcome: Outcome) -> TransientResult:
    text = f"[{name}: {outcome.status_text}]\n{outcome.result}"
    summary = outcome.summary
    if outcome.status != "finished":
        summary = f"({outcome.status_text}) {summary}"
    elif outcome.result.strip() not in summary:
        # The caller needs values of the result later, when it no longer sees the result itself.
        summary = f"{summary}; result: {outcome.result}"
    return TransientResult(text, replacement=summary)


def _complete_spec(boss: Boss, profile: Profile, session: Session) -> BossSpec:
    """Use the profile's toolkits if there are no branches, and the session's folder for files without a path."""
    spec = boss.spec
    branches = dict(spec.branches)
    if not branches and not boss.flows:
        branches = _make_default_branches(spec, profile)
    needed = [PLAN, LOGS]
    needs_library = not branches.keys().isdisjoint(_LIBRARY_ACTIONS)
    if needs_library:
        needed.append(LIBRARY)
    folder = session.folder / "memory"
    defaults = {name: str(folder / DEFAULT_FILES[name]) for name in needed}
    files = {**defaults, **spec.memory_files}
    if needs_library:
        library = Path(files[LIBRARY])
        tests = library.with_name(f"test_{library.name}")
        files = {TESTS: str(tests), **files}
    return spec.model_copy(update={"branches": branches, "memory_files": files})


def _make_default_branches(spec: BossSpec, profile: Profile) -> dict[str, Branch]:
    """Return a branch for the profile's toolkits, one for each action, and those for code if there is a library."""
    actions: tuple[str, ...] = _DEFAULT_ACTIONS
    if LIBRARY in spec.memory_files:
        actions += _LIBRARY_ACTIONS
    toolkits = tuple(choice for choice in profile.toolkits if choice.name not in ("boss", CONTROLLER_TOOLKIT))
    return {"tools": Branch(toolkits=toolkits), **dict.fromkeys(actions, Branch())}


def _check_files(boss: Boss, callers: Mapping[str, str]) -> None:
    """Refuse one file for two names, and a plan or log shared with a caller. `callers` are their files."""
    name = boss.spec.name
    taken: dict[str, str] = {}
    own: dict[str, str] = {}
    for key, path in boss.spec.memory_files.items():
        file = os.path.normpath(path)
        other = taken.get(file)
        if key in (PLAN, LOGS):
            other = other or callers.get(file)
        if other:
            raise ProfileError(
                f"{other} and {key!r} of the boss {name!r} are both {file!r}; give each a file of its own"
            )
        taken[file] = f"{key!r} of the boss {name!r}"
        if key in (PLAN, LOGS):
            own[file] = taken[file]
    for branch in boss.spec.branches:
        sub_boss = boss.get_sub_boss(branch)
        if sub_boss:
            _check_files(sub_boss, {**callers, **own})


def _count_rounds_left(spec: BossSpec, history: History, *, is_sub_boss: bool) -> int:
    # Rounds count over all turns, but those left are for the newest turn.
    end = None
    if history.is_in_turn:
        end = history.turns[-1].start
    used = count_rounds(history, end)
    is_used_up = used >= spec.max_round and not history.has_final_result
    if is_used_up and not is_sub_boss:
        raise UsageError(
            f"all {spec.max_round} rounds are used up; continue with more of them, "
            f"e.g. --max-round {2 * spec.max_round}"
        )
    return max(1, spec.max_round - used)


def _choose_toolkits(boss: Boss) -> tuple[ToolkitChoice, ...]:
    """Return the toolkits of all branches, without tools that have the name of an action."""
    toolkits: dict[str, ToolkitChoice] = {}
    for name in (*boss.spec.branches, *boss.flows):
        if not (name.isidentifier() and name.isascii()):
            raise ProfileError(f"the branch name {name!r} can't be the name of an action; use letters, digits and _")
    for branch in boss.spec.branches.values():
        for choice in branch.toolkits:
            if toolkits.setdefault(choice.name, choice) != choice:
                raise ProfileError(f"toolkit {choice.name!r} stands in two branches with different settings")
    sub_bosses = {name for name in boss.spec.branches if boss.get_sub_boss(name)}
    taken = {*ACTIONS, *boss.flows, *sub_bosses}
    return tuple(_remove_tools(choice, taken) for choice in toolkits.values())


def _remove_tools(choice: ToolkitChoice, taken: set[str]) -> ToolkitChoice:
    names = list(choice.config.get("tools", load_toolkit(choice.name).tool_names()))
    left = [name for name in names if name not in taken]
    if left == names:
        return choice
    config = {**choice.config, "tools": left}
    return choice.model_copy(update={"config": config})
