"""A summary in the place of a long conversation, written by the fast model."""

from collections.abc import Iterator

from .errors import GooseLikeError
from .events import Compacted
from .history import History, estimate_tokens
from .message import Message, ToolCall, ToolResult
from .view import ModelView

GAIN = 0.2
"""A summary that does not make the conversation shorter by this share is not worth the loss."""

_CHARACTERS_A_TOKEN = 3
_RESULT_CHARACTERS = 2_000
_SYSTEM = (
    "You write the notes from which a developer agent goes on with its work; the conversation itself will be gone. "
    "Write under these headings, briefly and exactly, with names, paths, commands and figures as they are: "
    "Goal (what the person wants, in their own words), Decisions, Files (each with what was done to it), "
    "State (what works, what fails and how), Next step. Leave out what no longer matters. Invent nothing."
)


async def summarized(history: History, model: ModelView, focus: str = "") -> Compacted:
    """The event that puts a summary in the place of all that was said; `focus` is what it must not lose.

    The history is left as it is.

    Raises:
        GooseLikeError: nothing was said, or too little would be gained.
        ProviderError: the model gave no whole answer.
    """
    context = history.context
    if not context:
        raise GooseLikeError("nothing was said yet")
    text = "\n\n".join(part for message in context for part in _told(message))
    room = (model.model.window or 100_000) * _CHARACTERS_A_TOKEN // 2
    if len(text) > room:
        text = f"{text[: room // 4]}\n\n[... left out here ...]\n\n{text[-room * 3 // 4 :]}"
    asked = f"{text}\n\nWrite the notes." + (f" Above all keep this: {focus}" if focus else "")
    notes = await model.ask(asked, system=_SYSTEM, purpose="summary")
    plan = "\n".join(f"- [{task.status}] {task.description}" for task in history.plan)
    summary = f"[Notes on what was said and done before]\n{notes}" + (f"\n\nThe plan:\n{plan}" if plan else "")
    before, after = sum(map(estimate_tokens, context)), estimate_tokens(Message.user(summary))
    if after > before * (1 - GAIN):
        raise GooseLikeError(f"a summary would take {after:,} of {before:,} tokens: it is not worth it")
    return Compacted(summary=summary, kept=0)


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
