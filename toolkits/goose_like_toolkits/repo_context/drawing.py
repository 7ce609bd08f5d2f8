"""Drawing: a map as text, of the definitions that rank highest and fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goose_like.toolkit import ToolError

from .outline import Definition, Outline
from .ranking import Ranking

_NOTES_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Drawing:
    """`total` files are in `path`, of which `looked` were looked at for `words`; `limit` is in characters."""

    path: str
    total: int
    looked: int
    words: Sequence[str]
    limit: int

    def size(self, outlines: Mapping[str, Outline]) -> int:
        """How many characters all of these would take."""
        return sum(
            len(path) + sum(len(_line(definition)) for definition in outline.definitions)
            for path, outline in outlines.items()
        )

    def text(self, outlines: Mapping[str, Outline], ranking: Ranking, unread: int) -> str:
        """The map, the file with the best definition first; within a file line by line.

        Raises:
            ToolError: nothing is defined there.
        """
        ranked = sorted(
            (-score, path, number)
            for path, outline in outlines.items()
            for number, score in enumerate(ranking.definitions(path, outline))
        )
        if not ranked:
            why = f", of which {unread:,} could not be read, are too large, or no text" if unread else ""
            raise ToolError(f"{self.looked:,} files in {self.path!r} define nothing{why}; read what you need of them")
        shown: dict[str, dict[int, str]] = {}
        room = self.limit - _NOTES_CHARACTERS
        for _, path, number in ranked:
            new = _with_those_around(outlines[path], number)
            lines = {line: text for line, text in new.items() if line not in shown.get(path, {})}
            room -= sum(map(len, lines.values())) + (len(_heading(path, 0, 1_000)) if path not in shown else 0)
            if room < 0 and shown:
                break
            shown.setdefault(path, {}).update(lines)
        parts = self._notes(len(shown), unread, ranking)
        for path, lines in shown.items():
            every = len({definition.line for definition in outlines[path].definitions})
            parts += [_heading(path, len(lines), every), *(lines[line] for line in sorted(lines))]
        return "\n".join(part.rstrip("\n") for part in parts)

    def _notes(self, files: int, unread: int, ranking: Ranking) -> list[str]:
        notes = [f"{self.path}: definitions of {files:,} of {self.total:,} files, most used first"]
        if self.looked < self.total:
            narrow = "a folder as `path`" if self.words else "a folder as `path`, or words of your task as `about`"
            notes.append(f"only {self.looked:,} files were looked at, short paths first; name {narrow} for others")
        if unread:
            notes.append(f"{unread:,} files could not be read, are too large, or no text")
        if ranking.unknown:
            notes.append(f"no name that was looked at has {' or '.join(map(repr, ranking.unknown[:5]))}")
        return [f"[{note}]" for note in notes]


def _line(definition: Definition) -> str:
    return f"{definition.line:5} {definition.text}\n"


def _heading(path: str, shown: int, every: int) -> str:
    named = path if path.isprintable() else ascii(path)
    return f"{named}\n" if shown == every else f"{named} ({shown} of {every} lines)\n"


def _with_those_around(outline: Outline, number: int | None) -> dict[int, str]:
    lines: dict[int, str] = {}
    while number is not None:
        definition = outline.definitions[number]
        lines[definition.line] = _line(definition)
        number = definition.within
    return lines
