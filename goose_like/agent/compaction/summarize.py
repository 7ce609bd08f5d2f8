"""A summary in the place of a long conversation, written by the fast model."""

from collections.abc import Iterator, Sequence

from goose_like.agent.view import ModelView
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Compacted
from goose_like.core.history import History, estimate_tokens
from goose_like.core.message import Message, ToolCall, ToolResult

from .truncate import CHARACTERS_A_TOKEN, GAIN, NOTES, first_words, newest_words, plan_so_far

_RESULT_CHARACTERS = 2_000
_TITLED_CHARACTERS = 4_000
_TITLE_CHARACTERS = 80
_SYSTEM = (
    "You write the notes from which a developer agent goes on with its work; the conversation itself will be gone. "
    "Write under these headings, briefly and exactly, with names, paths, commands and figures as they are: "
    "Goal (what the person wants, in their own words), Decisions, Files (each with what was done to it), "
    "State (what works, what fails and how), Next step. Leave out what no longer matters. Invent nothing."
)


async def summarized(
    history: History, model: ModelView, *, focus: str = "", kept: int = 0, verbatim_tokens: int = 2_000
) -> Compacted:
    """The event that puts a summary in the place of all but the last `kept` messages, which must begin with a call.

    `focus` is what it must not lose. What the person said stands in it word for word, the first request and as much of
    the newest as `verbatim_tokens` allow. The history is left as it is.

    Raises:
        GooseLikeError: nothing was said, or too little would be gained.
        ProviderError: the model gave no whole answer.
    """
    context = history.context
    if not context:
        raise GooseLikeError("nothing was said yet")
    told = context[: len(context) - kept]
    text = "\n\n".join(part for message in told for part in _told(message))
    room = (model.model.window or 100_000) * CHARACTERS_A_TOKEN // 2
    if len(text) > room:
        text = f"{text[: room // 4]}\n\n[... left out here ...]\n\n{text[-room * 3 // 4 :]}"
    asked = f"{text}\n\nWrite the notes." + (f" Above all keep this: {focus}" if focus else "")
    notes = await model.ask(asked, system=_SYSTEM, purpose="summary")
    words = newest_words(history, len(history.messages) - kept, verbatim_tokens)
    parts = [f"{NOTES}\n{notes}", first_words(history), words, plan_so_far(history)]
    event = Compacted(summary="\n\n".join(filter(None, parts)), kept=kept)
    before, after = (sum(map(estimate_tokens, messages)) for messages in (context, history.context_after(event)))
    if after > before * (1 - GAIN):
        raise GooseLikeError(f"a summary would take {after:,} of {before:,} tokens: it is not worth it")
    return event


async def title(history: History, model: ModelView) -> str:
    """What the conversation is about, in a few words of the model's.

    Raises:
        ProviderError: the model gave no whole answer.
    """
    text = "\n\n".join(part for message in history.messages for part in _told(message))[:_TITLED_CHARACTERS]
    system = "You name conversations. Answer with a title of at most six words, in the person's language, nothing else."
    words = (await model.ask(text, system=system, purpose="title")).split()
    return " ".join(words)[:_TITLE_CHARACTERS].strip("\"'.#* ")


def newest(messages: Sequence[Message], limit_tokens: int) -> int:
    """How many of the newest messages stay below a limit, beginning with one that is no result; maybe none."""
    kept, size = 0, 0
    for count, message in enumerate(reversed(messages), 1):
        size += estimate_tokens(message)
        if size > limit_tokens:
            break
        if message.role != "tool":
            kept = count
    return kept


def _told(message: Message) -> Iterator[str]:
    """A message as plain words; of a long result both ends."""
    if message.text:
        yield f"{'The person' if message.role == 'user' else 'You'}: {message.text}"
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield f"You called {part.name}: {_clipped(part.arguments)}"
        elif isinstance(part, ToolResult):
            yield f"{'It failed' if part.is_error else 'It gave'}: {_clipped(part.output)}"


def _clipped(text: str) -> str:
    half = _RESULT_CHARACTERS // 2
    return text if len(text) <= 2 * half else f"{text[:half]} [...] {text[-half:]}"
