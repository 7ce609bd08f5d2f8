"""The planner: an exchange without tools that answers once, with a plan."""

import asyncio
from contextvars import Context
from importlib.resources import files

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.agent.subagent import EventRelay
from goose_like.config.profile import ModeratorChoice
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import Message
from goose_like.core.tool import current_call
from goose_like.providers.base import ModelPair
from goose_like.toolkit import Toolkit
from goose_like_toolkits.boss.memory.plan_text import extract_plan

from .setup import ControllerSetup, get_remaining_limits

_MAX_STEPS = 3


async def ask_planner(host: Toolkit, setup: ControllerSetup, question: str, session_name: str) -> str:
    """Return the plan. After a crash, the session may already hold an answer, or a part of one.

    Raises:
        GooseLikeError: the planner made no plan, or the limits are used up.
    """
    boss, view = setup.boss, host.exchange_view
    is_fast = boss.spec.planner is not None and boss.spec.planner.model == "accelerator"
    model = boss.planner or (view.accelerator if is_fast else view.processor).model
    profile = setup.profile.model_copy(update={"toolkits": (), "moderator": ModeratorChoice(name="passive")})
    session = host.session.open_subagent_session(session_name)

    async def work() -> str:
        limits = get_remaining_limits(host, session.history)
        async with build_exchange(
            profile,
            EventRelay(host.notifier, current_call.get(session_name), who="the planner", purpose="plan"),
            session=session,
            parent_workspace=host.workspace,
            limits=limits.model_copy(update={"steps": min(limits.steps, _MAX_STEPS)}),
            models=ModelPair(model, view.accelerator.model),
        ) as exchange:
            return await _get_answer(exchange, question)

    try:
        # A new context: the planner runs outside of the current tool call.
        return extract_plan(await asyncio.create_task(work(), context=Context()))
    finally:
        session.close()


async def _get_answer(exchange: Exchange, question: str) -> str:
    history = exchange.history
    is_asked = bool(history.turns) and history.messages[history.turns[-1].start].text == question
    end = history.last_turn
    if not is_asked or (end and end.reason != "stop"):
        if history.messages:
            exchange.rewind(0)  # forget the failed attempt
        await exchange.reply(Message.user(question))
    elif history.is_in_turn and history.messages[-1].role != "assistant":
        await exchange.resume_turn()
    end, answer = history.last_turn, history.messages[-1]
    if answer.role != "assistant" or (end and end.reason != "stop"):
        raise GooseLikeError(f"the planner made no plan: {(end and end.detail) or 'its answer was cut off'}")
    return answer.text


def build_question(directions: str, sections: list[tuple[str, str]], actions: str, reason: str) -> str:
    """Build the question for the planner. `reason` says why the previous plan has to change."""
    parts = [("Possible actions", actions), *sections, ("Why another plan is needed", reason)]
    context = "\n\n".join(f"# {title}\n{text}" for title, text in parts if text)
    return "\n\n".join(filter(None, [context, read_page("planner.md"), directions]))


def read_page(name: str) -> str:
    """Read a prompt from this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()
