"""One turn for one request: run the exchange, and stream its events as a protocol writes them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol

import anyio
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.types import Receive, Scope, Send
from typing_extensions import override

from goose_like.agent.budget import describe_step_limit
from goose_like.agent.build import ClientPart, build_exchange
from goose_like.agent.channel import Channel
from goose_like.config.profile import Profile
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Event, FileChanged, Logged, Retrying, Status, SubagentEvent, TurnFinished
from goose_like.core.history import History
from goose_like.core.images import save_image
from goose_like.core.message import Message
from goose_like.providers.json_answer import AnswerSchema
from goose_like.sessions.session import Session

from .middleware import RequestRecord
from .service import Service

FAULT = "a fault in goose_like or in a plugin; the server's log has more"

ImageData = tuple[bytes, str]
"""An image's bytes and the name of its source."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn to run: the conversation so far, and the message to reply to.

    `message` is the user's, or has the results of calls that the client ran: then it continues the last turn.
    `images` are those of all messages; the session stores their bytes.
    The other fields are the client's wishes.
    """

    history: History
    message: Message
    images: tuple[ImageData, ...] = ()
    client: ClientPart = field(default_factory=ClientPart)
    max_tokens: int | None = None
    temperature: float | None = None
    answer_schema: AnswerSchema | None = None

    @property
    def earlier_messages(self) -> list[Message]:
        """The messages of this turn from earlier requests, starting with the user's."""
        user_indexes = self.history.user_message_indexes
        if not self.message.tool_results or not user_indexes:
            return []
        return self.history.messages[user_indexes[-1] :]

    @property
    def earlier_answers(self) -> list[Message]:
        """The model's messages of this turn from earlier requests."""
        return [message for message in self.earlier_messages if message.role == "assistant"]

    @property
    def earlier_steps(self) -> int:
        """The steps of this turn that earlier requests spent."""
        return len(self.earlier_answers)


class ResponseWriter(Protocol):
    """A protocol's way to write the events of a turn."""

    @property
    def has_enough(self) -> bool:
        """True once the rest of the turn is not wanted: it is cancelled, and the response ends."""

    def start(self) -> bytes:
        """Return the first bytes of the response."""

    def write(self, events: Sequence[Event]) -> bytes:
        """Return the bytes for some events; the end of the turn is written by `finish`."""

    def finish(self, finished: TurnFinished) -> bytes:
        """Return the last bytes of the response."""

    def keep_alive(self) -> bytes:
        """Return bytes that keep the connection open and that clients ignore."""


class EventStream(EventSourceResponse):
    """A response with server-sent events that closes `resources` when the stream ends for any reason."""

    def __init__(self, content: AsyncIterator[bytes], resources: ExitStack, send_timeout_s: float) -> None:
        super().__init__(content, sep="\n", ping=0, send_timeout=send_timeout_s)
        self._resources = resources

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            logging.getLogger(__name__).warning("closed a stream: the client stopped reading")
        finally:
            self._resources.close()


async def stream_turn(
    turn: Turn, profile: Profile, writer: ResponseWriter, service: Service, record: RequestRecord
) -> AsyncGenerator[bytes]:
    """Run a turn and yield the bytes of its response; `record` gets how it ended and the tokens it used.

    Every error ends the response with a message. Closing the generator early cancels the model and the tools, and
    waits until they have ended.
    """
    yield writer.start()
    channel = Channel()
    finished = None
    known_messages = len(turn.history.messages)
    messages = [*turn.earlier_messages, turn.message]
    question = messages[0].first_text
    work = asyncio.create_task(_run_turn(turn, profile, service, channel))
    try:
        async with aclosing(channel.stream(work, service.settings.keep_alive_s)) as batches:
            async for events in batches:
                if finished:
                    continue  # events of toolkits that close come too late: the response is complete
                batch = [_hide_addresses(event, service) for event in events]
                data, finished = _encode(batch, writer)
                if data:
                    yield data
                if writer.has_enough:
                    break
        if writer.has_enough:
            await _cancel(work)  # which counts the tokens of its last request
            finished = TurnFinished(reason="stop")
            yield writer.finish(finished)
    except Exception as error:
        failure = _describe_failure(error, service)
        if not finished:  # else the response is complete, and closing failed
            finished = failure
            yield writer.finish(finished)
    finally:
        await _cancel(work)
        record.ending = finished.reason if finished else "cancelled"
        record.usage = turn.history.usage.turn_total
        if service.settings.log_content:
            new_messages = turn.history.messages[known_messages:]
            answers = (message.text for message in new_messages if message.role == "assistant")
            answer = "\n\n".join(filter(None, answers))
            record.content = {"asked": question, "answered": answer}


