"""A boss that works for another one: in a session and a workspace within its caller's."""

import asyncio
from contextvars import Context

from goose_like.agent.subagent import Relay, left_of, narrowed_limits
from goose_like.config.profile import Profile
from goose_like.core.message import Message
from goose_like.core.tool import current_call
from goose_like.providers.base import ModelPair
from goose_like.sessions.session import Session
from goose_like.toolkit import Toolkit, TransientResult
from goose_like_toolkits.boss.memory.files import Memory

from .boss import Boss, Run, has_ended, outcome
from .outcome import Outcome


async def worked(
    boss: Boss, goal: str, caller: Toolkit, profile: Profile, line: list[Run], memory: Memory | None = None
) -> TransientResult:
    """What came of a goal, for the running call of `caller`, which is one of the `line`.

    Where the call was cut off by the end of a process, its session is there, and the boss goes on in it. `memory` is
    the caller's, of which files may be shared.

    Raises:
        ToolError: nothing is left of the caller's limits.
    """
    call_id, name = current_call.get(""), boss.spec.name
    session = caller.session.nested(call_id)
    relay = Relay(caller.notifier, call_id, who=name, purpose="boss")
    view = caller.exchange_view
    models = ModelPair(view.processor.model, view.accelerator.model)

    async def work(session: Session) -> Outcome:
        limits, is_over = caller.limits, has_ended(session.history)
        if not is_over:
            left = left_of(limits, caller.session.history, within=session.history)
            limits = narrowed_limits(limits, {key: each for key, each in left.items() if key != "steps"})
        async with boss.opened(
            profile,
            relay,
            session=session,
            within=caller.workspace,
            limits=limits,
            models=models,
            line=line,
            memory=memory,
        ) as run:
            if is_over:
                return outcome(run.history)
            return await (run.go_on() if run.history.turns else run.work(Message.user(goal)))

    try:
        # In a context of its own: there it is no longer this call that speaks.
        came = await asyncio.create_task(work(session), context=Context())
    finally:
        session.close()
    for told in await caller.workspace.inspect_changes():
        caller.notifier.log(told)
    how = came.status.replace("_", " ")
    summary = came.summary if came.status == "finished" else f"({how}) {came.summary}"
    return TransientResult(f"[{name}: {how}]\n{came.result}", replacement=summary)
