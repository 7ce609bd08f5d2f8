"""The memory within a token budget: shorten each file so that all of them fit."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from goose_like.agent.compaction.summary import CHARS_PER_TOKEN
from goose_like_toolkits.boss.library.code_library import Detail, build_outline
from goose_like_toolkits.boss.spec import LIBRARY, LOGS, PLAN

from .plan_text import find_steps

_TITLES = {LOGS: "log"}
_SHARES = {PLAN: 4, LOGS: 4, LIBRARY: 3}  # all other files together have one share
_NOTE_BYTES = 60
_MAX_PART_BYTES = 8_000


def build_sections(texts: Mapping[str, str], *, limit_tokens: int, log_summary: str = "") -> list[tuple[str, str]]:
    """Return title and text of each memory file that is not empty. All texts together fit into the limit.

    A long plan loses its finished steps first. A long log keeps its newest entries below `log_summary`. The outline of
    the library loses docstrings, then signatures, then the oldest names. Other files lose their middle.
    """
    limit_bytes = limit_tokens * CHARS_PER_TOKEN
    source = texts.get(LIBRARY, "")
    shown = _list_shown_texts(texts, limit_bytes)
    rooms = _divide_room(shown, limit_bytes)
    shorten: dict[str, Callable[[str, int], str]] = {
        PLAN: shorten_plan,
        LOGS: partial(shorten_log, summary=log_summary),
        LIBRARY: lambda _, room_bytes: shorten_library(source, room_bytes),
    }
    sections = []
    for name, text in shown.items():
        if _size(text) > rooms[name]:
            text = shorten.get(name, _cut_middle)(text, rooms[name])
        title = _TITLES.get(name, name)
        sections.append((title, text.rstrip("\n")))
    return sections


def format_sections(sections: Iterable[tuple[str, str]]) -> str:
    """Put each text that is not empty between tags with its title, because texts may have Markdown headings."""
    blocks = []
    for title, text in sections:
        if text.strip():
            blocks.append(f"<{title}>\n{text.strip()}\n</{title}>")
    return "\n\n".join(blocks)


def shorten_plan(plan: str, room_bytes: int) -> str:
    """Leave out finished steps. Cut the middle if the plan is still too long."""
    steps = find_steps(plan)
    lines = plan.split("\n")
    ends = [step.line for step in steps[1:]] + [len(lines)]
    finished_count = 0
    hidden: set[int] = set()
    for step, end in zip(steps, ends, strict=False):
        if step.status == "complete":
            finished_count += 1
            hidden.update(range(step.line, end))
    shown = [f"[{finished_count} finished steps are left out]"]
    for number, line in enumerate(lines):
        if number not in hidden or line.startswith("#"):  # headings stay
            shown.append(line)
    return _cut_middle("\n".join(shown), room_bytes)


def shorten_log(log: str, room_bytes: int, summary: str = "") -> str:
    """Keep the newest entries that fit, below the summary of the older ones or their number."""
    above = _format_summary(summary, room_bytes)
    lines = log.strip("\n").split("\n")
    room_bytes -= _size(above) + _NOTE_BYTES
    newest = _take_last(lines, room_bytes)
    if not newest:
        newest = [_cut_start(lines[-1], room_bytes - 1)]
    note = ""
    left_out = len(lines) - len(newest)
    if left_out:
        note = f"[... {left_out:,} earlier lines ...]"
    return "\n".join(filter(None, [above, note, *newest]))


def shorten_library(source: str, room_bytes: int) -> str:
    """Return the library's outline in as much detail as fits, with the newest names last."""
    details: tuple[Detail, ...] = ("docstrings", "signatures", "names")
    for detail in details:
        entries = build_outline(source, detail)
        text = "\n".join(entries)
        if _size(text) <= room_bytes:
            return text
    newest = _take_last(entries, room_bytes - _NOTE_BYTES)
    left_out = len(entries) - len(newest)
    return "\n".join([f"[... {left_out:,} older ones ...]", *newest])