async def _cancel(work: asyncio.Task[None]) -> None:
    """Cancel a turn, and wait until it has ended."""
    work.cancel()
    with anyio.CancelScope(shield=True):  # the response's cancel scope would cancel this wait again and again
        await asyncio.wait([work])


def _encode(events: Sequence[Event], writer: ResponseWriter) -> tuple[bytes, TurnFinished | None]:
    """Encode events. Return the end of the turn too, if it is one of them and the writer wants it."""
    if not events:
        return writer.keep_alive(), None
    data = writer.write(events)
    if writer.has_enough:
        return data, None
    finished = None
    for event in events:
        if isinstance(event, TurnFinished) and event.reason != "cancelled":  # an error follows that one
            finished = event
    if finished:
        data += writer.finish(finished)
    return data, finished


def _hide_addresses(event: Event, service: Service) -> Event:
    """Replace the addresses of the models' servers in texts of ours: clients may be strangers."""
    if isinstance(event, SubagentEvent):
        return event.model_copy(update={"event": _hide_addresses(event.event, service)})
    if isinstance(event, Retrying | Status | Logged):
        return event.model_copy(update={"text": service.hide_addresses(event.text)})
    if isinstance(event, FileChanged):
        return event.model_copy(update={"diff": service.hide_addresses(event.diff)})
    if isinstance(event, TurnFinished):
        return event.model_copy(update={"detail": service.hide_addresses(event.detail)})
    return event


def _describe_failure(error: Exception, service: Service) -> TurnFinished:
    match error:
        case TimeoutError():
            detail = "this server is being stopped; ask again in a moment"
            return TurnFinished(reason="error", detail=detail, exit_code=143)
        case GooseLikeError():
            detail = service.hide_addresses(str(error))
            return TurnFinished(reason="error", detail=detail, exit_code=error.exit_code)
    logging.getLogger(__name__).error("a request failed", exc_info=error)
    return TurnFinished(reason="error", detail=FAULT, exit_code=1)


async def _run_turn(turn: Turn, profile: Profile, service: Service, channel: Channel) -> None:
    """Run the turn in a temporary session.

    Raises:
        TimeoutError: the service stopped the turn.
    """
    limits = service.limits
    steps = limits.steps - turn.earlier_steps
    if steps <= 0:
        channel.notify(describe_step_limit(limits.steps))
        return
    async with AsyncExitStack() as stack:
        session = Session.temporary()
        stack.callback(session.close)
        session.history = turn.history
        for data, source in turn.images:
            save_image(data, source, session.outputs)
        timeout = await stack.enter_async_context(asyncio.timeout(None))
        service.running_turns.add(timeout)
        stack.callback(service.running_turns.discard, timeout)
        models = service.models
        processor = replace(models.processor, max_tokens=turn.max_tokens, temperature=turn.temperature)
        building = build_exchange(
            profile,
            channel,
            session=session,
            workspace=service.workspace,
            limits=limits.model_copy(update={"steps": steps}),
            models=replace(models, processor=processor),
            client=turn.client,
        )
        exchange = await stack.enter_async_context(building)
        exchange = replace(exchange, answer_schema=turn.answer_schema)
        await exchange.reply(turn.message)
