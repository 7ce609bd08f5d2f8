"""The moderator of a boss: each request has the goal, the newest rounds, and the memory."""

from collections.abc import Iterator, Sequence
from itertools import chain

from typing_extensions import override

from goose_like.core.message import Message
from goose_like.moderator import Compacted, ExchangeView, History, Moderator, ToolResult, quote_later_requests
from goose_like_toolkits.boss.memory.budget import format_sections
from goose_like_toolkits.boss.spec import CONTROLLER_TOOLKIT

TITLE = "[Your memory, as it is now]"
_LATER_TOKENS = 1_000
_OLDER_CHARACTERS = 1_500


class BossModerator(Moderator):
    """Keeps requests at one size in the tenth and in the thousandth round: the goal, the newest `rounds`, the memory.

    The memory stands last, so that the prompt cache holds everything before it. Only the newest round keeps long
    results in full.
    """

    settings = {"rounds": 3}
    includes_plan = True
    rewrites_each_step = True

    @override
    async def rewrite(self, history: History, models: ExchangeView) -> list[Compacted]:
        return [self._compact(history, int(self.config["rounds"]), keep_newest=True)]

    @override
    async def shrink(self, history: History, models: ExchangeView) -> Compacted:
        return self._compact(history, 1, keep_newest=False)

    def _compact(self, history: History, rounds: int, *, keep_newest: bool) -> Compacted:
        messages = history.messages
        answers = [place for place, message in enumerate(messages) if message.role == "assistant"]
        first = history.turns[0].start if history.turns else 0
        start = first + 1
        if len(answers) >= rounds:
            start = answers[-rounds]
        end = len(messages)
        if keep_newest:
            end = answers[-1] if answers else 0
        goal = messages[first].text if messages else ""
        later = ""
        if len(history.user_message_indexes) > 1:
            later = quote_later_requests(history, start, _LATER_TOKENS)
        sections = [
            ("later messages", later),
            ("facts", "\n".join(list_facts(history))),
            *self.state_sections(),
        ]
        return Compacted(
            summary=goal,
            kept_count=len(messages) - start,
            suffix=f"{TITLE}\n\n{format_sections(sections)}",
            replacements=_cut_results(history, messages[start:end]),
            is_routine=True,
        )


def _cut_results(history: History, messages: Sequence[Message]) -> dict[str, str]:
    """Cut the long results that were not replaced before, by their call."""
    replacements = {}
    for result in chain.from_iterable(message.tool_results for message in messages):
        is_long = len(result.output) > _OLDER_CHARACTERS
        if is_long and result.call_id not in history.context.replacements:
            replacements[result.call_id] = _cut_result(result)
    return replacements


def list_facts(history: History) -> Iterator[str]:
    """Yield the facts of all toolkits but the controller's, which shows its memory anyway."""
    for name, value in history.context.facts.items():
        toolkit, _, key = name.partition(".")
        if toolkit != CONTROLLER_TOOLKIT:
            yield f"{key}: {value}"


def _cut_result(result: ToolResult) -> str:
    return f"{result.output[:_OLDER_CHARACTERS]}\n[... cut: the full result had {len(result.output):,} characters]"
