"""Patches of text files: find the place of each one, replace it, and describe the text that comes nearest."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from goose_like.core.message import FrozenModel
from goose_like.core.text_file import TextFile, normalize_newlines, split_lines
from goose_like.toolkit import ToolError

MAX_COMPARED_LINES = 20_000
MAX_PLACES = 1_000
_MAX_COMPARED_CHARS = 500_000
_MAX_LINE_CHARS = 300
_MIN_PART_CHARS = 60
_MIN_SHARE = 0.5
"""The share of the groups of three letters that a part of a line must have to be similar."""
_NUMBER = re.compile(r" *\d+\t")
"""The number that `read_file` puts before a line."""


class Patch(FrozenModel):
    """A replacement of `before`, an exact text that the file holds only once."""

    before: str
    after: str
    replace_all: bool = False


@dataclass(frozen=True, slots=True)
class Patched:
    """The text after all patches that matched, notes about these, and the reason of each failure by number."""

    text: TextFile
    notes: list[str]
    failures: dict[int, str]


def apply_patches(text: TextFile, patches: Sequence[Patch]) -> Patched:
    """Apply patches one after the other to what the former left. Skip those that do not match."""
    notes: list[str] = []
    failures: dict[int, str] = {}
    for number, patch in enumerate(patches, 1):
        prefix = f"patch {number} of {len(patches)}: " if len(patches) > 1 else ""
        try:
            text, note = _apply_patch(text, patch)
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
    return bool(lines) and all(line.startswith(f"{number}\t") for number, line in enumerate(lines, 1))


def _apply_patch(text: TextFile, patch: Patch) -> tuple[TextFile, str]:
    """Replace the place of a patch, or all of them, and return a note if the text was not exactly there.

    Raises:
        ToolError: there is none, or more than one; the message shows similar lines.
    """
    before = normalize_newlines(patch.before)
    after = normalize_newlines(patch.after)
    if not before:
        raise ToolError("`before` is empty; give the lines to replace, or use write_file for a new file")
    if before == after:
        raise ToolError("`before` and `after` are the same; nothing would change")
    shown = text.shown
    note = ""
    places = _find_exact_places(shown, before, patch.replace_all)
    if not places and before.strip():
        places = _find_places(shown, _build_loose_pattern(before), patch.replace_all)
        note = "whitespace at line ends differed"
    if not places and all(map(_NUMBER.match, before.split("\n"))):
        lines = patch.model_copy(update={"before": _drop_numbers(before), "after": _drop_numbers(after)})
        return _apply_patch(text, lines)[0], "the line numbers of read_file were left out"
    if not places:
        raise ToolError(f"`before` is not in the file{_describe_similar(before, shown)}")
    if len(places) > 1 and not patch.replace_all:
        raise ToolError(_describe_places(shown, places))
    if patch.replace_all:
        note = ", ".join(filter(None, [f"{len(places)} places" if len(places) > 1 else "1 place", note]))
    if letter := text.find_foreign_letter(after):
        raise ToolError(
            f"the encoding of the file is unknown, so {letter!r} might become a wrong byte; use letters that the file "
            "holds, or call again with the file's `encoding` if you know it"
        )
    return text.with_parts(places, after), note


def _drop_numbers(text: str) -> str:
    return "\n".join(_NUMBER.sub("", line, count=1) for line in text.split("\n"))


def _describe_places(shown: str, places: Sequence[tuple[int, int]]) -> str:
    numbers = dict.fromkeys(shown.count("\n", 0, start) + 1 for start, _ in places[:10])
    at = "line " if len(numbers) == 1 else "lines "
    at += ", ".join(map(str, numbers))
    more = ", ..." if len(places) > 10 else ""
    count = f"{len(places)} times" if len(places) < MAX_PLACES else f"{MAX_PLACES} times or more"
    return f"`before` occurs {count}, at {at}{more}; add lines around it, or set replace_all"


def _find_exact_places(shown: str, before: str, is_all: bool) -> list[tuple[int, int]]:
    """Find all matches one after the other, or the first `MAX_PLACES` with overlapping ones."""
    places: list[tuple[int, int]] = []
    start = shown.find(before)
    while start >= 0 and (is_all or len(places) < MAX_PLACES):
        end = start + len(before)
        places.append((start, end))
        start = shown.find(before, end if is_all else start + 1)
    return places


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
    lines = (re.escape(line.rstrip(" \t")) for line in before.split("\n"))
    return "[ \t]*\n".join(lines) + ("[ \t]*(?=\n|\\Z)" if before[-1] in " \t" else "")


def _describe_similar(before: str, shown: str) -> str:
    """Describe the places of the file that are most similar, with their exact text."""
    wanted = split_lines(before)
    lines = split_lines(shown)[:MAX_COMPARED_LINES]
    size = len(wanted)

    def quote(start: int) -> str:
        first = max(start, 0)
        found = "\n".join(lines[first : first + min(size, 20)])
        return f"line {first + 1}:\n{found[:1500]}"

    bare = [" ".join(line.split()) for line in lines]
    bare_wanted = [" ".join(line.split()) for line in wanted]
    same = [start for start in range(len(bare) - size + 1) if bare[start : start + size] == bare_wanted]
    if same and any(bare_wanted):
        return f", but with other whitespace it is. The file has at {quote(same[0])}\nTake it as it stands there"
    # The longest line is the most distinctive. Where the file has a similar line, compare the lines around it too.
    anchor = max(range(size), key=lambda index: len(bare_wanted[index]))
    distinctive = bare_wanted[anchor][:_MAX_LINE_CHARS]
    candidates = _rank({line[:_MAX_LINE_CHARS] for line in bare if line}, distinctive)[:20]
    alike = set(get_close_matches(distinctive, candidates, n=5, cutoff=0.6))
    windows: dict[str, int] = {}
    for index, line in enumerate(bare):
        if line[:_MAX_LINE_CHARS] in alike and len(windows) < 50:
            start = index - anchor
            windows.setdefault("\n".join(bare[max(start, 0) : start + size])[:2000], start)
    ranked = [windows[text] for text in _rank(windows, "\n".join(bare_wanted)[:2000])[:2]]
    if ranked:
        return ". Nearest is " + "\nand ".join(quote(start) for start in ranked) + "\nTake it as it stands there"
    if part := _find_similar_part(max(wanted, key=len), lines):
        return f". Nearest is in {part}\nTake it as it stands there"
    return ", nor anything like it; read the file first"


def _find_similar_part(wanted: str, lines: Sequence[str]) -> str:
    """Find the part of a line that shares the most with a text, and return it with its place; "" for none."""
    groups = _split_groups(wanted[:_MAX_LINE_CHARS].strip())
    width = max(2 * len(wanted[:_MAX_LINE_CHARS]), _MIN_PART_CHARS)
    room = _MAX_COMPARED_CHARS
    best_share = 0.0
    best = ""
    for number, line in enumerate(lines, 1):
        for start in range(0, max(len(line) - width // 2, 1), width // 2):
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
