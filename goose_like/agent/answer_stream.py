"""One request to the model: its answer streamed to the journal and recorded."""

from contextlib import aclosing

from goose_like.core.errors import ProviderError
from goose_like.core.events import MessageCompleted, Retrying, TextDelta
from goose_like.core.message import Message, ToolCall
from goose_like.providers.base import Model, Request
from goose_like.providers.retry import RetryPolicy, stream_with_retries

from .journal import Journal


async def stream_answer(model: Model, request: Request, policy: RetryPolicy, journal: Journal) -> MessageCompleted:
    """Send a request, emit the answer while it arrives, and return it. Only what is emitted is masked.

    The text of an answer that broke off is recorded as cut, unless another model takes over.

    Raises:
        ProviderError: no complete answer came.
    """
    texts: list[str] = []
    try:
        async with aclosing(stream_with_retries(model.provider, request, policy)) as deltas:
            async for delta in deltas:
                if isinstance(delta, MessageCompleted):
                    texts.clear()
                    message = _make_ids_unique(delta.message, journal.history.call_ids)
                    header = journal.history.header
                    label = "" if header and header.models.get("processor") == model.label else model.label
                    journal.emit(answer := delta.model_copy(update={"message": message, "model": label}))
                    return answer
                if isinstance(delta, TextDelta):
                    texts.append(delta.text)
                elif isinstance(delta, Retrying):
                    texts.clear()
                journal.emit(delta)
    except BaseException as error:
        if texts and not (isinstance(error, ProviderError) and model.find_fallback(error)):
            journal.emit(MessageCompleted(message=Message.assistant("".join(texts)), is_cut=True))
        raise
    raise AssertionError("stream_with_retries ends with a message or raises")


def _make_ids_unique(message: Message, used: set[str]) -> Message:
    """Give a new id to each call without one, or with one used before: results are found by id."""
    taken = set(used)
    parts = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            number = len(taken)
            while not part.id or part.id in taken:
                number += 1
                part = part.model_copy(update={"id": f"call_{number}"})
            taken.add(part.id)
        parts.append(part)
    return message.model_copy(update={"parts": tuple(parts)})
