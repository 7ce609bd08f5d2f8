"""The rounds of a controller: write the log and read the memory before each one, and tell the model where it stands."""

from collections.abc import Iterable, Mapping
from typing import Any

from goose_like.agent.compaction.moderators import ASSUMED_WINDOW_TOKENS
from goose_like.agent.view import ExchangeView
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import PlanUpdated, StateSaved
from goose_like.core.history import History
from goose_like.core.notifier import Notifier
from goose_like_toolkits.boss.memory.budget import (
    build_sections,
    build_summary_prompt,
    find_unsummarized,
)
from goose_like_toolkits.boss.memory.files import MemoryFiles
from goose_like_toolkits.boss.memory.log import LogEntry, cut_line, list_entries
from goose_like_toolkits.boss.memory.plan_text import list_tasks
from goose_like_toolkits.boss.python_flow import Flow, Payload, call_flow
from goose_like_toolkits.boss.spec import FINISH, LOGS, PLAN, TESTS

from .boss import Boss, count_rounds

LOG_STATE = "boss.log"
"""Key in `History.state` of the newest log record: the message count, the size of the log before it, and the text."""
SUMMARY_STATE = "boss.summary"
"""Key in `History.state` of the log's summary, and of the index in the log up to which it goes."""

_WINDOW_SHARE = 4
_MAX_TOKENS = 1_600
_HEADING_CHARACTERS = 120
_MAX_REMINDERS = 3


