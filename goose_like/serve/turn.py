"""One turn for one request: run the exchange, and stream its events as a protocol writes them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from typing import Protocol

import anyio

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Profile
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Event, TurnFinished
from goose_like.core.history import History
from goose_like.core.images import save_image
from goose_like.core.message import Message, Usage
from goose_like.core.notifier import Channel
from goose_like.sessions.session import Session

from .middleware import RequestRecord
from .service import Service

ImageData = tuple[bytes, str]
"""An image's bytes and the name of its source."""

SERVER_STOPPING = TurnFinished(
    reason="error", detail="this server is being stopped; ask again in a moment", exit_code=143
)
INTERNAL_ERROR = TurnFinished(
    reason="error", detail="a fault in goose_like or in a plugin; the server's log has more", exit_code=1
)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn to run: the conversation so far and the message to reply to.

    `images` belong to `message`; the session stores their bytes. `steps_used` counts steps of this turn that earlier
    requests made. `question` is the user's text for the log.
    """

    profile: Profile
    history: History
    message: Message
    images: tuple[ImageData, ...] = ()
    steps_used: int = 0
    question: str = ""


class ResponseWriter(Protocol):
    """A protocol's way to write the events of a turn."""

    def start(self) -> bytes:
        """Return the first bytes of the response."""

    def write(self, events: Sequence[Event]) -> bytes:
        """Return the bytes for some events; the end of the turn is written by `finish`."""

    def finish(self, finished: TurnFinished) -> bytes:
        """Return the last bytes of the response."""

    def keep_alive(self) -> bytes:
        """Return bytes that keep the connection open and that clients ignore."""


async def stream_turn(
    turn: Turn, writer: ResponseWriter, service: Service, record: RequestRecord
) -> AsyncGenerator[bytes]:
    """Run a turn and yield the bytes of its response; `record` gets how it ended and the tokens it used.

    Every error ends the response with a message. Closing the generator early cancels the model and the tools, and
    waits until they have ended.
    """
    yield writer.start() or writer.keep_alive()
    channel, finished, known_messages = Channel(), None, len(turn.history.messages)
    work = asyncio.create_task(_run_turn(turn, service, channel))
    try:
        async with aclosing(channel.stream_batches(work, service.settings.keep_alive_s)) as batches:
            async for batch in batches:
                if finished and finished.reason != "cancelled":
                    continue  # events of toolkits that close come too late: the response is complete
                data = writer.write(batch) if batch else writer.keep_alive()
                if ends := [event for event in batch if isinstance(event, TurnFinished)]:
                    finished = ends[-1]
                    if finished.reason != "cancelled":
                        data += writer.finish(finished)
                if data:
                    yield data
    except Exception as error:
        end = _describe_failure(error)
        if not finished or finished.reason == "cancelled":  # else the response is complete, and closing failed
            finished = end
            yield writer.finish(finished)
    finally:
        work.cancel()
        with anyio.CancelScope(shield=True):  # the response's cancel scope would cancel this wait again and again
            await asyncio.wait([work])
        record.ending = finished.reason if finished else "cancelled"
        record.usage = sum(turn.history.turn_usage.values(), Usage())
        if service.settings.log_content:
            new_messages = turn.history.messages[known_messages:]
            answers = (message.text for message in new_messages if message.role == "assistant")
            record.content = {"asked": turn.question, "answered": "\n\n".join(filter(None, answers))}


def _describe_failure(error: Exception) -> TurnFinished:
    match error:
        case TimeoutError():
            return SERVER_STOPPING
        case GooseLikeError():
            return TurnFinished(reason="error", detail=str(error), exit_code=error.exit_code)
    logging.getLogger(__name__).error("a request failed", exc_info=error)
    return INTERNAL_ERROR


async def _run_turn(turn: Turn, service: Service, channel: Channel) -> None:
    """Run the turn in a temporary session.

    Raises:
        TimeoutError: the service stopped the turn.
    """
    limits = service.limits
    steps = limits.steps - turn.steps_used
    if steps <= 0:
        channel.notify(TurnFinished(reason="step_limit", detail=f"the limit of {limits.steps} steps", exit_code=3))
        return
    with ExitStack() as stack:
        session = Session.temporary()
        stack.callback(session.close)
        session.history = turn.history
        for data, source in turn.images:
            save_image(data, source, session.outputs)
        async with asyncio.timeout(None) as timeout:
            with service.track_turn(timeout):
                async with build_exchange(
                    turn.profile,
                    channel,
                    session=session,
                    workspace=service.workspace,
                    limits=limits.model_copy(update={"steps": steps}),
                    models=service.models,
                ) as exchange:
                    await exchange.reply(turn.message)
