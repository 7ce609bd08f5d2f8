"""The synopsis moderator: it sends the current state of the work instead of the past."""

from collections.abc import Iterator

from typing_extensions import override

from goose_like.agent.view import ExchangeView
from goose_like.core.events import Compacted
from goose_like.core.history import History
from goose_like.core.message import Message

from .base import Moderator, Rewrite
from .truncate import format_plan, quote_first_request, quote_later_requests

_TITLE = "[The state of the work, as it is now; what is below it came after]"
_LINE_CHARS = 160
_MAX_NOTES = 5
_LATER_REQUESTS_TOKENS = 2_000


class Synopsis(Moderator):
    """A moderator that sends one message with the current state, then the newest step.

    The state holds the state of all toolkits, the steps so far and the plan. The request stays small forever, but each
    step costs the vendor's cache for the message; the system prompt and the tools stay cached.
    """

    settings = {"steps": 40}
    includes_plan = True

    @override
    async def rewrite(self, history: History, models: ExchangeView) -> Rewrite:
        messages = history.messages
        answers = [index for index, message in enumerate(messages) if message.role == "assistant"]
        if not answers:
            return Rewrite()
        start = answers[-1]
        user_indexes = history.user_message_indexes
        sections = [
            ("Asked for", quote_first_request(history) if user_indexes and user_indexes[0] < start else ""),
            ("Said since", quote_later_requests(history, start, _LATER_REQUESTS_TOKENS)),
            *self.state_sections(),
            ("Done so far", "\n".join(self._list_done(history, answers))),
            ("Plan", format_plan(history)),
        ]
        text = "\n\n".join([_TITLE, *(f"# {title}\n{text}" for title, text in sections if text)])
        return Rewrite(Compacted(summary=text, kept_count=len(messages) - start, is_routine=True))

    def _list_done(self, history: History, answers: list[int]) -> Iterator[str]:
        """List the steps before the newest one, and the newest reminders before it."""
        messages, start = history.messages, answers[-1]
        shown = answers[:-1][-int(self.config["steps"]) :]
        if len(shown) < len(answers) - 1:
            yield "- ..."
        for index in shown:
            yield from _describe_step(messages[index], messages[index + 1])
        users = set(history.user_message_indexes)
        reminders = [index for index in range(start) if messages[index].role == "user" and index not in users]
        for index in reminders[-_MAX_NOTES:]:
            yield f"- you were told: {_clip(messages[index].text)}"


def _describe_step(answer: Message, after: Message) -> Iterator[str]:
    """Describe the model's text, and each call with its outcome."""
    if text := answer.text.strip():
        yield f"- you said: {_clip(text)}"
    for call, result in zip(answer.tool_calls, after.tool_results, strict=False):
        outcome = f"failed: {_clip(result.output)}" if result.is_error else "done"
        yield f"- {call.name} {_clip(call.arguments)}: {outcome}"


def _clip(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LINE_CHARS else f"{text[:_LINE_CHARS]}..."
