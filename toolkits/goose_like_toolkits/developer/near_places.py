"""The one place of a patch whose `before` is not in the file, where it can be known for sure.

Models lose the indentation of a block that they quote, or write tabs for spaces. A block which occurs only once, also
without its indentation, is the one that the model means, as long as it has seen the file as it is now. In a file that
has changed since, the lines to replace are found by comparing it with the file as the model saw it.
"""

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher

from goose_like.core.dataclass import dataclass

_MAX_COMPARED_LINES = 3_000
_MIN_LETTERS = 12
"""Letters and digits of the shortest text that is looked for: a line such as `return` or `}` may stand anywhere."""


@dataclass(frozen=True, slots=True)
class NearPlace:
    """A place in a text, and the text that shall stand there."""

    start: int
    end: int
    after: str


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of indentation: convert it, remove the start `removed`, and put `added` before it."""

    convert: Callable[[str], str]
    removed: str = ""
    added: str = ""

    def apply(self, indentation: str) -> str | None:
        converted = self.convert(indentation)
        if not converted.startswith(self.removed):
            return None
        return self.added + converted[len(self.removed) :]


def find_in_changed(known: str, shown: str, before: str, after: str) -> NearPlace | None:
    """Find the lines that a patch replaces in a text that was `known`, in which lines around them have changed.

    Return None if these lines have changed themselves or lost both neighbours, or if new lines lost one.
    """
    old = before.removesuffix("\n").split("\n")
    new = after.removesuffix("\n").split("\n") if after else []
    known_lines = known.split("\n")
    lines = shown.split("\n")
    first = _find_lines(known, before)
    if first is None or max(len(known_lines), len(lines)) > _MAX_COMPARED_LINES:
        return None
    head = _count_equal(old, new)
    tail = _count_equal(old[head:][::-1], new[head:][::-1])
    start = first + head
    end = first + len(old) - tail
    offsets = _find_offsets(known_lines, lines, start, end)
    if len(offsets) != 1:
        return None
    offset = offsets.pop()
    at = sum(len(line) + 1 for line in lines[: start + offset])
    size = sum(len(line) + 1 for line in lines[start + offset : end + offset])
    if at + size > len(shown):
        return None
    middle = new[head : len(new) - tail]
    text = "".join(f"{line}\n" for line in middle)
    return NearPlace(at, at + size, text)


def _find_offsets(known: Sequence[str], lines: Sequence[str], start: int, end: int) -> set[int]:
    """Find how far lines have moved that are unchanged, with what is needed of their neighbours to be sure."""
    offsets = set()
    for block in SequenceMatcher(None, known, lines, autojunk=False).get_matching_blocks():
        block_end = block.a + block.size
        if not block.a <= start <= end <= block_end:
            continue
        line_before = known[max(start - 1, block.a) : start]
        line_after = known[end : min(end + 1, block_end)]
        neighbours = [*line_before, *line_after]
        # New lines alone have no other place than between both neighbours.
        has_place = start < end or len(neighbours) == 2
        if has_place and any(map(str.strip, neighbours)):
            offsets.add(block.b - block.a)
    return offsets


def _find_lines(text: str, part: str) -> int | None:
    """Find the number of the first line (from 0) of a part of whole lines that occurs only once."""
    if text.count(part) != 1:
        return None
    at = text.index(part)
    is_start = at == 0 or text[at - 1] == "\n"
    is_end = part.endswith("\n") or text.startswith("\n", at + len(part))
    if not is_start or not is_end:
        return None
    return text.count("\n", 0, at)


def _count_equal(lines: Sequence[str], others: Sequence[str]) -> int:
    """Count the lines that are equal at the start of both."""
    count = 0
    for line, other in zip(lines, others, strict=False):
        if line != other:
            break
        count += 1
    return count


def find_reindented(shown: str, before: str, after: str) -> NearPlace | None:
    """Find the only place where the lines of `before` stand with another indentation, always changed in the same way.

    Return None if there is no such place, or if `after` cannot be changed in this way.
    """
    if sum(map(str.isalnum, before)) < _MIN_LETTERS:
        return None
    has_last_newline = before.endswith("\n")
    wanted = before.removesuffix("\n").split("\n")
    lines = shown.split("\n")
    first = _find_only_place(lines, wanted)
    if first is None:
        return None
    found = lines[first : first + len(wanted)]
    change = _find_change(wanted, found)
    if change is None:
        return None
    corrected = []
    for line in after.split("\n"):
        if not line.strip():
            corrected.append("")
            continue
        indentation = _get_indentation(line)
        new = change.apply(indentation)
        if new is None:
            return None
        corrected.append(new + line[len(indentation) :])
    start = sum(len(line) + 1 for line in lines[:first])
    end = start + len("\n".join(found)) + has_last_newline
    return NearPlace(start, min(end, len(shown)), "\n".join(corrected))


def _find_only_place(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Find the line from which all wanted lines follow, without the white space around them."""
    bare = [line.strip() for line in lines]
    bare_wanted = [line.strip() for line in wanted]
    size = len(wanted)
    places: list[int] = []
    for start in range(len(lines) - size + 1):
        if bare[start] == bare_wanted[0] and bare[start : start + size] == bare_wanted:
            places.append(start)
    return places[0] if len(places) == 1 else None


def _find_change(given: Sequence[str], found: Sequence[str]) -> _Change | None:
    """Find the one change that makes the indentation of all given lines that of the found ones."""
    pairs = []
    for line, other in zip(given, found, strict=True):
        if line.strip():
            pairs.append((_get_indentation(line), _get_indentation(other)))
    for change in _list_changes(*pairs[0]):
        if all(change.apply(old) == new for old, new in pairs):
            return change
    return None


def _list_changes(old: str, new: str) -> Iterator[_Change]:
    """List the changes that may lead from one indentation to another."""
    for convert in (_keep, _expand_tabs, _make_tabs):
        converted = convert(old)
        if new.endswith(converted):
            yield _Change(convert, added=new[: len(new) - len(converted)])
        if converted.endswith(new):
            yield _Change(convert, removed=converted[: len(converted) - len(new)])


def _keep(indentation: str) -> str:
    return indentation


def _expand_tabs(indentation: str) -> str:
    return indentation.replace("\t", "    ")


def _make_tabs(indentation: str) -> str:
    return indentation.replace("    ", "\t")


def _get_indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
