"""The text of a map: the best definitions that fit into a number of characters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goose_like.toolkit import ToolError

from .outline import Definition, Outline
from .ranking import Ranking

_NOTES_CHARACTERS = 500
"""Characters reserved for the notes at the beginning."""


@dataclass(frozen=True, slots=True)
class MapText:
    """The text of a map of `path`.

    `path` contains `total` files, of which `searched` were searched for `words`.
    """

    path: str
    total: int
    searched: int
    words: Sequence[str]
    max_characters: int

    def measure(self, outlines: Mapping[str, Outline]) -> int:
        """Count the characters that all these outlines would take."""
        return sum(
            len(path) + sum(len(_format_line(definition)) for definition in outline.definitions)
            for path, outline in outlines.items()
        )

    def render(self, outlines: Mapping[str, Outline], ranking: Ranking, unread: int) -> str:
        """Render the map: the file with the best definition first, and the lines of a file in their order.

        Raises:
            ToolError: the files define nothing.
        """
        ranked = sorted(
            (-score, path, number)
            for path, outline in outlines.items()
            for number, score in enumerate(ranking.score_definitions(path, outline))
        )
        if not ranked:
            note = f", of which {unread:,} could not be read, are too large, or no text" if unread else ""
            raise ToolError(
                f"{self.searched:,} files in {self.path!r} define nothing{note}; read what you need of them"
            )
        shown: dict[str, dict[int, str]] = {}
        room = self.max_characters - _NOTES_CHARACTERS
        for _, path, number in ranked:
            with_parents = _format_with_parents(outlines[path], number)
            lines = {line: text for line, text in with_parents.items() if line not in shown.get(path, {})}
            room -= sum(map(len, lines.values())) + (len(_format_heading(path, 0, 1_000)) if path not in shown else 0)
            if room < 0 and shown:
                break
            shown.setdefault(path, {}).update(lines)
        parts = self._list_notes(len(shown), unread, ranking)
        for path, lines in shown.items():
            line_count = len({definition.line for definition in outlines[path].definitions})
            parts += [_format_heading(path, len(lines), line_count), *(lines[line] for line in sorted(lines))]
        return "\n".join(part.rstrip("\n") for part in parts)

    def _list_notes(self, files: int, unread: int, ranking: Ranking) -> list[str]:
        notes = [f"{self.path}: definitions of {files:,} of {self.total:,} files, most used first"]
        if self.searched < self.total:
            narrow = "a folder as `path`" if self.words else "a folder as `path`, or words of your task as `about`"
            notes.append(f"only {self.searched:,} files were looked at, short paths first; name {narrow} for others")
        if unread:
            notes.append(f"{unread:,} files could not be read, are too large, or no text")
        if ranking.unmatched_words:
            words = " or ".join(map(repr, ranking.unmatched_words[:5]))
            notes.append(f"no name that was looked at has {words}")
        return [f"[{note}]" for note in notes]


def _format_line(definition: Definition) -> str:
    return f"{definition.line:5} {definition.text}\n"


def _format_heading(path: str, shown: int, total: int) -> str:
    name = path if path.isprintable() else ascii(path)
    return f"{name}\n" if shown == total else f"{name} ({shown} of {total} lines)\n"


def _format_with_parents(outline: Outline, number: int | None) -> dict[int, str]:
    """Format a definition and the definitions around it, by line number."""
    lines: dict[int, str] = {}
    while number is not None:
        definition = outline.definitions[number]
        lines[definition.line] = _format_line(definition)
        number = definition.parent
    return lines
