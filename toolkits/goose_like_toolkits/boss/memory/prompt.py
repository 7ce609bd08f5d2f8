"""The memory between two rounds: write the log, read all files, and build the prompt sections for the controller."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from goose_like.agent.compaction.threshold import ASSUMED_WINDOW_TOKENS
from goose_like.agent.view import ExchangeView
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import PlanUpdated, StateSaved
from goose_like.core.history import History
from goose_like.core.notifier import Notifier
from goose_like_toolkits.boss.spec import LOGS, PLAN

from .budget import build_sections, build_summary_prompt, find_unsummarized, get_tail_bytes
from .files import Contents, MemoryFiles
from .log import LogEntry, list_entries
from .plan_text import list_tasks

LOG_STATE = "boss.log"
"""Key in `History.state` of the newest log record: the message count, the size of the log before it, and the text."""
SUMMARY_STATE = "boss.summary"
"""Key in `History.state` of the log's summary, and of the index in the log up to which it goes."""

_WINDOW_SHARE, _MAX_TOKENS = 4, 1_600


ReadMemory = Callable[[Mapping[str, str], Mapping[str, str]], Awaitable[Mapping[str, str]]]
"""Return the texts to use for the paths and texts of the memory files, by name."""
WriteEntry = Callable[[str, str], Awaitable[None]]
"""Write one entry to the log with this path."""


class MemoryPrompt:
    """The memory files of a boss as its controller sees them.

    Each log record is saved as state before it goes into the file. After a crash, the next process looks into the file
    and writes the rest.
    """

    def __init__(
        self,
        files: MemoryFiles,
        history: History,
        notifier: Notifier,
        view: ExchangeView,
        read_memory: ReadMemory | None = None,
        write_entry: WriteEntry | None = None,
    ) -> None:
        self.files = files
        self._contents = Contents()
        self._edits: dict[str, list[str]] = {}
        self._history = history
        self._notifier = notifier
        self._view = view
        self._read_memory = read_memory
        self._write_entry = write_entry
        self._is_unsettled = LOG_STATE in history.state
        self._unwritten: list[LogEntry] = []

    @property
    def texts(self) -> Mapping[str, str]:
        """Texts of the files at the last read."""
        return self._contents.texts

    async def write_log(self, heading: str = "") -> None:
        """Append all actions since the last call to the log, and at the beginning of a run its heading.

        Raises:
            GooseLikeError: the log can't be written. The next call tries again.
        """
        await self._settle()
        record = self._get_state(LOG_STATE)
        new = [entry for entry in list_entries(self._history) if entry.place >= record.get("through", 0)]
        text = "".join(f"{entry.line}\n" for entry in new)
        if not record:
            blank = "\n" if self.files.get_size(LOGS) else ""
            text = f"{blank}# {heading}\n{text}"
        if not text:
            return
        size_bytes = self.files.get_size(LOGS)
        self._save_state(LOG_STATE, {"through": len(self._history.messages), "size_bytes": size_bytes, "text": text})
        self._is_unsettled, self._unwritten = True, new
        await self._settle()

    async def read(self) -> None:
        """Read all files, and update the summary and the plan on screen.

        Raises:
            GooseLikeError: a file can't be read. The texts of the last read stay.
        """
        contents = self.files.read()
        for name, diff in contents.edits.items():
            self._edits.setdefault(name, []).append(diff)
        if self._read_memory:
            paths = {name: str(self.files.get_path(name)) for name in contents.texts}
            texts = await self._read_memory(paths, contents.texts)
            contents = contents.model_copy(update={"texts": {**contents.texts, **texts}})
        self._contents = contents
        await self._summarize_log()
        self._show_plan()

    def take_edits(self) -> Mapping[str, str]:
        """Return the diffs of the files that others changed since the last call, by name."""
        edits = {name: "\n".join(diffs) for name, diffs in self._edits.items()}
        self._edits.clear()
        return edits

    async def replace(self, name: str, text: str, previous: str | None = None) -> bool:
        """Replace the text of a file. Return False if someone else changed it since `previous` (the last read)."""
        is_replaced = await self.files.replace(name, text, self.texts.get(name, "") if previous is None else previous)
        if is_replaced and self._read_memory:  # call the flow that reads memory only once per round
            self._contents = self._contents.model_copy(update={"texts": {**self.texts, name: text}})
            self._show_plan()
        else:
            await self.read()
        return is_replaced

    def build_sections(self) -> list[tuple[str, str]]:
        """Return titles and texts of the memory for the model, within the token budget."""
        summary = str(self._get_state(SUMMARY_STATE).get("text", ""))
        return build_sections(self._contents, limit_tokens=self._limit_tokens, log_summary=summary)

    @property
    def _limit_tokens(self) -> int:
        window = self._view.processor.model.window or ASSUMED_WINDOW_TOKENS
        return min(_MAX_TOKENS, window // _WINDOW_SHARE)

    def _show_plan(self) -> None:
        tasks = list_tasks(self.texts[PLAN])
        if tasks != self._history.plan:
            self._notifier.notify(PlanUpdated(tasks=tasks))

    async def _settle(self) -> None:
        """Write the saved log record, unless a former process already did."""
        if not self._is_unsettled:
            return
        record = self._get_state(LOG_STATE)
        if self._write_entry:
            while self._unwritten:
                await self._write_entry(str(self.files.get_path(LOGS)), self._unwritten[0].line)
                del self._unwritten[0]
        else:
            await self.files.append_once(LOGS, record["text"], record["size_bytes"])
        self._is_unsettled = False

    async def _summarize_log(self) -> None:
        """Summarize the beginning of a long log. Without a working model, leave it out."""
        before = self._get_state(SUMMARY_STATE)
        log, known = self.texts.get(LOGS, ""), str(before.get("text", ""))
        part, through = find_unsummarized(log, before.get("through", 0), get_tail_bytes(self._limit_tokens))
        if not part:
            return
        try:
            text = await self._view.accelerator.ask(build_summary_prompt(known, part), purpose="summary of the log")
        except GooseLikeError as error:
            text = known
            self._notifier.log(f"can't summarize the beginning of the log: {error}")
        self._save_state(SUMMARY_STATE, {"text": text, "through": through})

    def _get_state(self, key: str) -> dict[str, Any]:
        value = self._history.state.get(key)
        return value if isinstance(value, dict) else {}

    def _save_state(self, key: str, value: dict[str, Any]) -> None:
        self._notifier.notify(StateSaved(toolkit=key, value=value))
