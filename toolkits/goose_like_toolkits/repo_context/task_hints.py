"""Hints of the conversation at the task: names and paths in the newest question, and paths in the newest calls."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from goose_like.core.message import Message

_MAX_CALLS = 30
_MAX_PATHS = 20
_QUOTED = re.compile(r"`([^`\n]{1,80})`")
_NAME = re.compile(r"\b\w+(?:_\w+)+\b|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b\w+(?=\()")
"""Words that only code has: `snake_case`, `camelCase`, `ClassName` and `call(`."""
_PATH = re.compile(r"[\w./-]{3,}")


@dataclass(frozen=True, slots=True)
class TaskHints:
    """Names of the task, and words that may be paths of its files, newest first. Absolute paths are relative here."""

    names: str = ""
    paths: Sequence[str] = ()

    def find_files(self, paths: Iterable[str]) -> list[str]:
        """Find the files among these paths that the task is about, newest first."""
        known = set(paths)
        found = [path for path in self.paths if path in known]
        return found[:_MAX_PATHS]


def read_hints(messages: Sequence[Message], root: Path) -> TaskHints:
    """Read the hints of a conversation in the workspace `root`."""
    question = ""
    texts: list[str] = []
    for message in reversed(messages):
        if message.role == "user" and not question:
            question = message.first_text
        if len(texts) < _MAX_CALLS:
            texts += [call.arguments for call in message.tool_calls]
    names = [*_QUOTED.findall(question), *_NAME.findall(question)]
    paths: dict[str, None] = {}
    for text in (*texts, question):
        for word in _PATH.findall(text):
            path = word.removeprefix(f"{root}/").removeprefix("./").rstrip(".")
            paths[path] = None
    return TaskHints(" ".join(names), tuple(paths))
