"""One request, from what a client asked to the bytes of its answer; whatever goes wrong, it ends with words."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import ExitStack, aclosing

import anyio

from goose_like.agent.build import build_exchange
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import TurnFinished
from goose_like.core.images import keep_image
from goose_like.core.message import ToolCall, Usage
from goose_like.core.notifier import Channel
from goose_like.serve.openbb.carried import carried
from goose_like.serve.openbb.client_tools import to_client
from goose_like.serve.openbb.events import Translator
from goose_like.serve.openbb.history import Folded, fold
from goose_like.serve.openbb.query import Human, Query
from goose_like.sessions.session import Session

from .metrics import Seen
from .service import Service
from .sse import Frame, Wire

STOPPED = TurnFinished(reason="error", detail="this server is being stopped; ask again in a moment", exit_code=143)
FAULT = TurnFinished(
    reason="error", detail="a fault in goose_like or in a plugin; the server's log has more", exit_code=1
)


async def answer(query: Query, service: Service, seen: Seen) -> AsyncGenerator[bytes]:
    """The bytes of an answer, as they come; `seen` is told how it ended and what it took.

    Leaving it early cancels the model and the tools, and returns when they are gone.
    """
    query = query.model_copy(update={"reserved": service.tools})
    folded = fold(query, service.seal)
    translator, wire = Translator(query, folded.sources), Wire()
    yield _bytes(wire, translator.opening()) or wire.tick()
    if folded.waiting:
        seen.ending = "handed_off"
        yield _bytes(wire, _handed_off(folded.waiting, folded, query, service, translator))
        return
    channel, ending, known = Channel(), None, len(folded.history.messages)
    work = asyncio.create_task(_reply(folded, query, service, channel))
    try:
        async with aclosing(channel.batches(work, service.settings.beat_s)) as batches:
            async for batch in batches:
                if ending and ending.reason != "cancelled":
                    continue  # told while the toolkits close: after a call, and after an end, comes nothing
                frames = [*translator.frames(batch)]
                if ends := [event for event in batch if isinstance(event, TurnFinished)]:
                    ending = ends[-1]
                    if ending.reason == "handed_off":
                        frames += _handed_off(_open(folded), folded, query, service, translator)
                    elif ending.reason != "cancelled":
                        frames += translator.ending(ending)
                if sent := _bytes(wire, frames) if batch else wire.tick():
                    yield sent
    except Exception as error:
        end = _end_by(error)
        if not ending or ending.reason == "cancelled":  # else the turn's own end was told, and this came while closing
            ending = end
            yield _bytes(wire, translator.ending(ending))
    finally:
        work.cancel()
        with anyio.CancelScope(shield=True):  # the response's scope cancels again at each wait
            await asyncio.wait([work])
        seen.ending = ending.reason if ending else "cancelled"
        seen.usage = sum(folded.history.turn_usage.values(), Usage())
        if service.settings.log_content:
            said = (message.text for message in folded.history.messages[known:] if message.role == "assistant")
            seen.content = {"asked": _asked(query), "answered": "\n\n".join(filter(None, said))}


def _end_by(error: Exception) -> TurnFinished:
    """The end of an answer whose turn did not come to one. What nobody foresaw is logged."""
    match error:
        case TimeoutError():
            return STOPPED
        case GooseLikeError():
            return TurnFinished(reason="error", detail=str(error), exit_code=error.exit_code)
    logging.getLogger(__name__).error("a request failed", exc_info=error)
    return FAULT


def _bytes(wire: Wire, frames: Iterable[Frame]) -> bytes:
    return b"".join(map(wire.frame, frames))


async def _reply(folded: Folded, query: Query, service: Service, channel: Channel) -> None:
    """The turn. TimeoutError: the service stopped it."""
    limits = service.limits
    left = limits.steps - folded.steps
    if left <= 0:
        channel.notify(TurnFinished(reason="step_limit", detail=f"the limit of {limits.steps} steps", exit_code=3))
        return
    with ExitStack() as stack:
        session = Session.temporary()
        stack.callback(session.close)
        session.history = folded.history
        for data, source in folded.pictures:
            keep_image(data, source, session.outputs)
        async with asyncio.timeout(None) as turn:
            with service.stoppable(turn):
                async with build_exchange(
                    service.profile_for(query),
                    channel,
                    session=session,
                    workspace=service.workspace,
                    limits=limits.model_copy(update={"steps": left}),
                    models=service.models,
                ) as exchange:
                    await exchange.reply(folded.message)


def _handed_off(
    calls: Sequence[ToolCall], folded: Folded, query: Query, service: Service, translator: Translator
) -> Iterable[Frame]:
    """The first of the calls, and those that go with it, for the client to run."""
    call = to_client(calls, query)
    taken = len(_open(folded)) - len(calls) + call.count
    sealed = service.seal.close(carried(folded.history, taken), _asked(query))
    yield translator.handed_off(call, sealed)


def _open(folded: Folded) -> list[ToolCall]:
    history = folded.history
    return [call for call in history.open_calls.values() if history.is_open(call.id)]


def _asked(query: Query) -> str:
    """What the person said last."""
    return next((said.text for said in reversed(query.messages) if isinstance(said, Human)), "")