def find_unsummarized(
    texts: Mapping[str, str], through: int, *, limit_tokens: int, log_summary: str = ""
) -> tuple[str, int]:
    """Return the part of the log to add to its summary, and the index where that part ends.

    `through` is the end of the previous part. The part is empty while `build_sections` shows the whole log, or all of
    it after `through` below the summary. Otherwise the rest takes a quarter of the log's room. A very long part, such
    as the log of earlier runs, is cut to its end.
    """
    log = texts.get(LOGS, "")
    if through > len(log):  # a person shortened the log
        through = 0
    limit_bytes = limit_tokens * CHARS_PER_TOKEN
    shown = _list_shown_texts(texts, limit_bytes)
    room_bytes = _divide_room(shown, limit_bytes).get(LOGS, 0)
    if _size(log) <= room_bytes:
        return "", through
    rest = log[through:]
    above = _format_summary(log_summary, room_bytes)
    if through and _size(above) + _NOTE_BYTES + _size(rest) <= room_bytes:
        return "", through
    kept = _cut_start(rest, room_bytes // 4)
    end = rest.rfind("\n", 0, len(rest) - len(kept)) + 1
    part = rest[:end]
    if _size(part) > _MAX_PART_BYTES:
        part = shorten_log(part, _MAX_PART_BYTES)
    return part, through + end


def build_summary_prompt(before: str, part: str) -> str:
    """Build the request to the fast model for a summary of the log up to the end of `part`."""
    known = ""
    if before.strip():
        known = f"Your notes so far:\n{before.strip()}\n\n"
    return (
        f"{known}Actions since then, by round:\n{part.strip()}\n\n"
        "Write the notes anew and include these actions: results and figures word for word, failures and their causes, "
        "decisions, and names and paths that are needed later. At most 150 words, plain lines, nothing else. Invent "
        "nothing."
    )


def _format_summary(summary: str, room_bytes: int) -> str:
    if not summary.strip():
        return ""
    return _cut_middle(f"[Before, in short:]\n{summary.strip()}", room_bytes // 2)


def _list_shown_texts(texts: Mapping[str, str], limit_bytes: int) -> dict[str, str]:
    """Return the texts that are not empty, with the outline of the library in its place."""
    shown = {}
    for name, text in texts.items():
        if name == LIBRARY and text:
            text = shorten_library(text, limit_bytes)
        if text.strip():
            shown[name] = text
    return shown


def _divide_room(texts: Mapping[str, str], limit_bytes: int) -> dict[str, int]:
    """Give each text the bytes it needs, up to its share of the room that smaller texts leave."""
    sizes = {name: _size(text) for name, text in texts.items()}
    other_count = len(texts.keys() - _SHARES.keys())
    shares: dict[str, float] = {}
    for name in texts:
        shares[name] = _SHARES[name] if name in _SHARES else 1 / other_count
    rooms = {}
    for name in sorted(texts, key=lambda name: sizes[name] / shares[name]):
        room_bytes = int(limit_bytes * shares[name] / sum(shares.values()))
        rooms[name] = min(sizes[name], room_bytes)
        limit_bytes -= rooms[name]
        del shares[name]
    return rooms


def _take_last(lines: Sequence[str], room_bytes: int) -> Sequence[str]:
    count = 0
    for line in reversed(lines):
        room_bytes -= _size(line) + 1
        if room_bytes < 0:
            break
        count += 1
    return lines[len(lines) - count :]


def _cut_middle(text: str, room_bytes: int) -> str:
    data = text.encode(errors="replace")
    if len(data) <= room_bytes:
        return text
    room_bytes = max(0, room_bytes - _NOTE_BYTES)
    head = data[: room_bytes * 3 // 4].decode(errors="ignore")
    tail = _cut_start(text, room_bytes // 4)
    left_out_bytes = len(data) - _size(head) - _size(tail)
    return f"{head}\n[... {left_out_bytes:,} bytes left out here ...]\n{tail}"


def _cut_start(text: str, room_bytes: int) -> str:
    if room_bytes <= 0:
        return ""
    data = text[-room_bytes:].encode(errors="replace")
    return data[-room_bytes:].decode(errors="ignore")


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
