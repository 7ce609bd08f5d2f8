"""One request to the model: its answer streamed to the journal and recorded."""

from collections.abc import Collection, Sequence
from contextlib import aclosing
from operator import is_

from goose_like.core.errors import AnswerRefusedError, ProviderError
from goose_like.core.events import MessageCompleted, Retrying, StateSaved, TextDelta, ThinkingDelta, UsageRecorded
from goose_like.core.history import History
from goose_like.core.message import Message, Part, ToolCall, Usage
from goose_like.providers.base import Model, Request
from goose_like.providers.retry import RetryPolicy, stream_with_retries

from .budget import Budget, BudgetError
from .journal import Journal

_WITHHELD_KEY = "withheld_reasoning"
"""The key in `History.state` of the reasons for withheld reasoning that the person was told."""


async def stream_answer(
    model: Model, request: Request, policy: RetryPolicy, journal: Journal, budget: Budget
) -> MessageCompleted:
    """Send a request, emit the answer while it arrives, and return it. Only what is emitted is masked.

    The text of an answer that broke off is recorded as cut, unless another model takes over. The tokens of each
    attempt count. A server that pauses its answer, or a model that writes it anew, goes on only within the budget.

    Raises:
        ProviderError: no complete answer came.
        BudgetError: the budget does not allow the rest of an answer that the server paused, or a new one.
    """
    texts: list[str] = []
    written_bytes = 0
    try:
        async with aclosing(stream_with_retries(model.provider, request, policy)) as deltas:
            async for delta in deltas:
                if isinstance(delta, MessageCompleted):
                    texts.clear()
                    return _record_answer(delta, model, request, journal)
                if isinstance(delta, TextDelta | ThinkingDelta):
                    written_bytes += len(delta.text.encode(errors="replace"))
                if isinstance(delta, TextDelta):
                    texts.append(delta.text)
                elif isinstance(delta, UsageRecorded):
                    request.told_usage.clear()
                    written_bytes = 0
                    _record_part(delta, model, journal, budget)
                    continue
                elif isinstance(delta, Retrying):
                    texts.clear()
                    _record_told_usage(model, request, written_bytes, journal, "failed attempt")
                    written_bytes = 0
                journal.emit(delta)
    except BaseException as error:
        # First, as the estimate is of the history without the answer.
        _record_told_usage(model, request, written_bytes, journal, "cut answer")
        if isinstance(error, ProviderError) and model.find_fallback(error):
            raise
        if texts:
            _record_cut_text("".join(texts), error, journal)
        raise
    raise AssertionError("stream_with_retries ends with a message or raises")


def _record_part(spent: UsageRecorded, model: Model, journal: Journal, budget: Budget) -> None:
    """Record the tokens of an answer that was paused or thrown away. Raise BudgetError if it may not go on."""
    journal.emit(spent.model_copy(update={"model": model.price_label}))
    end = budget.find_spent()
    if end:
        raise BudgetError(end)


def _record_answer(answer: MessageCompleted, model: Model, request: Request, journal: Journal) -> MessageCompleted:
    """Record a complete answer, with repaired calls and the label of its model, and return it."""
    message = _make_ids_unique(answer.message, journal.history.call_ids)
    names = {tool.name for tool in (*request.all_tools, *request.all_deferred_tools)}
    message = _remove_name_prefixes(message, names)
    label = _find_label(answer, model, journal)
    _tell_withheld(answer.withheld, journal)
    recorded = answer
    if message is not answer.message or label != answer.model:
        recorded = answer.model_copy(update={"message": message, "model": label})
    journal.emit(recorded)
    return recorded


def _find_label(answer: MessageCompleted, model: Model, journal: Journal) -> str:
    """Find the label of the model that answered. It is empty for the session's processor."""
    if answer.model:
        journal.log(f"{answer.model} answered, as {model.name} declined")
        return answer.model
    header = journal.history.header
    label = model.price_label
    is_processor = header is not None and header.models.get("processor") == label
    return "" if is_processor else label


def _tell_withheld(reasons: Sequence[str], journal: Journal) -> None:
    """Tell the person once that the server kept earlier reasoning from the model: answers may be worse."""
    told = journal.history.state.get(_WITHHELD_KEY)
    if reasons and told != list(reasons):
        journal.emit(StateSaved(toolkit=_WITHHELD_KEY, value=list(reasons)))
        journal.log(f"the server withheld earlier reasoning from the model ({', '.join(reasons)})")


def _record_cut_text(text: str, error: BaseException, journal: Journal) -> None:
    """Record the text of an answer that broke off."""
    if isinstance(error, AnswerRefusedError):
        # What the model wrote before it declined would make it decline again.
        journal.emit(Retrying(text="the text above is left out, as the model declined to go on", wait_s=0))
    else:
        journal.emit(MessageCompleted(message=Message.assistant(text), is_cut=True))


def _record_told_usage(model: Model, request: Request, written_bytes: int, journal: Journal, purpose: str) -> None:
    """Record the tokens of an attempt that gave no answer, once. Without any, the server did no work."""
    if request.told_usage:
        told = request.told_usage.pop()
        usage = _describe_cut_usage(model, request, told, written_bytes // 4, journal.history, purpose)
        journal.emit(usage)


def _describe_cut_usage(
    model: Model, request: Request, told: Usage, written_tokens: int, history: History, purpose: str
) -> UsageRecorded:
    """Describe the tokens of an answer that was cut. What the server has not told is estimated, and marked so."""
    input_tokens = told.input_tokens
    if not input_tokens:
        purpose = f"{purpose} (estimated)"
        input_tokens = estimate_input_tokens(request, history)
    output_tokens = max(told.output_tokens, written_tokens)
    usage = told.model_copy(update={"input_tokens": input_tokens, "output_tokens": output_tokens})
    return UsageRecorded(model=model.price_label, usage=usage, purpose=purpose)


def estimate_input_tokens(request: Request, history: History) -> int:
    """Estimate the tokens of a request that continues the conversation."""
    tokens = history.context.tokens
    if not history.context.measured_count:  # then the context alone was estimated
        tools = [(tool.name, tool.description, tool.schema) for tool in request.all_tools]
        tokens += len(repr((request.system, tools))) // 4
    return tokens


def _remove_name_prefixes(message: Message, names: Collection[str]) -> Message:
    """Remove the prefix of a call's name that some models learned from OpenAI's format, as in `functions.shell`."""
    parts = []
    for part in message.parts:
        if isinstance(part, ToolCall) and part.name not in names:
            bare = part.name.removeprefix("functions.").removeprefix("default_api.")
            if bare in names:
                part = part.model_copy(update={"name": bare})
        parts.append(part)
    return _replace_parts(message, parts)


def _make_ids_unique(message: Message, used: set[str]) -> Message:
    """Give a new id to each call without one, or with one used before: results are found by id."""
    taken: set[str] = set()  # by this message; `used` has the ids of a whole session, which no step may copy
    parts = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            number = len(used) + len(taken)
            while not part.id or part.id in used or part.id in taken:
                number += 1
                part = part.model_copy(update={"id": f"call_{number}"})
            taken.add(part.id)
        parts.append(part)
    return _replace_parts(message, parts)


def _replace_parts(message: Message, parts: Sequence[Part]) -> Message:
    """Return a message with these parts: the message itself, if it has the same ones."""
    if all(map(is_, parts, message.parts)):
        return message
    return message.model_copy(update={"parts": tuple(parts)})
