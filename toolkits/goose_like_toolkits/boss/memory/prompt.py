"""A boss's memory as its rounds meet it: what is due is written, what is there is read, and told within a budget."""

from collections.abc import Mapping
from typing import Any

from goose_like.agent.compaction.base import ASSUMED_WINDOW_TOKENS
from goose_like.agent.view import ExchangeView
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import PlanUpdated, StateSaved
from goose_like.core.history import History
from goose_like.core.notifier import Notifier
from goose_like_toolkits.boss.flow.executor import Executor, executed
from goose_like_toolkits.boss.spec import LOGS, PLAN, Branch

from .budget import sections, summary_prompt, tail_bytes, unsummarised
from .files import Contents, Memory
from .log import Entry, entries
from .plan_text import tasks

LOG = "boss.log"
"""The key in `History.state` of what was last written to the log: up to which message, where in the file, and what."""
SUMMARY = "boss.summary"
"""The key of what the beginning of the log says in short, and of how many bytes of it that is."""

_SHARE, _MOST_TOKENS = 4, 1_600


class Notes:
    """MemoryWriting and MemoryReading. Both may be somebody's own flows.

    What is written to the log is decided, recorded and then done: a process that is killed between these leaves it to
    the next one, which finds in the file whether it was done.
    """

    def __init__(
        self,
        memory: Memory,
        history: History,
        notifier: Notifier,
        view: ExchangeView,
        *,
        reading: Executor | None = None,
        writing: Executor | None = None,
    ) -> None:
        self.memory = memory
        self.contents = Contents()
        self._edits: dict[str, list[str]] = {}
        self._history = history
        self._notifier = notifier
        self._view = view
        self._reading = reading
        self._writing = writing
        self._is_pending = LOG in history.state
        self._due: list[Entry] = []

    @property
    def texts(self) -> Mapping[str, str]:
        """What the files held when they were last read."""
        return self.contents.texts

    async def write(self, heading: str = "") -> None:
        """Appends what was done since to the log; at its very beginning the heading.

        Raises:
            GooseLikeError: it can't be written; the next call tries again.
        """
        await self._settle()
        state = self._state(LOG)
        due = [entry for entry in entries(self._history) if entry.place >= state.get("through", 0)]
        text = "".join(f"{entry.line}\n" for entry in due)
        if not state:
            blank = "\n" if self.memory.size_bytes(LOGS) else ""
            text = f"{blank}# {heading}\n{text}"
        if not text:
            return
        at = self.memory.size_bytes(LOGS)
        through = len(self._history.messages)
        self._save(LOG, {"through": through, "at": at, "text": text})
        self._is_pending, self._due = True, due
        await self._settle()

    async def read(self) -> None:
        """Reads all files.

        Raises:
            GooseLikeError: one can't be read; what was read before stands.
        """
        contents = self.memory.read()
        for name, diff in contents.edits.items():
            self._edits.setdefault(name, []).append(diff)
        if self._reading:
            files = {name: str(self.memory.path(name)) for name in contents.texts}
            _, _, given = await executed(self._reading, {"memory_files": files}, Branch())
            known = {name: text for name, text in given.items() if name in files and isinstance(text, str)}
            contents = contents.model_copy(update={"texts": {**contents.texts, **known}})
        self.contents = contents
        await self._summarise()
        self._tell_plan()

    def edits(self) -> Mapping[str, str]:
        """What others changed in the files since this was last asked, as diffs by name."""
        taken = {name: "\n".join(diffs) for name, diffs in self._edits.items()}
        self._edits.clear()
        return taken

    async def put(self, name: str, text: str, was: str | None = None) -> bool:
        """Puts a text in the place of what was (last read); false where somebody changed that since."""
        is_put = await self.memory.replace(name, text, self.texts.get(name, "") if was is None else was)
        if is_put and self._reading:  # a flow is asked once a round
            self.contents = self.contents.model_copy(update={"texts": {**self.texts, name: text}})
            self._tell_plan()
        else:
            await self.read()
        return is_put

    def told(self) -> list[tuple[str, str]]:
        """What a model is told of them, as titles and texts."""
        summary = str(self._state(SUMMARY).get("text", ""))
        return sections(self.contents, limit_tokens=self._limit_tokens, log_summary=summary)

    @property
    def _limit_tokens(self) -> int:
        window = self._view.processor.model.window or ASSUMED_WINDOW_TOKENS
        return min(_MOST_TOKENS, window // _SHARE)

    def _tell_plan(self) -> None:
        steps = tasks(self.texts[PLAN])
        if steps != self._history.plan:
            self._notifier.notify(PlanUpdated(tasks=steps))

    async def _settle(self) -> None:
        """Does what was decided on and perhaps not done."""
        if not self._is_pending:
            return
        decided = self._state(LOG)
        if not self._writing:
            await self.memory.append_once(LOGS, decided["text"], decided["at"])
        while self._writing and self._due:
            files = {LOGS: str(self.memory.path(LOGS))}
            await executed(self._writing, {"memory_files": files, "logs": self._due[0].line}, Branch())
            del self._due[0]
        self._is_pending = False

    async def _summarise(self) -> None:
        """Puts the beginning of a long log in a few words; where no model does, it is left out."""
        known = self._state(SUMMARY)
        part, through = unsummarised(self.texts.get(LOGS, ""), known.get("through", 0), tail_bytes(self._limit_tokens))
        if not part:
            return
        prompt = summary_prompt(str(known.get("text", "")), part)
        try:
            text = await self._view.accelerator.ask(prompt, purpose="summary of the log")
        except GooseLikeError as error:
            text = str(known.get("text", ""))
            self._notifier.log(f"the log's beginning could not be summed up: {error}")
        self._save(SUMMARY, {"text": text, "through": through})

    def _state(self, key: str) -> dict[str, Any]:
        value = self._history.state.get(key)
        return value if isinstance(value, dict) else {}

    def _save(self, key: str, value: dict[str, Any]) -> None:
        self._notifier.notify(StateSaved(toolkit=key, value=value))
