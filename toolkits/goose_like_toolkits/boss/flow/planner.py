"""The planner: an exchange without tools, which is asked for a plan and ends."""

import asyncio
from contextvars import Context
from importlib.resources import files

from goose_like.agent.build import build_exchange
from goose_like.agent.subagent import Relay
from goose_like.config.profile import Limits, ModeratorChoice, Profile
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import Message
from goose_like.core.notifier import Notifier
from goose_like.providers.base import ModelPair
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace
from goose_like_toolkits.boss.memory.plan_text import as_plan

_TRIES = 3


async def planned(
    question: str,
    *,
    profile: Profile,
    notifier: Notifier,
    session: Session,
    within: Workspace,
    limits: Limits,
    models: ModelPair,
    call_id: str,
) -> str:
    """The plan's text. `session` is the planner's own, where an answer may stand already, or half of one.

    Raises:
        GooseLikeError: it made none.
    """
    bare = profile.model_copy(update={"toolkits": (), "moderator": ModeratorChoice(name="passive")})
    relay = Relay(notifier, call_id, who="the planner", purpose="plan")
    limits = limits.model_copy(update={"steps": min(limits.steps, _TRIES)})

    async def ask() -> str:
        async with build_exchange(
            bare, relay, session=session, within=within, limits=limits, models=models
        ) as exchange:
            history = exchange.history
            is_asked = bool(history.turns) and history.messages[history.turns[-1].start].text == question
            end = history.last_turn
            if not is_asked or (end and end.reason != "stop"):
                if history.messages:
                    exchange.rewind(0)  # what was asked in vain is not sent again
                await exchange.reply(Message.user(question))
            elif history.is_in_turn and history.messages[-1].role != "assistant":
                await exchange.go_on()
            end, answer = history.last_turn, history.messages[-1]
            if answer.role != "assistant" or (end and end.reason != "stop"):
                raise GooseLikeError(f"the planner made no plan: {(end and end.detail) or 'it was cut off'}")
            return answer.text

    try:
        # In a context of its own: there it is no call that speaks.
        return as_plan(await asyncio.create_task(ask(), context=Context()))
    finally:
        session.close()


def plan_question(directions: str, sections: list[tuple[str, str]], actions: str, reason: str) -> str:
    """What the planner is asked: the goal and the memory, what can be done, and why the plan before was not good."""
    parts = [("What can be done", actions), *sections, ("Why another plan is needed", reason)]
    told = "\n\n".join(f"# {title}\n{text}" for title, text in parts if text)
    return "\n\n".join(filter(None, [told, _page("planner.md"), directions]))


def _page(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()
