"""Names and descriptions of SKILL.md files, kept between sessions: parsing hundreds of files takes long."""

import json
import os
from contextlib import suppress
from dataclasses import astuple
from hashlib import sha256
from pathlib import Path
from typing import Any

from goose_like import __version__
from goose_like.config.paths import cache_folder, read_user_file, replace_private_file
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError

from .skill_file import list_deviations, parse_skill_file, read_skill_text

_FILE = "skills.json"
_MAX_ENTRIES = 5_000


@dataclass(frozen=True, slots=True)
class Summary:
    """What a listing needs of a SKILL.md file: its name and description, or the problem that makes it unusable.

    `deviation` is the first one from the specification, by which a package's file is unusable too.
    """

    name: str = ""
    description: str = ""
    problem: str = ""
    deviation: str = ""


class SummaryCache:
    """The summaries of files by path. An entry counts while its file has the same time, size and number, or text.

    Commands cannot write the cache, and what a skill says and allows is always read from its file.
    """

    def __init__(self) -> None:
        self._file = cache_folder() / _FILE
        self._entries = self._load()
        self._has_changed = False

    def _load(self) -> dict[str, Any]:
        with suppress(OSError, ValueError):  # there is none yet, or another version wrote it
            kept = json.loads(read_user_file(self._file))
            if kept["version"] == __version__:
                return dict(kept["entries"])
        return {}

    def get_for_file(self, path: str) -> Summary:
        """Return the summary of a file, from the cache if the file has not changed."""
        try:
            status = os.stat(path)
        except OSError as error:
            return Summary(problem=f"{path} can't be read: {error.strerror}; correct or remove it")
        mark = [status.st_mtime_ns, status.st_size, status.st_ino]
        known = self._find(path, mark)
        if known:
            return known
        try:
            text = read_skill_text(Path(path))
        except GooseLikeError as error:
            return Summary(problem=str(error))
        return self._keep(path, mark, _summarize(Path(path), text))

    def get_for_text(self, path: str, text: str) -> Summary:
        """Return the summary of a text that a file of a project had when it was read."""
        mark = sha256(text.encode()).hexdigest()
        known = self._find(path, mark)
        if known:
            return known
        return self._keep(path, mark, _summarize(Path(path), text))

    def _find(self, path: str, mark: object) -> Summary | None:
        entry = self._entries.get(path)
        if entry is None or entry[0] != mark:
            return None
        return Summary(*entry[1:])

    def _keep(self, path: str, mark: object, summary: Summary) -> Summary:
        self._entries[path] = [mark, *astuple(summary)]
        self._has_changed = True
        return summary

    def save(self) -> None:
        """Write new entries to the file. Without room for it, they are made again in the next session."""
        if not self._has_changed:
            return
        newest = list(self._entries.items())[-_MAX_ENTRIES:]
        text = json.dumps({"version": __version__, "entries": dict(newest)})
        with suppress(OSError):
            replace_private_file(self._file, text)


def _summarize(path: Path, text: str) -> Summary:
    try:
        skill = parse_skill_file(path, text)
    except GooseLikeError as error:
        return Summary(problem=str(error))
    deviation = next(list_deviations(path, skill), "")
    return Summary(skill.name, skill.description, deviation=deviation)
