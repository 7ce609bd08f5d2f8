"""Compare formats of edits with 200 edits from the history of this repository. `python bench/edits.py`.

Each edit is sent as a model would send it in each format, also with the mistakes that models make and after others have
changed the file. Cells are the edits that give the wanted file at the first try, or are refused if the target is gone.
`tokens` is the mean until the file is right: arguments, and after a refusal the result and the arguments again
(bytes / 4). An edit that was wrong counts as sent once.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path

from goose_like_toolkits.developer.patching import Patch, apply_patches, number_lines
from goose_like_toolkits.developer.v4a import read_v4a

from goose_like.core.text_file import create_text

ROOT = Path(__file__).parent.parent
COUNT = 200
SUFFIXES = (".py", ".md")
MAX_LINES, MAX_HUNKS, MAX_CHANGED, MAX_CONTEXT, CONTEXT = 600, 4, 60, 12, 2
STALE = "the file has changed since it was read; read it again"


class Refused(Exception):
    """The tool did not change the file; the text is its result."""


@dataclass(frozen=True)
class Hunk:
    """Lines of a file from `start` (from 0) to `end`, and the lines in their place."""

    start: int
    end: int
    new: tuple[str, ...]


@dataclass(frozen=True)
class Edit:
    """A change of one file in one commit."""

    old: tuple[str, ...]
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True)
class Sent:
    """What a model sends for a hunk: the quoted lines and the new ones, and the place by its lines (from 1).

    `anchor` is the nearest line above the quotation that begins a block, such as a function; "" for none.
    """

    first: int
    last: int
    before: str
    after: str
    new: str
    anchor: str = ""


@dataclass(frozen=True)
class Trial:
    """What is sent for an edit, and the file: as `read`, as it is `now`, as `wanted` ("" if nothing is right)."""

    sent: tuple[Sent, ...]
    whole: str
    read: str
    now: str
    wanted: str

    @property
    def is_stale(self) -> bool:
        return self.now != self.read


# --- the edits


def read_edits(until: str) -> Iterator[Edit]:
    """Read edits, newest first: from each commit the first changed file with few and short hunks."""
    listed = run_git("log", "--no-merges", "--format=%x00%H", "--name-only", "--diff-filter=M", until)
    for entry in listed.split("\0")[1:]:
        commit, _, names = entry.partition("\n")
        for name in names.split():
            if name.endswith(SUFFIXES) and name != "CHANGELOG.md":
                edit = compare(run_git("show", f"{commit}~:{name}"), run_git("show", f"{commit}:{name}"))
                if edit:
                    yield edit
                    break


def run_git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def compare(old: str, new: str) -> Edit | None:
    """Return the hunks between two texts; those that nearly touch are one. None if they are many or long."""
    lines, others = old.splitlines(), new.splitlines()
    if len(lines) > MAX_LINES or not lines:
        return None
    hunks: list[list[int]] = []
    for kind, start, end, new_start, new_end in SequenceMatcher(None, lines, others, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        if hunks and start - hunks[-1][1] <= 2 * CONTEXT:
            hunks[-1][1], hunks[-1][3] = end, new_end
        else:
            hunks.append([start, end, new_start, new_end])
    changed = sum(end - start + new_end - new_start for start, end, new_start, new_end in hunks)
    if not hunks or len(hunks) > MAX_HUNKS or changed > MAX_CHANGED:
        return None
    return Edit(tuple(lines), tuple(Hunk(start, end, tuple(others[a:b])) for start, end, a, b in hunks))


def apply(lines: Sequence[str], hunks: Sequence[Hunk]) -> str:
    result = list(lines)
    for hunk in reversed(hunks):
        result[hunk.start : hunk.end] = hunk.new
    return join(result)


def join(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def quote(lines: Sequence[str], hunk: Hunk, context: int, *, is_unique: bool = True) -> Sent:
    """Quote the lines of a hunk and those around it, more of them until the file holds the quotation only once."""
    start, end = max(hunk.start - context, 0), min(hunk.end + context, len(lines))
    before = join(lines[start:end])
    if is_unique and context < MAX_CONTEXT and join(lines).count(before) > 1:
        return quote(lines, hunk, context + 1)
    after = join([*lines[start : hunk.start], *hunk.new, *lines[hunk.end : end]])
    anchor = find_anchor(lines[:start])
    return Sent(hunk.start + 1, hunk.end, before, after, join(hunk.new), anchor)


def find_anchor(lines: Sequence[str]) -> str:
    """Find the last line that begins a class, a function or a chapter."""
    for line in reversed(lines):
        if line.lstrip().startswith(("class ", "def ", "async def ", "#")):
            return line
    return ""


# --- what happens to them


def send(edit: Edit) -> Trial:
    sent = tuple(quote(edit.old, hunk, CONTEXT) for hunk in edit.hunks)
    wanted = apply(edit.old, edit.hunks)
    return Trial(sent, wanted, join(edit.old), join(edit.old), wanted)


def shorten(edit: Edit) -> Trial:
    """Quote only the changed lines, and for new lines the one line before them."""
    sent = tuple(quote(edit.old, hunk, 0 if hunk.start < hunk.end else 1, is_unique=False) for hunk in edit.hunks)
    return replace(send(edit), sent=sent)


def damage(edit: Edit, change: Callable[[str, str], str]) -> Trial:
    """Change the lines of all that is sent for hunks. A whole file is too long for a model to shift it.

    `change` gets a line and the indentation that all lines of the quotation and of the new text have in common.
    """
    trial = send(edit)
    parts = []
    for part in trial.sent:
        lines = [line for line in (part.before + part.after).splitlines() if line.strip()]
        margin = " " * min(len(line) - len(line.lstrip(" ")) for line in lines) if lines else ""
        texts = []
        for text in (part.before, part.after, part.new):
            texts.append(join([change(line, margin) if line.strip() else line for line in text.splitlines()]))
        before, after, new = texts
        parts.append(replace(part, before=before, after=after, new=new))
    return replace(trial, sent=tuple(parts))


def pad(line: str, _: str) -> str:
    """Put spaces at the end of a line."""
    return f"{line}  "


def lose_margin(line: str, margin: str) -> str:
    return line.removeprefix(margin)


def shift(line: str, _: str) -> str:
    return f"    {line}"


def make_tabs(line: str, _: str) -> str:
    words = line.lstrip(" ")
    return line[: len(line) - len(words)].replace("    ", "\t") + words


def age(edit: Edit) -> Trial:
    """Put new lines at the start of the file, as if somebody had changed it since it was read."""
    added = ["# one", "# two", "# three"]
    trial = send(edit)
    return replace(trial, now=join(added) + trial.now, wanted=join(added) + trial.wanted)


def age_context(edit: Edit) -> Trial:
    """Change the line before each hunk, too, or the one after it."""
    lines = list(edit.old)
    for hunk in edit.hunks:
        place = hunk.start - 1 if hunk.start else min(hunk.end, len(lines) - 1)
        lines[place] += " # new"
    trial = send(edit)
    return replace(trial, now=join(lines), wanted=apply(lines, edit.hunks))


def take_away(edit: Edit) -> Trial:
    """Change the lines that the edit is about, so that no place is right any more. Quote little."""
    lines = [f"{line} # new" for line in edit.old]
    for start in range(len(lines)):
        if not any(hunk.start - 1 <= start <= hunk.end for hunk in edit.hunks):
            lines[start] = edit.old[start]
    return replace(shorten(edit), now=join(lines), wanted="")


CASES: dict[str, Callable[[Edit], Trial]] = {
    "as it is": send,
    "spaces at line ends": partial(damage, change=pad),
    "indentation lost": partial(damage, change=lose_margin),
    "indented too far": partial(damage, change=shift),
    "tabs for spaces": partial(damage, change=make_tabs),
    "quotes shortened": shorten,
    "lines moved": age,
    "context changed": age_context,
    "target gone": take_away,
}


# --- the formats: each returns its arguments and the new file


def patch_file(trial: Trial) -> tuple[object, Callable[[], str]]:
    """Our tool. It keeps those that match; the bench counts a part of them as a refusal, if there is a right place."""
    patches = [Patch(before=part.before, after=part.after) for part in trial.sent]

    def change() -> str:
        done = apply_patches(create_text(trial.now, ""), patches, trial.read)
        is_changed_in_vain = not trial.wanted and done.text.shown != trial.now
        if done.failures and not is_changed_in_vain:
            raise Refused("\n".join(done.failures.values()))
        return done.text.shown

    return {"patches": [patch.model_dump(exclude_defaults=True) for patch in patches]}, change


def patch_with_v4a(trial: Trial, *, has_anchors: bool) -> tuple[object, Callable[[], str]]:
    """Send V4A diffs to `patch_file`, as OpenAI's models do: lines that go or come have a mark."""
    lines = []
    for part in trial.sent:
        lines.append(f"@@ {part.anchor}" if has_anchors and part.anchor else "@@")
        for mark, text in mark_lines(part.before.splitlines(), part.after.splitlines()):
            lines.append(mark + text)
    diff = join(lines)

    def change() -> str:
        patches = read_v4a(f"*** Update File: f\n{diff}")
        assert isinstance(patches, list)
        done = apply_patches(create_text(trial.now, ""), patches, trial.read)
        is_changed_in_vain = not trial.wanted and done.text.shown != trial.now
        if done.failures and not is_changed_in_vain:
            raise Refused("\n".join(done.failures.values()))
        return done.text.shown

    return {"type": "update_file", "diff": diff}, change


