"""Names and descriptions of SKILL.md files, kept between sessions: parsing hundreds of files takes long."""

import os
import stat
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from goose_like.config.kept_values import KeptValues
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import GooseLikeError

from .skill_file import list_deviations, parse_skill_file, read_skill_text


class Summary(NamedTuple):
    """What a listing needs of a SKILL.md file: its name and description, or the problem that makes it unusable.

    `deviation` is the first one from the specification, by which a package's file is unusable too.
    """

    name: str = ""
    description: str = ""
    problem: str = ""
    deviation: str = ""


class SummaryCache:
    """The summaries of files by path. An entry counts while its file has the same time, size and number, or text.

    What a skill says and allows is always read from its file.
    """

    def __init__(self) -> None:
        self._kept = KeptValues("skills")

    def get_for_file(self, path: str, status: os.stat_result | None = None) -> Summary:
        """Return the summary of a file, from the cache if the file has not changed. `status` is that of the path."""
        if status is None or stat.S_ISLNK(status.st_mode):
            try:
                status = os.stat(path)
            except OSError as error:
                return Summary(problem=f"{path} can't be read: {error.strerror}; correct or remove it")
        mark = [status.st_ctime_ns, status.st_size, status.st_ino]
        known = self._find(path, mark)
        if known:
            return known
        try:
            text = read_skill_text(Path(path))
        except GooseLikeError as error:
            return Summary(problem=str(error))
        return self._keep(path, mark, _summarize(Path(path), text))

    def is_known(self, project: ProjectConfig) -> bool:
        """Check whether the files of a project have the state in which all their texts were compared."""
        return bool(project.state) and self._kept.get(str(project.root)) == project.state

    def note_state(self, project: ProjectConfig) -> None:
        """Keep the state in which the texts of a project were compared. Without one, they are compared again."""
        root = str(project.root)
        known_state = self._kept.get(root) or ""
        if known_state != project.state:
            self._kept.put(root, project.state)

    def get_for_path(self, path: str) -> Summary | None:
        """Return the summary of a file of a project whose state is known."""
        _, summary = _read_entry(self._kept.get(path))
        return summary

    def get_for_text(self, path: str, text: str) -> Summary:
        """Return the summary of a text that a file of a project had when it was read."""
        # Another text with this mark would only show the name and description of the former one.
        mark = [len(text), crc32(text.encode())]
        known = self._find(path, mark)
        if known:
            return known
        return self._keep(path, mark, _summarize(Path(path), text))

    def _find(self, path: str, mark: object) -> Summary | None:
        known_mark, summary = _read_entry(self._kept.get(path))
        return summary if known_mark == mark else None

    def _keep(self, path: str, mark: object, summary: Summary) -> Summary:
        self._kept.put(path, [mark, *summary])
        return summary

    def save(self) -> None:
        """Keep new summaries for the next session."""
        self._kept.save()


def _read_entry(entry: Any) -> tuple[object, Summary | None]:
    """Return the mark and the summary of an entry; the summary is None if there is none that this version can read."""
    match entry:
        case [mark, *fields] if len(fields) == len(Summary._fields):
            return mark, Summary(*fields)
    return None, None


def _summarize(path: Path, text: str) -> Summary:
    try:
        skill = parse_skill_file(path, text)
    except GooseLikeError as error:
        return Summary(problem=str(error))
    deviation = next(list_deviations(path, skill), "")
    return Summary(skill.name, skill.description, deviation=deviation)
