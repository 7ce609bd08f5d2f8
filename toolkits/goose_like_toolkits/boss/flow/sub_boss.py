"""A boss that works for another boss or for a toolkit, in a session and a workspace inside its caller's."""

import asyncio
from contextvars import Context

from goose_like.agent.subagent import EventRelay
from goose_like.config.profile import Profile
from goose_like.core.message import Message
from goose_like.core.tool import current_call
from goose_like.providers.base import ModelPair
from goose_like.toolkit import Toolkit, TransientResult
from goose_like_toolkits.boss.memory.files import MemoryFiles

from .boss import Boss, BossRun
from .outcome import Outcome, build_outcome
from .setup import get_remaining_limits, open_boss


async def run_sub_boss(
    boss: Boss,
    goal: str,
    caller: Toolkit,
    profile: Profile,
    active_runs: list[BossRun],
    caller_memory: MemoryFiles | None = None,
) -> TransientResult:
    """Work on a goal for the running call of `caller`. After a crash, continue in the session of that call.

    Raises:
        ToolError: the caller has used up its limits.
    """
    call_id, name = current_call.get(""), boss.spec.name
    session = caller.session.open_subagent_session(call_id)
    relay = EventRelay(caller.notifier, call_id, who=name, purpose="boss")
    view = caller.exchange_view
    models = ModelPair(view.processor.model, view.accelerator.model)

    end = session.history.last_turn
    has_ended = end is not None and end.reason != "cancelled"

    async def work() -> Outcome:
        limits = caller.limits if has_ended else get_remaining_limits(caller, session.history)
        async with open_boss(
            boss,
            profile,
            relay,
            session=session,
            within=caller.workspace,
            limits=limits,
            models=models,
            active_runs=active_runs,
            caller_memory=caller_memory,
        ) as run:
            if has_ended:
                return build_outcome(run.history)
            return await (run.resume() if run.history.turns else run.work(Message.user(goal)))

    try:
        # A new context: the boss runs outside of the current tool call.
        outcome = await asyncio.create_task(work(), context=Context())
    finally:
        session.close()
    for note in await caller.workspace.inspect_changes():
        caller.notifier.log(note)
    summary = outcome.summary if outcome.status == "finished" else f"({outcome.status_text}) {outcome.summary}"
    return TransientResult(f"[{name}: {outcome.status_text}]\n{outcome.result}", replacement=summary)
