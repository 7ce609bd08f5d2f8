"""The memory within a token budget: shorten each file so that all of them fit."""

from collections.abc import Callable, Iterable, Mapping, Sequence

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
    source = texts.get(LIBRARY, "")
    texts, rooms = _measure_rooms(texts, limit_tokens * CHARS_PER_TOKEN)
    shorten: dict[str, Callable[[str, int], str]] = {
        PLAN: shorten_plan,
        LOGS: lambda text, room_bytes: shorten_log(text, room_bytes, log_summary),
        LIBRARY: lambda _, room_bytes: shorten_library(source, room_bytes),
    }
    fitting = {
        name: text if _size(text) <= rooms[name] else shorten.get(name, _cut_middle)(text, rooms[name])
        for name, text in texts.items()
    }
    return [(_TITLES.get(name, name), text.rstrip("\n")) for name, text in fitting.items()]


def format_sections(sections: Iterable[tuple[str, str]]) -> str:
    """Put each text that is not empty between tags with its title, because texts may have Markdown headings."""
    return "\n\n".join(f"<{title}>\n{text.strip()}\n</{title}>" for title, text in sections if text.strip())


def shorten_plan(plan: str, room_bytes: int) -> str:
    """Leave out finished steps. Cut the middle if the plan is still too long."""
    steps, lines = find_steps(plan), plan.split("\n")
    ends = [*(step.line for step in steps[1:]), len(lines)]
    finished = [range(step.line, end) for step, end in zip(steps, ends, strict=False) if step.status == "complete"]
    hidden = {number for span in finished for number in span if not lines[number].startswith("#")}  # headings stay
    shown = [line for number, line in enumerate(lines) if number not in hidden]
    return _cut_middle("\n".join([f"[{len(finished)} finished steps are left out]", *shown]), room_bytes)


def shorten_log(log: str, room_bytes: int, summary: str = "") -> str:
    """Keep the newest entries that fit, below the summary of the older ones or their number."""
    above = _format_summary(summary, room_bytes)
    lines = log.strip("\n").split("\n")
    room_bytes -= _size(above) + _NOTE_BYTES
    newest = _take_last(lines, room_bytes) or [_cut_start(lines[-1], room_bytes - 1)]
    left_out = len(lines) - len(newest)
    return "\n".join(filter(None, [above, f"[... {left_out:,} earlier lines ...]" if left_out else "", *newest]))


def shorten_library(source: str, room_bytes: int) -> str:
    """Return the library's outline in as much detail as fits, with the newest names last."""
    details: tuple[Detail, ...] = ("docstrings", "signatures", "names")
    for detail in details:
        entries = build_outline(source, detail)
        if _size(text := "\n".join(entries)) <= room_bytes:
            return text
    newest = _take_last(entries, room_bytes - _NOTE_BYTES)
    return "\n".join([f"[... {len(entries) - len(newest):,} older ones ...]", *newest])


def find_unsummarized(
    texts: Mapping[str, str], through: int, *, limit_tokens: int, log_summary: str = ""
) -> tuple[str, int]:
    """Return the part of the log to add to its summary, and the index where that part ends.

    `through` is the end of the previous part. The part is empty while `build_sections` shows the whole log, or all of
    it after `through` below the summary. Otherwise the rest takes a quarter of the log's room. A very long part, such
    as the log of earlier runs, is cut to its end.
    """
    log = texts.get(LOGS, "")
    through = through if through <= len(log) else 0  # a person shortened the log
    room_bytes = _measure_rooms(texts, limit_tokens * CHARS_PER_TOKEN)[1].get(LOGS, 0)
    rest = log[through:]
    above = _format_summary(log_summary, room_bytes)
    if _size(log) <= room_bytes or (through and _size(above) + _NOTE_BYTES + _size(rest) <= room_bytes):
        return "", through
    end = rest.rfind("\n", 0, len(rest) - len(_cut_start(rest, room_bytes // 4))) + 1
    if not end:
        return "", through
    part = rest[:end]
    return (part if _size(part) <= _MAX_PART_BYTES else shorten_log(part, _MAX_PART_BYTES)), through + end


def build_summary_prompt(before: str, part: str) -> str:
    """Build the request to the fast model for a summary of the log up to the end of `part`."""
    known = f"Your notes so far:\n{before.strip()}\n\n" if before.strip() else ""
    return (
        f"{known}Actions since then, by round:\n{part.strip()}\n\n"
        "Write the notes anew and include these actions: results and figures word for word, failures and their causes, "
        "decisions, and names and paths that are needed later. At most 150 words, plain lines, nothing else. Invent "
        "nothing."
    )


def _format_summary(summary: str, room_bytes: int) -> str:
    return _cut_middle(f"[Before, in short:]\n{summary.strip()}", room_bytes // 2) if summary.strip() else ""


def _measure_rooms(texts: Mapping[str, str], limit_bytes: int) -> tuple[dict[str, str], dict[str, int]]:
    """Return the texts that are not empty, with the outline of the library, and the room of each in bytes."""
    source = texts.get(LIBRARY, "")
    outline = {LIBRARY: shorten_library(source, limit_bytes)} if source else {}
    shown = {name: text for name, text in {**texts, **outline}.items() if text.strip()}
    return shown, _divide_room({name: _size(text) for name, text in shown.items()}, limit_bytes)


def _divide_room(sizes: Mapping[str, int], limit_bytes: int) -> dict[str, int]:
    """Give each file the room it needs, up to its share of the room that smaller files leave."""
    others = sum(name not in _SHARES for name in sizes)
    shares = {name: _SHARES.get(name, 1 / max(others, 1)) for name in sizes}
    rooms = {}
    for name in sorted(sizes, key=lambda name: sizes[name] / shares[name]):
        rooms[name] = min(sizes[name], int(limit_bytes * shares[name] / sum(shares.values())))
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
    head, tail = data[: room_bytes * 3 // 4].decode(errors="ignore"), _cut_start(text, room_bytes // 4)
    return f"{head}\n[... {len(data) - _size(head) - _size(tail):,} bytes left out here ...]\n{tail}"


def _cut_start(text: str, room_bytes: int) -> str:
    if room_bytes <= 0:
        return ""
    return text[-room_bytes:].encode(errors="replace")[-room_bytes:].decode(errors="ignore")


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