class Rounds:
    """The memory of a boss as its controller sees it, and the number of the round. `texts` are those of the last read.

    Each log record is saved as state before it goes into the file. After a crash, the next process looks into the file
    and writes the rest. The flows `MemoryReading` and `MemoryWriting` of a program read and write in place of the boss,
    in the order of aiflows: memory is read at the start and at the end of each round, and `finish` is not written.
    """

    def __init__(
        self, boss: Boss, files: MemoryFiles, history: History, notifier: Notifier, view: ExchangeView
    ) -> None:
        self.files = files
        self.texts: Mapping[str, str] = {}
        self._spec = boss.spec
        self._history = history
        self._notifier = notifier
        self._view = view
        self._paths = {name: str(path) for name, path in files.paths.items()}
        self._reader = boss.parts.get("MemoryReading")
        self._writer = boss.parts.get("MemoryWriting")
        self._former_log = boss.former_log.strip("\n")
        self._is_fresh = False
        self._is_unsettled = LOG_STATE in history.state
        self._unwritten: list[LogEntry] = []

    @property
    def goal(self) -> str:
        """The first message of the history."""
        first = self._history.turns[0].start
        return self._history.messages[first].text

    @property
    def open_steps(self) -> list[int]:
        """Numbers of the plan's steps that are not done yet."""
        return [number for number, task in enumerate(self._history.plan, 1) if task.is_open]

    async def start(self) -> None:
        """Write the heading of the log and read the memory. Raise GooseLikeError if that fails."""
        first_line = self.goal.strip().split("\n")[0]
        await self._write_log(cut_line(first_line, _HEADING_CHARACTERS))
        await self._read()
        self._is_fresh = True

    async def update(self) -> Mapping[str, str]:
        """Write the log and read the memory before a round. Return changes by other people, and problems."""
        if not self._history.turns:
            return {}
        problems: dict[str, None] = {}
        if not self._is_fresh:
            for step in (self._write_log, self._read):
                try:
                    await step()
                except GooseLikeError as error:
                    problems[str(error)] = None
        self._is_fresh = False
        updates = {}
        if problems:
            updates["memory"] = f"has a problem: {'; '.join(problems)}"
        for name, diff in self.files.take_edits().items():
            updates[self._spec.memory_files[name]] = f"changed by somebody else:\n{diff}"
        return updates

    async def replace(self, name: str, text: str, previous: str | None = None) -> bool:
        """Replace the text of a file. Return False if someone else changed it since `previous` (the last read)."""
        if previous is None:
            previous = self.texts.get(name, "")
        is_replaced = await self.files.replace(name, text, previous)
        if is_replaced:
            self.texts = {**self.texts, name: text}
            self._show_plan()
        else:
            await self._read()
        return is_replaced

    async def close(self) -> None:
        """Write the actions of the last round into the log. After the last allowed round, read the memory too."""
        end = self._history.last_turn
        if self._history.turns:
            await self._write_log()
        if self._reader and end and end.reason == "step_limit":
            await self._read()

    def build_payload(self) -> Payload:
        """Build the input of a planner or controller flow."""
        return {"goal": self.goal, "memory_files": self._paths, **self.texts}

    def build_sections(self) -> list[tuple[str, str]]:
        """Return titles and texts of the memory for the model, within the token budget."""
        summary = str(self._get_state(SUMMARY_STATE).get("text", ""))
        return build_sections(self._shown_texts, limit_tokens=self._limit_tokens, log_summary=summary)

    def describe_step(self) -> str:
        """Return the number of the next round, and its task."""
        number = count_rounds(self._history) + 1
        max_round = self._spec.max_round
        open_steps = self.open_steps
        if number == max_round:
            task = "This is the last round: call `finish` now, and report what is done and what is not."
        elif open_steps:
            first = open_steps[0]
            task = f"Open step {first}: {self._history.plan[first - 1].description}\n"
            task += f"When it is finished, send `done`: [{first}] with the next call."
        else:
            task = "Check whether the goal is reached. If it is, call `finish`."
        return f"Round {number} of {max_round}. {task}"

    def build_reminder(self, tool_names: Iterable[str]) -> str:
        """Remind a controller that answered without a call. Return "" after three reminders in a row."""
        if self._count_silent_answers() > _MAX_REMINDERS:
            return ""
        names = ", ".join(name for name in tool_names if name != FINISH)
        others = f": {names}, or another one" if names else ""
        return (
            f"Text without a call does nothing. Call a tool{others}. To end the work, call `finish` with your report."
        )

    def _count_silent_answers(self) -> int:
        """Count the newest answers of this turn in a row that have no call."""
        start = self._history.turns[-1].start
        count = 0
        for message in reversed(self._history.messages[start:]):
            if message.tool_calls:
                break
            if message.role == "assistant":
                count += 1
        return count

    async def _write_log(self, heading: str = "") -> None:
        """Append all actions since the last call to the log. If that fails, raise GooseLikeError; call again later."""
        await self._settle()
        record = self._get_state(LOG_STATE)
        new = [entry for entry in list_entries(self._history) if entry.place >= record.get("through", 0)]
        if record and not new:
            return
        size_bytes = self.files.get_size(LOGS)
        text = "".join(f"{entry.line}\n" for entry in new)
        if not record:
            blank = "\n" if size_bytes else ""
            text = f"{blank}# {heading}\n{text}"
        record = {"through": len(self._history.messages), "size_bytes": size_bytes, "text": text}
        self._save_state(LOG_STATE, record)
        self._unwritten = new
        self._is_unsettled = True
        await self._settle()

    async def _settle(self) -> None:
        """Write the saved log record, unless a former process already did."""
        if not self._is_unsettled:
            return
        if self._writer:
            await self._call_writer(self._writer)
        else:
            record = self._get_state(LOG_STATE)
            await self.files.append_once(LOGS, record["text"], record["size_bytes"])
        self._is_unsettled = False

    async def _call_writer(self, writer: Flow) -> None:
        """Have a flow write each action that it has not written yet, up to `finish`."""
        while self._unwritten and not self._unwritten[0].result.is_final:
            line = self._unwritten[0].line
            summary = line.partition(": ")[2] or line
            paths = {LOGS: self._paths[LOGS]}
            await call_flow(writer, {"memory_files": paths, "logs": line, "summary": summary})
            del self._unwritten[0]

    async def _read(self) -> None:
        """Read all files. If one can't be read, raise GooseLikeError and keep the former texts."""
        texts = self.files.read()
        if self._reader:
            given = await call_flow(self._reader, {"memory_files": self._paths})
            known = given if isinstance(given, Mapping) else {}
            texts = {name: str(known.get(name, text)) for name, text in texts.items()}
        if self._former_log not in texts[LOGS]:
            texts[LOGS] = f"{self._former_log}\n{texts[LOGS]}"
        self.texts = texts
        await self._summarize_log()
        self._show_plan()

    async def _summarize_log(self) -> None:
        """Summarize the beginning of a long log. Without a working model, leave it out."""
        before = self._get_state(SUMMARY_STATE)
        known = str(before.get("text", ""))
        part, through = find_unsummarized(
            self._shown_texts,
            before.get("through", 0),
            limit_tokens=self._limit_tokens,
            log_summary=known,
        )
        if not part:
            return
        try:
            prompt = build_summary_prompt(known, part)
            text = await self._view.accelerator.ask(prompt, purpose="summary of the log")
        except GooseLikeError as error:
            text = known
            self._notifier.log(f"can't summarize the beginning of the log: {error}")
        self._save_state(SUMMARY_STATE, {"text": text, "through": through})

    def _show_plan(self) -> None:
        tasks = list_tasks(self.texts[PLAN])
        if tasks != self._history.plan:
            self._notifier.notify(PlanUpdated(tasks=tasks))

    @property
    def _shown_texts(self) -> Mapping[str, str]:
        """The texts that the model reads: without the tests, and without a log that has only the heading."""
        log = self.texts.get(LOGS, "").strip()
        texts = {**self.texts, TESTS: ""}
        is_heading = log.startswith("# ") and "\n" not in log
        if is_heading:
            texts[LOGS] = ""
        return texts

    @property
    def _limit_tokens(self) -> int:
        window = self._view.processor.model.window or ASSUMED_WINDOW_TOKENS
        return min(_MAX_TOKENS, window // _WINDOW_SHARE)

    def _get_state(self, key: str) -> dict[str, Any]:
        value = self._history.state.get(key)
        return value if isinstance(value, dict) else {}

    def _save_state(self, key: str, value: dict[str, Any]) -> None:
        self._notifier.notify(StateSaved(toolkit=key, value=value))
