"""Flows in place of MemoryReading and MemoryWriting, and the memory that other flows get."""

from collections.abc import Mapping

from goose_like_toolkits.boss.flow.executor import FlowPart
from goose_like_toolkits.boss.flow.key_interface import Payload
from goose_like_toolkits.boss.spec import LOGS


class FlowMemory:
    """The goal and the newest memory texts for flows. Without a `reader` flow, the texts are those of the files."""

    def __init__(self, goal: str, reader: FlowPart | None, writer: FlowPart | None) -> None:
        self._goal = goal
        self._reader = reader
        self._writer = writer
        self._texts: Mapping[str, str] = {}
        self._paths: Mapping[str, str] = {}

    @property
    def writes_log(self) -> bool:
        """True if a flow writes the log."""
        return self._writer is not None

    async def read(self, paths: Mapping[str, str], texts: Mapping[str, str]) -> Mapping[str, str]:
        """Return the texts from the reader flow, or the given ones. Raise ToolError if the flow fails."""
        if self._reader:
            output = await self._reader.call({"memory_files": dict(paths)})
            known = output if isinstance(output, Mapping) else {}
            texts = {name: str(known[name]) for name in paths if name in known}
        self._paths, self._texts = dict(paths), dict(texts)
        return self._texts

    async def write_entry(self, path: str, entry: str) -> None:
        """Pass one log entry to the writer flow: `memory_files`, `logs` and `summary`. Raise ToolError if it fails."""
        if self._writer:
            summary = entry.partition(": ")[2] or entry
            await self._writer.call({"memory_files": {LOGS: path}, "logs": entry, "summary": summary})

    def build_payload(self, question: str) -> Payload:
        """Build the input of a planner or controller flow. `question` stands for an unknown goal."""
        return {"goal": self._goal or question, "memory_files": dict(self._paths), **self._texts}
