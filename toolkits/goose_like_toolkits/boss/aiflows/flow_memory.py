"""Flows in place of MemoryReading and MemoryWriting, and the memory that other flows get."""

from collections.abc import Mapping

from goose_like_toolkits.boss.flow.executor import FlowPart
from goose_like_toolkits.boss.flow.key_interface import Payload
from goose_like_toolkits.boss.memory.prompt import WriteEntry
from goose_like_toolkits.boss.spec import LOGS


class FlowMemory:
    """The goal and the newest memory texts for flows. Without a `reader` flow, the texts are those of the files."""

    def __init__(self, goal: str, reader: FlowPart | None) -> None:
        self._goal = goal
        self._reader = reader
        self._texts: Mapping[str, str] = {}
        self._paths: Mapping[str, str] = {}

    async def read(self, paths: Mapping[str, str], texts: Mapping[str, str]) -> Mapping[str, str]:
        """Return the texts from the reader flow, or the given ones. Raise ToolError if the flow fails."""
        if self._reader:
            output = await self._reader.call({"memory_files": dict(paths)})
            known = output if isinstance(output, Mapping) else {}
            texts = {name: str(known[name]) for name in paths if name in known}
        self._paths, self._texts = dict(paths), dict(texts)
        return self._texts

    def build_payload(self, question: str) -> Payload:
        """Build the input of a planner or controller flow. `question` stands for an unknown goal."""
        return {"goal": self._goal or question, "memory_files": dict(self._paths), **self._texts}


def make_log_writer(part: FlowPart) -> WriteEntry:
    """Pass each log entry to a flow, as `memory_files`, `logs` and `summary`."""

    async def write_entry(path: str, entry: str) -> None:
        summary = entry.partition(": ")[2] or entry
        await part.call({"memory_files": {LOGS: path}, "logs": entry, "summary": summary})

    return write_entry