def mark_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a hunk with their marks."""
    for kind, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in before[start:end])
            continue
        yield from (("-", line) for line in before[start:end])
        yield from (("+", line) for line in after[new_start:new_end])


def replace_text(trial: Trial) -> tuple[object, Callable[[], str]]:
    """An exact text that occurs once, as tools named `str_replace` have it."""

    def change() -> str:
        text = trial.now
        for part in trial.sent:
            if text.count(part.before) != 1:
                raise Refused(f"old_string occurs {text.count(part.before)} times")
            text = text.replace(part.before, part.after)
        return text

    return [{"old_string": part.before, "new_string": part.after} for part in trial.sent], change


def replace_lines(trial: Trial, *, is_guarded: bool) -> tuple[object, Callable[[], str]]:
    """Lines by their numbers; guarded, it refuses a file that has changed since it was read."""

    def change() -> str:
        if is_guarded and trial.is_stale:
            raise Refused(STALE)
        lines = trial.now.splitlines(keepends=True)
        for part in reversed(trial.sent):
            lines[part.first - 1 : part.last] = [part.new]
        return "".join(lines)

    return [{"start_line": part.first, "end_line": part.last, "text": part.new} for part in trial.sent], change


def write_file(trial: Trial) -> tuple[object, Callable[[], str]]:
    """The whole file, as our `write_file`, which refuses a file that has changed since it was read."""

    def change() -> str:
        if trial.is_stale:
            raise Refused("not written yet, as it has changed:\n" + "\n".join(number_lines(trial.now.splitlines(), 1)))
        return trial.whole

    return {"content": trial.whole}, change


FORMATS: dict[str, Callable[[Trial], tuple[object, Callable[[], str]]]] = {
    "`patch_file`": patch_file,
    "V4A (`apply_patch`)": partial(patch_with_v4a, has_anchors=False),
    "V4A with a line after `@@`": partial(patch_with_v4a, has_anchors=True),
    "exact text once": replace_text,
    "line range": partial(replace_lines, is_guarded=False),
    "line range, refused if stale": partial(replace_lines, is_guarded=True),
    "whole file (`write_file`)": write_file,
}


@dataclass
class Score:
    """The results of one format in one case, or in all of them."""

    count: int = 0
    right: int = 0
    refused: int = 0
    wrong_place: int = 0
    wrong_space: int = 0
    tokens: float = 0

    def add(self, trial: Trial, use: Callable[[Trial], tuple[object, Callable[[], str]]]) -> None:
        arguments, change = use(trial)
        size_bytes = len(json.dumps(arguments))
        self.count += 1
        self.tokens += size_bytes / 4
        try:
            result = change()
        except Refused as refusal:
            self.refused += 1
            self.right += not trial.wanted
            self.tokens += (len(str(refusal)) + size_bytes) / 4
            return
        if strip_ends(result) == strip_ends(trial.wanted):
            self.right += 1
        elif result.split() == trial.wanted.split():
            self.wrong_space += 1
        else:
            self.wrong_place += 1


def strip_ends(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--until", default="HEAD", help="the newest commit to read")
    edits = []
    for edit in read_edits(parser.parse_args().until):
        edits.append(edit)
        if len(edits) == COUNT:
            break
    if len(edits) < COUNT:
        sys.exit(f"the history has only {len(edits)} such edits; fetch all of it with `git fetch --unshallow`")
    print("| right at the first try |", " | ".join(CASES), "| wrong place | wrong white space | tokens |")
    for name, use in FORMATS.items():
        total = Score()
        cells = []
        for case in CASES.values():
            score = Score()
            for edit in edits:
                trial = case(edit)
                score.add(trial, use)
                total.add(trial, use)
            cells.append(f"{100 * score.right / score.count:.1f} %".replace(".0 %", " %"))
        sums = [total.wrong_place, total.wrong_space, round(total.tokens / total.count)]
        print(f"| {name} |", " | ".join(cells), "|", " | ".join(map(str, sums)), "|")


if __name__ == "__main__":
    main()
