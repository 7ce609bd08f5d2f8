"""MemoryReading and MemoryWriting as a boss asks them, where its planner, its controller or they are flows."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from goose_like_toolkits.boss.flow.executor import Own, asked
from goose_like_toolkits.boss.flow.key_interface import Payload


class Recall:
    """MemoryReading: what it read last is what flows are told. Without an `own` flow it is what the files hold."""

    def __init__(self, own: Own | None, goal: str) -> None:
        self._own = own
        self._goal = goal
        self._texts: dict[str, str] = {}
        self._files: dict[str, str] = {}

    async def run(self, input_data: Payload, /) -> Mapping[str, str]:
        """The contents of `memory_files`, by name."""
        self._files = dict(input_data["memory_files"])
        if self._own is None:
            self._texts = {name: await asyncio.to_thread(_text, Path(path)) for name, path in self._files.items()}
            return {}  # the boss reads them itself
        given = await asked(self._own, {"memory_files": dict(self._files)})
        self._texts = {name: str(given[name]) for name in self._files if isinstance(given, Mapping) and name in given}
        return self._texts

    def payload(self, words: str) -> Payload:
        """What a flow is told: the goal (`words` where none is known), the memory by its names, and its paths."""
        return {"goal": self._goal or words, "memory_files": dict(self._files), **self._texts}


class Writing:
    """MemoryWriting by a flow of somebody's own: asked once for each entry of the log."""

    def __init__(self, own: Own) -> None:
        self._own = own

    async def run(self, input_data: Payload, /) -> Payload:
        """Gives nothing; the flow gets `memory_files`, the entry as `logs`, and what that says was done as `summary`.

        Raises:
            ToolError: the flow raised.
        """
        line = str(input_data.get("logs", ""))
        await asked(self._own, {**input_data, "summary": line.partition(": ")[2] or line})
        return {}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
