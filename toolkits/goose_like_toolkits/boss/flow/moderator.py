"""What a boss's controller is sent: its goal, the last rounds, and at the end its memory as it is now."""

from collections.abc import Iterator

from goose_like.agent.compaction.base import Moderator, Rewrite
from goose_like.agent.compaction.truncate import newest_words
from goose_like.agent.view import ExchangeView
from goose_like.core.events import Compacted
from goose_like.core.history import History
from goose_like.core.message import ToolResult
from goose_like_toolkits.boss.spec import CONTROLLER

TITLE = "[Your memory, as it is now]"
_LATER_TOKENS = 1_000
_OLDER_CHARACTERS = 1_500


class BossModerator(Moderator):
    """Sends as much in the thousandth round as in the tenth: the goal, the newest `rounds`, the memory.

    The memory stands at the end, so that a vendor's cache holds up to there. What older rounds gave is what the memory
    says of it; of those that are kept, all but the newest give the beginnings of long results.
    """

    settings = {"rounds": 3}
    tells_plan = True

    async def rewrite(self, history: History, models: ExchangeView) -> Rewrite:
        compacted = self._composed(history, int(self.config["rounds"]), spares_newest=True)
        return Rewrite(history.context_after(compacted), compacted)

    async def shrink(self, history: History, models: ExchangeView) -> Compacted:
        """The newest round alone, and the beginnings of what it gave."""
        return self._composed(history, 1, spares_newest=False)

    def _composed(self, history: History, rounds: int, *, spares_newest: bool) -> Compacted:
        """The goal, so many rounds, and the memory; long results are cut, those of the newest round perhaps not."""
        messages = history.messages
        answers = [place for place, message in enumerate(messages) if message.role == "assistant"]
        first = history.turns[0].start if history.turns else 0
        start = answers[-rounds] if len(answers) >= rounds else first + 1
        end = (answers or [0])[-1] if spares_newest else len(messages)
        results = (result for message in messages[start:end] for result in message.tool_results)
        elided = {result.call_id: _beginning(result) for result in results if len(result.output) > _OLDER_CHARACTERS}
        goal = messages[first].text if messages else ""
        said = newest_words(history, start, _LATER_TOKENS) if len(history.user_message_indexes) > 1 else ""
        sections = [("Said since", said), ("What is true", "\n".join(_facts(history))), *self.live()]
        text = "\n\n".join([TITLE, *(f"# {title}\n{text}" for title, text in sections if text)])
        new = {call_id: words for call_id, words in elided.items() if call_id not in history.replacements}
        return Compacted(summary=goal, kept_count=len(messages) - start, suffix=text, replacements=new, is_routine=True)


def _facts(history: History) -> Iterator[str]:
    """The news that toolkits told since the beginning, but for changed memory files, which are read anyway."""
    for name, value in history.facts.items():
        toolkit, _, key = name.partition(".")
        if toolkit != CONTROLLER:
            yield f"{key}: {value}"


def _beginning(result: ToolResult) -> str:
    return f"{result.output[:_OLDER_CHARACTERS]}\n[... cut: {len(result.output):,} characters were read then]"
