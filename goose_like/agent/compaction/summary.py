"""Ways to shorten a conversation, with and without a model, and the texts that stand for what is left out."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from goose_like.agent.view import ExchangeView, ModelView
from goose_like.core.context import estimate_tokens
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Compacted
from goose_like.core.history import History
from goose_like.core.message import Message, ToolResult

MIN_GAIN = 0.2
"""The smallest share of the context worth saving: each change costs the vendor's prompt cache."""
CHARS_PER_TOKEN = 3
_HEADING = "[Notes on what was said and done before"
"""The start of a summary by a model."""
_FIRST_REQUEST_CHARS = 8_000
"""The repeated part of the first request. A pasted file must not fill the window a second time."""
_LATER_REQUESTS_TOKENS = 1_000
_SUMMARY_CHARS = 16_000
_LONG_RESULT_CHARS = 1_500
_FIRST_LINE_CHARS = 200
_SPARED_STEPS = 3
_ASSUMED_WINDOW_TOKENS = 100_000
_RESULT_CHARS = 2_000
_TITLE_INPUT_CHARS = 4_000
_TITLE_CHARS = 80
_SYSTEM = """\
You write the notes from which a developer agent continues its work. {coverage}

Write under these headings, briefly and exactly, with names, paths, commands and figures as they are:
- Goal: what the person wants, in their own words.
- Constraints: what the person demanded or forbade on the way, in their own words.
- Decisions: each with its reason.
- Findings: what was learned about the code, the data and the environment.
- Failed attempts: what was tried and did not work, and why.
- Files: each with what was done to it.
- State: what works, what fails and how.
- {ending}

Leave out a heading without content, and what no longer matters. Only words of the person are wishes of the person:
goose-like writes the reminders. Invent nothing."""
_COVERS_ALL = "They replace the conversation, which will be gone."
_NEXT_STEP = "Next step."
_COVERS_OLDER_PART = (
    "They replace only its older part, which you read here. The agent also sees the newer steps, word for word after "
    "your notes; you do not see them."
)
_OPEN_THEN = (
    "Open then: what was not done yet at the end of this part. Name no next step: newer steps may have done it."
)

_GO_ON = "[The conversation was shortened. Go on with what was asked last, unless it is done.]"

SaveResult = Callable[[ToolResult], str]
"""Saves the complete output of a result in a file and returns the path."""


def measure(messages: Iterable[Message]) -> int:
    """Estimate the tokens of messages."""
    return sum(map(estimate_tokens, messages))


def saves_enough(history: History, event: Compacted) -> bool:
    """Return whether an event shortens the context by the share `MIN_GAIN`."""
    context = history.context
    return measure(context.preview(event)) <= measure(context.messages) * (1 - MIN_GAIN)


