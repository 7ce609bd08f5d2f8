"""Patches of text files: find the place of each one, replace it, and describe the text that comes nearest."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from goose_like.core.dataclass import dataclass
from goose_like.core.message import FrozenModel
from goose_like.core.pattern import compile_later
from goose_like.core.text_file import TextFile, normalize_newlines, split_lines
from goose_like.toolkit import ToolError

from .near_places import NearPlace, find_in_changed, find_reindented

MAX_COMPARED_LINES = 20_000
MAX_PLACES = 1_000
_MAX_COMPARED_CHARS = 500_000
_MAX_LINE_CHARS = 300
_MIN_PART_CHARS = 60
_MIN_SHARE = 0.5
"""The share of the groups of three letters that a part of a line must have to be similar."""
_NUMBER = compile_later(r" *\d+\t")
"""The number that `read_file` puts before a line."""


_Place = tuple[int, int]
_Anchors = SkipJsonSchema[tuple[str, ...] | None]
_Operation = SkipJsonSchema[Literal["update", "create", "delete"]]


def _is_none(value: object) -> bool:
    return value is None


def _is_update(operation: str) -> bool:
    return operation == "update"


class Patch(FrozenModel):
    """A replacement of `before`, an exact text that the file holds only once."""

    before: str
    after: str
    replace_all: bool = False
    # No model reads of these: `v4a.py` fills them in. With `anchors`, lines before the place, `before` is whole lines.
    # A patch that creates a file has its content in `after`.
    anchors: _Anchors = Field(default=None, exclude_if=_is_none)
    operation: _Operation = Field(default="update", exclude_if=_is_update)


@dataclass(frozen=True, slots=True)
class Patched:
    """The text after all patches that matched, notes about these, and the reason of each failure by number."""

    text: TextFile
    notes: list[str]
    failures: dict[int, str]


def apply_patches(text: TextFile, patches: Sequence[Patch], known: str) -> Patched:
    """Apply patches one after the other to what the former left. Skip those that do not match.

    `known` is the text as the model saw it last; "" if that is unknown. If it is the text as it is now, a `before` with
    another indentation finds its place, too.
    """
    is_current = known == text.shown
    notes: list[str] = []
    failures: dict[int, str] = {}
    for number, patch in enumerate(patches, 1):
        prefix = ""
        if len(patches) > 1:
            prefix = f"patch {number} of {len(patches)}: "
        try:
            text, note = _apply_patch(text, patch, known, is_current=is_current)
        except ToolError as error:
            failures[number] = f"{prefix}{error}"
            continue
        if note:
            notes.append(prefix + note)
    return Patched(text, notes, failures)


def number_lines(lines: Iterable[str], start: int) -> list[str]:
    """Put its number and a tab before each line."""
    return [f"{number}\t{line}" for number, line in enumerate(lines, start)]


def has_copied_numbers(text: str) -> bool:
    """Check whether each line begins with its number, as `read_file` shows it."""
    lines = split_lines(text)
    for number, line in enumerate(lines, 1):
        if not line.startswith(f"{number}\t"):
            return False
    return bool(lines)


def _apply_patch(text: TextFile, patch: Patch, known: str, *, is_current: bool) -> tuple[TextFile, str]:
    """Replace the place of a patch, or all of them, and return a note if the text was not exactly there.

    The first of these counts: the exact text, other white space at line ends, without the numbers of `read_file`,
    another indentation, other lines around.

    Raises:
        ToolError: there is none, or more than one; the message shows similar lines.
    """
    before = normalize_newlines(patch.before)
    after = normalize_newlines(patch.after)
    _check_texts(before, after)
    shown = text.shown
    note = ""
    places = _choose_places(shown, _find_exact_places(shown, before, patch.replace_all), patch.anchors)
    if not places and before.strip():
        places = _find_places(shown, _build_loose_pattern(before), patch.replace_all)
        places = _choose_places(shown, places, patch.anchors)
        note = "whitespace at line ends differed"
    if not places and all(map(_NUMBER.match, before.split("\n"))):
        bare = {"before": drop_numbers(before), "after": drop_numbers(after)}
        changed, _ = _apply_patch(text, patch.model_copy(update=bare), known, is_current=is_current)
        return changed, "the line numbers of read_file were left out"
    near = None
    if not places and not patch.replace_all:
        near, note = _find_near_place(shown, known, before, after, is_current=is_current)
    if near:
        places = [(near.start, near.end)]
        after = near.after
    if not places:
        raise ToolError(f"`before` is not in the file{_describe_similar(before, shown)}")
    if patch.replace_all:
        counts = "1 place" if len(places) == 1 else f"{len(places)} places"
        note = ", ".join(filter(None, [counts, note]))
    else:
        _check_only_place(shown, places)
        if not is_current:
            _check_was_only_place(known, before)
    letter = text.find_foreign_letter(after)
    if letter:
        raise ToolError(
            f"the encoding of the file is unknown, so {letter!r} might become a wrong byte; use letters that the file "
            "holds, or call again with the file's `encoding` if you know it"
        )
    return text.with_parts(places, after), note


def _check_texts(before: str, after: str) -> None:
    if not before:
        raise ToolError("`before` is empty; give the lines to replace, or use write_file for a new file")
    if before == after:
        raise ToolError("`before` and `after` are the same; nothing would change")


def _find_near_place(
    shown: str, known: str, before: str, after: str, *, is_current: bool
) -> tuple[NearPlace | None, str]:
    """Find the place of a text that is not exactly there, and the note about it."""
    if is_current:
        return find_reindented(shown, before, after), "the indentation differed and is now as in the file"
    return find_in_changed(known, shown, before, after), "lines around the place have changed"


def _check_only_place(shown: str, places: Sequence[tuple[int, int]]) -> None:
    if len(places) > 1:
        raise ToolError(_describe_places(shown, places))


def _check_was_only_place(known: str, before: str) -> None:
    """Refuse one of several equal places that is left: it is perhaps not the one that the model means."""
    places = _find_exact_places(known, before, is_all=False)
    if len(places) > 1:
        raise ToolError(
            f"`before` occurred {len(places)} times in the file as you read it; it has changed since, so read it "
            "again, or add lines around `before`"
        )


def drop_numbers(text: str) -> str:
    """Remove the number that `read_file` puts before a line from each line."""
    lines = [_NUMBER.sub("", line, count=1) for line in text.split("\n")]
    return "\n".join(lines)


def _describe_places(shown: str, places: Sequence[tuple[int, int]]) -> str:
    lines = [shown.count("\n", 0, start) + 1 for start, _ in places[:10]]
    numbers = list(map(str, dict.fromkeys(lines)))
    noun = "line" if len(numbers) == 1 else "lines"
    if len(places) > 10:
        numbers.append("...")
    at = ", ".join(numbers)
    count = f"{len(places)} times"
    if len(places) >= MAX_PLACES:
        count = f"{MAX_PLACES} times or more"
    return f"`before` occurs {count}, at {noun} {at}; add lines around it, or set replace_all"


def _find_exact_places(shown: str, before: str, is_all: bool) -> list[tuple[int, int]]:
    """Find all matches one after the other, or the first `MAX_PLACES` with overlapping ones."""
    places: list[tuple[int, int]] = []
    start = shown.find(before)
    while start >= 0 and (is_all or len(places) < MAX_PLACES):
        end = start + len(before)
        places.append((start, end))
        start = shown.find(before, end if is_all else start + 1)
    return places


def _choose_places(shown: str, places: list[_Place], anchors: Sequence[str] | None) -> list[_Place]:
    """With anchors, choose the places that are whole lines, and of several ones the first after the anchors."""
    if anchors is None:
        return places
    whole = []
    for start, end in places:
        begins = start == 0 or shown[start - 1] == "\n"
        ends = end == len(shown) or "\n" in shown[end - 1 : end + 1]
        if begins and ends:
            whole.append((start, end))
    if len(whole) < 2 or not anchors:
        return whole
    least = _find_anchors(shown, anchors)
    following = [place for place in whole if place[0] >= least]
    return following[:1] or whole


def _find_anchors(shown: str, anchors: Sequence[str]) -> int:
    """Return where the line of the last anchor begins, or the end of the text if an anchor is not there."""
    wanted = [anchor.strip() for anchor in anchors]
    start = 0
    for line in shown.split("\n"):
        if line.strip() == wanted[0]:
            wanted.pop(0)
        if not wanted:
            return start
        start += len(line) + 1
    return start


def _find_places(shown: str, pattern: str, is_all: bool) -> list[tuple[int, int]]:
    """Find all matches of a pattern one after the other, or the first `MAX_PLACES` with overlapping ones."""
    expression = re.compile(pattern)
    if is_all:
        return [found.span() for found in expression.finditer(shown)]
    places: list[tuple[int, int]] = []
    found = expression.search(shown)  # not a lookahead: it would try the whole pattern at each character
    while found and len(places) < MAX_PLACES:
        places.append(found.span())
        found = expression.search(shown, found.start() + 1)
    return places


def _build_loose_pattern(before: str) -> str:
    """Build a pattern that matches any spaces and tabs at the ends of lines."""
    lines = [re.escape(line.rstrip(" \t")) for line in before.split("\n")]
    pattern = "[ \t]*\n".join(lines)
    if before[-1] in " \t":
        pattern += "[ \t]*(?=\n|\\Z)"
    return pattern


def _describe_similar(before: str, shown: str) -> str:
    """Describe the places of the file that are most similar, with their exact text."""
    wanted = split_lines(before)
    lines = split_lines(shown)[:MAX_COMPARED_LINES]
    bare_wanted = list(map(_join_words, wanted))
    bare = list(map(_join_words, lines))
    same = _find_equal_lines(bare, bare_wanted)
    if same is not None:
        place = _quote(lines, same, len(wanted))
        return f", but with other whitespace it is. The file has at {place}\nTake it as it stands there"
    starts = _find_similar_lines(bare, bare_wanted)
    if starts:
        places = "\nand ".join(_quote(lines, start, len(wanted)) for start in starts)
        return f". Nearest is {places}\nTake it as it stands there"
    part = _find_similar_part(max(wanted, key=len), lines)
    if part:
        return f". Nearest is in {part}\nTake it as it stands there"
    return ", nor anything like it; read the file first"


def _join_words(line: str) -> str:
    return " ".join(line.split())


def _quote(lines: Sequence[str], start: int, count: int) -> str:
    """Quote lines with the number of the first one. A start before the first line counts as the first."""
    first = max(start, 0)
    found = "\n".join(lines[first : first + min(count, 20)])
    return f"line {first + 1}:\n{found[:1500]}"


def _find_equal_lines(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Find the first place where the lines are the wanted ones, unless all of these are empty."""
    if not any(wanted):
        return None
    size = len(wanted)
    for start in range(len(lines) - size + 1):
        if lines[start : start + size] == wanted:
            return start
    return None


