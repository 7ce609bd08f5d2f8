"""Summaries of a long conversation, and titles, written by the fast model."""

from collections.abc import Iterator

from goose_like.agent.view import ModelView
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Compacted
from goose_like.core.history import History, estimate_tokens
from goose_like.core.message import Message, ToolCall, ToolResult

from .truncate import (
    CHARS_PER_TOKEN,
    MIN_GAIN,
    SUMMARY_HEADING,
    format_plan,
    quote_first_request,
    quote_later_requests,
)

_ASSUMED_WINDOW_TOKENS = 100_000
_RESULT_CHARS = 2_000
_TITLE_INPUT_CHARS = 4_000
_TITLE_CHARS = 80
_SYSTEM = (
    "You write the notes from which a developer agent continues its work; the conversation itself will be gone. "
    "Write under these headings, briefly and exactly, with names, paths, commands and figures as they are: "
    "Goal (what the person wants, in their own words), Decisions, Files (each with what was done to it), "
    "State (what works, what fails and how), Next step. Leave out what no longer matters. Invent nothing."
)


async def summarize_history(
    history: History, model: ModelView, *, focus: str = "", kept_count: int = 0, verbatim_tokens: int = 2_000
) -> Compacted:
    """Create the event that replaces all but the last `kept_count` messages with a summary. The history stays as is.

    The kept messages must begin with a call. The summary keeps `focus`, and quotes the first
    request and up to `verbatim_tokens` of the newest user messages.

    Raises:
        GooseLikeError: there is no conversation yet, or a summary would save too little.
        ProviderError: the model gave no complete answer.
    """
    context = history.context
    if not context:
        raise GooseLikeError("nothing was said yet")
    older = context[: len(context) - kept_count]
    text = "\n\n".join(part for message in older for part in _describe_message(message))
    room = (model.model.window or _ASSUMED_WINDOW_TOKENS) * CHARS_PER_TOKEN // 2
    if len(text) > room:
        text = f"{text[: room // 4]}\n\n[... left out here ...]\n\n{text[-room * 3 // 4 :]}"
    question = f"{text}\n\nWrite the notes." + (f" Above all keep this: {focus}" if focus else "")
    notes = await model.ask(question, system=_SYSTEM, purpose="summary")
    requests = quote_later_requests(history, len(history.messages) - kept_count, verbatim_tokens)
    parts = [f"{SUMMARY_HEADING}\n{notes}", quote_first_request(history), requests, format_plan(history)]
    event = Compacted(summary="\n\n".join(filter(None, parts)), kept_count=kept_count)
    before, after = (sum(map(estimate_tokens, messages)) for messages in (context, history.preview_context(event)))
    if after > before * (1 - MIN_GAIN):
        raise GooseLikeError(f"a summary would take {after:,} of {before:,} tokens: it is not worth it")
    return event


async def suggest_title(history: History, model: ModelView) -> str:
    """Let the model write a title of a few words for the conversation.

    Raises:
        ProviderError: the model gave no complete answer.
    """
    text = "\n\n".join(part for message in history.messages for part in _describe_message(message))
    system = "You name conversations. Answer with a title of at most six words, in the person's language, nothing else."
    words = (await model.ask(text[:_TITLE_INPUT_CHARS], system=system, purpose="title")).split()
    return " ".join(words)[:_TITLE_CHARS].strip("\"'.#* ")


def _describe_message(message: Message) -> Iterator[str]:
    if message.text:
        yield f"{'The person' if message.role == 'user' else 'You'}: {message.text}"
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield f"You called {part.name}: {_clip(part.arguments)}"
        elif isinstance(part, ToolResult):
            yield f"{'It failed' if part.is_error else 'It gave'}: {_clip(part.output)}"


def _clip(text: str) -> str:
    """Keep both ends of a long text."""
    half = _RESULT_CHARS // 2
    return text if len(text) <= 2 * half else f"{text[:half]} [...] {text[-half:]}"