def truncate_history(history: History, target_tokens: int, save_result: SaveResult) -> Compacted:
    """Create the event that shortens the context to about `target_tokens`, which may save little.

    First, long results become one line with the path of the complete output, except in the newest three steps, then
    except in the newest step. Then the oldest steps go, never a call without its result. The summary repeats the first
    request and the plan.
    """
    context = history.context
    own = context.kept_messages
    summary = context.summary.text if context.summary else ""
    before = measure(context.messages)
    # Vendors count differently, and include the prompt and the tools.
    target = int(target_tokens * before / max(context.tokens, before, 1))
    for spared in (_SPARED_STEPS, 1):
        replacements = dict(_shorten_results(history, spared, save_result))
        event = Compacted(summary=summary, kept_count=len(own), replacements=replacements)
        if measure(context.preview(event)) <= target:
            return event
    all_replacements = context.replacements | replacements
    shortened = [message.strip_thinking(all_replacements) for message in own]
    kept_count = count_newest(shortened, target - _FIRST_REQUEST_CHARS // 4, at_least_a_step=True)
    count = len(history.messages) - kept_count
    heading = f"[The oldest {count} messages of this conversation are left out here because the window was full.]"
    if summary.startswith(_HEADING):
        opening = summary[:_SUMMARY_CHARS]
    else:
        opening = quote_first_request(history)
    summary = _write_summary(history, count, _LATER_REQUESTS_TOKENS, heading, opening)
    return Compacted(summary=summary, kept_count=kept_count, replacements=replacements)


def count_newest(messages: Sequence[Message], room_tokens: int, *, at_least_a_step: bool = False) -> int:
    """Count the newest messages that fit into the room and do not begin with a result. The count may be zero."""
    kept = 0
    size = 0
    may_stop = not at_least_a_step
    for count, message in enumerate(reversed(messages), 1):
        size += estimate_tokens(message)
        if size > room_tokens and may_stop:
            break
        may_stop |= message.role == "assistant"
        if message.role != "tool":
            kept = count
    return kept


def _shorten_results(history: History, spared: int, save_result: SaveResult) -> Iterator[tuple[str, str]]:
    """Yield the ids of calls with long results before the newest `spared` steps, with one line for each."""
    own = history.context.kept_messages
    steps = [index for index, message in enumerate(own) if message.role == "assistant"]
    end = steps[-spared] if len(steps) >= spared else 0
    for message in own[:end]:
        for result in message.tool_results:
            is_long = len(result.output) > _LONG_RESULT_CHARS
            if is_long and result.call_id not in history.context.replacements:
                yield result.call_id, _shorten_result(result, save_result)


def _shorten_result(result: ToolResult, save_result: SaveResult) -> str:
    lines = result.output.splitlines()
    first = lines[0][:_FIRST_LINE_CHARS]
    path = save_result(result)
    return f"{first}\n[{len(lines):,} lines, left out here since; all of it is in {path}]"


async def compact_history(
    history: History, view: ExchangeView, *, focus: str = "", kept_count: int = 0, verbatim_tokens: int = 2_000
) -> Compacted:
    """Create the event of `summarize_history`. The server of the main model shortens the conversation if it can.

    The server keeps what the model thought, but takes no `focus`. The fast model writes the summary for all other
    servers.
    """
    found = None
    if not focus:
        found = await view.processor.compact(kept_count)
    notes = found.summary if found else ""
    event = await summarize_history(
        history, view.accelerator, focus=focus, kept_count=kept_count, verbatim_tokens=verbatim_tokens, notes=notes
    )
    if found is None:
        return event
    suffix = "" if kept_count else _GO_ON  # a server answers a message, not its own summary
    return event.model_copy(update={"verbatim": found.verbatim, "suffix": suffix})


async def summarize_history(
    history: History,
    model: ModelView,
    *,
    focus: str = "",
    kept_count: int = 0,
    verbatim_tokens: int = 2_000,
    notes: str = "",
) -> Compacted:
    """Create the event that replaces all but the last `kept_count` messages with a summary, which may save little.

    Without `notes` the model writes them. The kept messages must begin with a call. The summary keeps `focus`, and
    quotes the first request and up to `verbatim_tokens` of the newest user messages.

    Raises:
        GooseLikeError: there is no conversation yet, or no message before the kept ones.
        ProviderError: the model gave no complete answer.
    """
    messages = history.context.messages
    if not messages:
        raise GooseLikeError("nothing was said yet")
    older_count = history.context.count_older(kept_count)
    if not older_count:
        raise GooseLikeError("it has no messages older than the newest steps")
    text = _describe_messages(history, messages[:older_count])
    window = model.model.window or _ASSUMED_WINDOW_TOKENS
    room = window * CHARS_PER_TOKEN // 2
    if len(text) > room:
        start = text[: room // 4]
        end = text[-room * 3 // 4 :]
        text = f"{start}\n\n[... left out here ...]\n\n{end}"
    question = f"{text}\n\nWrite the notes."
    if focus:
        question += f" Above all keep this: {focus}"
    if kept_count:
        system = _SYSTEM.format(coverage=_COVERS_OLDER_PART, ending=_OPEN_THEN)
        heading = f"{_HEADING}; newer steps follow them and count more]"
    else:
        system = _SYSTEM.format(coverage=_COVERS_ALL, ending=_NEXT_STEP)
        heading = f"{_HEADING}]"
    if not notes:
        notes = await model.ask(question, system=system, purpose="summary")
    summarized_count = len(history.messages) - kept_count
    opening = quote_first_request(history)
    summary = _write_summary(history, summarized_count, verbatim_tokens, f"{heading}\n{notes}", opening)
    return Compacted(summary=summary, kept_count=kept_count)


async def suggest_title(history: History, model: ModelView) -> str:
    """Let the model write a title of a few words for the conversation.

    Raises:
        ProviderError: the model gave no complete answer.
    """
    text = _describe_messages(history, history.messages)[:_TITLE_INPUT_CHARS]
    system = "You name conversations. Answer with a title of at most six words, in the person's language, nothing else."
    answer = await model.ask(text, system=system, purpose="title")
    title = " ".join(answer.split())
    return title[:_TITLE_CHARS].strip("\"'.#* ")


def _describe_messages(history: History, messages: Sequence[Message]) -> str:
    """Describe messages of a history in their order, each result behind its call."""
    said_by_person = {history.messages[index].text for index in history.user_message_indexes}
    parts: list[str] = []
    followers = [*messages[1:], None]
    for message, after in zip(messages, followers, strict=False):  # no message has one follower
        if message is history.context.summary:
            parts.append(f"Earlier notes: {message.text}")
        elif message.role == "assistant" and message.text:
            parts.append(f"You: {message.text}")
        elif message.text in said_by_person:
            parts.append(f"The person: {message.text}")
        elif message.text:
            parts.append(f"A reminder by goose-like: {message.text}")
        results = iter(after.tool_results if after else ())
        for call in message.tool_calls:
            parts.append(f"You called {call.name}: {_clip(call.arguments)}")
            result = next(results, None)
            if result:
                outcome = "It failed" if result.is_error else "It gave"
                parts.append(f"{outcome}: {_clip(result.output)}")
    return "\n\n".join(parts)


def _clip(text: str) -> str:
    half = _RESULT_CHARS // 2
    if len(text) <= 2 * half:
        return text
    return f"{text[:half]} [...] {text[-half:]}"


def _write_summary(history: History, end: int, later_requests_tokens: int, *openings: str) -> str:
    """Write the summary of the messages before `end`: the openings, later requests of the user, and the plan."""
    parts = [*openings, quote_later_requests(history, end, later_requests_tokens), format_plan(history)]
    return "\n\n".join(filter(None, parts))


def quote_first_request(history: History) -> str:
    """Quote the user's first request."""
    indexes = history.user_message_indexes
    if not indexes:
        return ""
    request = history.messages[indexes[0]].text
    if not request:
        return ""
    if len(request) > _FIRST_REQUEST_CHARS:
        request = f"{request[:_FIRST_REQUEST_CHARS]} [...]"
    return f"It began with this request:\n{request}"


def quote_later_requests(history: History, end: int, limit_tokens: int) -> str:
    """Quote the user's messages after the first and before message `end`, the newest ones up to the limit.

    At least the start of the newest one is included.
    """
    lines: list[str] = []
    room = limit_tokens * CHARS_PER_TOKEN
    indexes = [index for index in history.user_message_indexes[1:] if index < end]
    for index in reversed(indexes):
        line = f"- {history.messages[index].text}"
        if len(line) <= room:
            lines.append(line)
        elif not lines:
            lines.append(f"{line[:room]} [...]")
        else:
            break
        room -= len(line)
    if not lines:
        return ""
    lines.append("Later the person said, word for word:")
    return "\n".join(reversed(lines))


def format_plan(history: History, title: str = "The plan so far") -> str:
    """Format the plan for the model, with the status of each task."""
    if not history.plan:
        return ""
    lines = [f"{title}:"]
    for task in history.plan:
        lines.append(f"- [{task.status}] {task.description}")
    return "\n".join(lines)