def _find_similar_lines(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Find the starts of the two places that are most similar to the wanted lines."""
    size = len(wanted)
    # The longest line is the most distinctive. Where the file has a similar line, compare the lines around it too.
    anchor = max(range(size), key=lambda index: len(wanted[index]))
    distinctive = wanted[anchor][:_MAX_LINE_CHARS]
    starts = {line[:_MAX_LINE_CHARS] for line in lines if line}
    candidates = _rank(starts, distinctive)[:20]
    alike = set(get_close_matches(distinctive, candidates, n=5, cutoff=0.6))
    windows: dict[str, int] = {}
    for index, line in enumerate(lines):
        if len(windows) >= 50:
            break
        if line[:_MAX_LINE_CHARS] not in alike:
            continue
        start = index - anchor
        window = "\n".join(lines[max(start, 0) : start + size])
        windows.setdefault(window[:2000], start)
    text = "\n".join(wanted)
    ranked = _rank(windows, text[:2000])
    return [windows[window] for window in ranked[:2]]


def _find_similar_part(wanted: str, lines: Sequence[str]) -> str:
    """Find the part of a line that shares the most with a text, and return it with its place; "" for none."""
    groups = _split_groups(wanted[:_MAX_LINE_CHARS].strip())
    width = max(2 * len(wanted[:_MAX_LINE_CHARS]), _MIN_PART_CHARS)
    room = _MAX_COMPARED_CHARS
    best_share = 0.0
    best = ""
    step = width // 2
    for number, line in enumerate(lines, 1):
        for start in range(0, max(len(line) - step, 1), step):
            room -= width
            part = line[start : start + width]
            share = len(_split_groups(part) & groups) / len(groups)
            if share > best_share:
                best_share = share
                best = f"line {number}, from column {start + 1}:\n{part}"
                if len(line) <= _MAX_LINE_CHARS:
                    best = f"line {number}:\n{line}"
        if room < 0:
            break
    return best if best_share >= _MIN_SHARE else ""


def _rank(texts: Iterable[str], wanted: str) -> list[str]:
    """Sort texts by the groups of three letters that they share with another one, in linear time."""
    groups = _split_groups(wanted)

    def estimate(text: str) -> tuple[int, int]:
        found = _split_groups(text)
        return -len(found & groups), len(found)

    return sorted(texts, key=estimate)


def _split_groups(text: str) -> set[str]:
    return {text[at : at + 3] for at in range(max(len(text) - 2, 1))}
