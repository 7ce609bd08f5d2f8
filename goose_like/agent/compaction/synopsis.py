"""Synopsis: in place of the past the model is told the state of the work, made anew at each step."""

from collections.abc import Iterator, Sequence

from goose_like.agent.view import ExchangeView
from goose_like.core.events import Compacted
from goose_like.core.history import History
from goose_like.core.message import Message, ToolResult

from .base import Moderator, Rewrite
from .truncate import first_words, newest_words, plan_so_far

_TITLE = "[The state of the work, as it is now; what is below it came after]"
_CHARACTERS = 160
_NOTED = 5
_LATER_TOKENS = 2_000


class Synopsis(Moderator):
    """Sends one message with all that is true now (what the toolkits know, what was done, the plan), and the newest
    step. It costs the vendor's cache at each step and stays small for ever; system prompt and tools stay cached.
    """

    settings = {"steps": 40}
    tells_plan = True

    async def rewrite(self, history: History, models: ExchangeView) -> Rewrite:
        messages = history.messages
        answers = [place for place, message in enumerate(messages) if message.role == "assistant"]
        if not answers:
            return Rewrite(history.context)
        start = answers[-1]
        told = answers[:-1][-int(self.config["steps"]) :]
        done = [line for place in told for line in _told(messages[place], messages[place + 1])]
        said = set(history.said)
        noted = [place for place in range(start) if messages[place].role == "user" and place not in said]
        done += [f"- you were told: {_line(messages[place].text)}" for place in noted[-_NOTED:]]
        sections = [
            ("Asked for", first_words(history) if history.said and history.said[0] < start else ""),
            ("Said since", newest_words(history, start, _LATER_TOKENS)),
            *self.live(),
            ("Done so far", "\n".join([*(["- ..."] if len(told) < len(answers) - 1 else []), *done])),
            ("Plan", plan_so_far(history)),
        ]
        text = "\n\n".join([_TITLE, *(f"# {title}\n{text}" for title, text in sections if text)])
        compacted = Compacted(summary=text, kept=len(messages) - start, is_routine=True)
        return Rewrite(history.context_after(compacted), compacted)


def _told(answer: Message, after: Message) -> Iterator[str]:
    """A step in lines: what the model said, and each call with how it ended."""
    if words := answer.text.strip():
        yield f"- you said: {_line(words)}"
    results: Sequence[ToolResult] = after.tool_results
    for call, result in zip(answer.tool_calls, results, strict=False):
        ended = f"failed: {_line(result.output)}" if result.is_error else "done"
        yield f"- {call.name} {_line(call.arguments)}: {ended}"


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}..."
