"""The text of a map: the best definitions that fit into a number of characters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goose_like.toolkit import ToolError

from .outline import Definition, Outline
from .ranking import Ranking

_NOTES_CHARACTERS = 500
"""Characters reserved for the notes at the beginning."""
_UNREAD = "could not be read, are too large, or no text"

_Place = tuple[str, int]
"""A definition: the path of its file, and its index there."""


@dataclass(frozen=True, slots=True)
class MapText:
    """The text of a map of `path`.

    `path` contains `total` files, of which `searched` were searched for `words`. With `has_recent`, the files that the
    task is about come first.
    """

    path: str
    total: int
    searched: int
    words: Sequence[str]
    max_characters: int
    has_recent: bool = False

    def measure(self, outlines: Mapping[str, Outline]) -> int:
        """Count the characters that all these outlines would take."""
        count = 0
        for path, outline in outlines.items():
            count += len(path)
            for definition in outline.definitions:
                count += _measure_line(_format_line(definition))
        return count

    def render(self, outlines: Mapping[str, Outline], ranking: Ranking, unread: int) -> str:
        """Render the map: the file with the best definition first, and the lines of a file in their order.

        Raises:
            ToolError: the files define nothing.
        """
        ranked = _rank_definitions(outlines, ranking)
        if not ranked:
            files = f"{self.searched:,} files in {self.path!r}"
            note = f", of which {unread:,} {_UNREAD}" if unread else ""
            raise ToolError(f"{files} define nothing{note}; read what you need of them")
        shown = self._choose_lines(outlines, ranked)
        parts = self._list_notes(len(shown), unread, ranking)
        for path, lines in shown.items():
            defining_lines = {definition.line for definition in outlines[path].definitions}
            parts.append(_format_heading(path, len(lines), len(defining_lines)))
            for line in sorted(lines):
                parts.append(lines[line])
        return "\n".join(parts)

    def _choose_lines(
        self,
        outlines: Mapping[str, Outline],
        ranked: Sequence[_Place],
    ) -> dict[str, dict[int, str]]:
        """Return as many lines as there is room for, by path and number."""
        shown: dict[str, dict[int, str]] = {}
        room = self.max_characters - _NOTES_CHARACTERS
        for path, index in ranked:
            known = shown.get(path, {})
            added = {}
            for line, text in _format_with_parents(outlines[path], index).items():
                if line not in known:
                    added[line] = text
                    room -= _measure_line(text)
            if path not in shown:
                room -= _measure_line(_format_heading(path, 0, 1_000))
            if room < 0 and shown:
                break
            shown[path] = known | added
        return shown

    def _list_notes(self, files: int, unread: int, ranking: Ranking) -> list[str]:
        order = "those of the task, then most used" if self.has_recent else "most used"
        counts = f"definitions of {files:,} of {self.total:,} files"
        notes = [f"[{self.path}: {counts}, {order} first]"]
        if self.searched < self.total:
            narrow = "a folder as `path`"
            if not self.words:
                narrow += ", or words of your task as `about`"
            searched = f"only {self.searched:,} files were looked at, short paths first"
            notes.append(f"[{searched}; name {narrow} for others]")
        if unread:
            notes.append(f"[{unread:,} files {_UNREAD}]")
        if ranking.unmatched_words:
            words = " or ".join(map(repr, ranking.unmatched_words[:5]))
            notes.append(f"[no name that was looked at has {words}]")
        return notes


def _rank_definitions(outlines: Mapping[str, Outline], ranking: Ranking) -> list[_Place]:
    """Return the places of all definitions, best first."""
    ranked = []
    for path, outline in outlines.items():
        for index, score in enumerate(ranking.score_definitions(path, outline)):
            ranked.append((-score, path, index))
    return [(path, index) for _, path, index in sorted(ranked)]


def _format_line(definition: Definition) -> str:
    return f"{definition.line:5} {definition.text}"


def _format_heading(path: str, shown: int, total: int) -> str:
    name = path if path.isprintable() else ascii(path)
    if shown == total:
        return name
    return f"{name} ({shown} of {total} lines)"


def _measure_line(text: str) -> int:
    """Return the characters of a line with its end."""
    return len(text) + 1


def _format_with_parents(outline: Outline, index: int | None) -> dict[int, str]:
    """Format a definition and the definitions around it, by line number."""
    lines: dict[int, str] = {}
    while index is not None:
        definition = outline.definitions[index]
        lines[definition.line] = _format_line(definition)
        index = definition.parent
    return lines
