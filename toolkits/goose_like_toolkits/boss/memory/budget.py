"""The memory within a token budget: shorten each file so that all of them fit."""

from collections.abc import Callable, Mapping, Sequence

from goose_like.agent.compaction.summary import CHARS_PER_TOKEN
from goose_like_toolkits.boss.library.code_library import Detail, build_outline
from goose_like_toolkits.boss.spec import LIBRARY, LOGS, PLAN

from .plan_text import find_steps

_TITLES = {PLAN: "Plan", LOGS: "Log", LIBRARY: "Code library"}
_SHARES = {PLAN: 4, LOGS: 4, LIBRARY: 3}  # all other files together have one share
_NOTE_BYTES = 60
_MAX_BATCHES = 8


def build_sections(texts: Mapping[str, str], *, limit_tokens: int, log_summary: str = "") -> list[tuple[str, str]]:
    """Return title and text of each memory file that is not empty. All texts together fit into the limit.

    A long plan loses its finished steps first. A long log keeps its newest entries below `log_summary`. The outline of
    the library loses docstrings, then signatures, then the oldest names. Other files lose their middle.
    """
    limit_bytes, source = limit_tokens * CHARS_PER_TOKEN, texts.get(LIBRARY, "")
    outline = {LIBRARY: shorten_library(source, limit_bytes)} if source else {}
    texts = {name: text for name, text in {**texts, **outline}.items() if text.strip()}
    rooms = _divide_room({name: _size(text) for name, text in texts.items()}, limit_bytes)
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
    above = _cut_middle(f"[Before, in short:]\n{summary.strip()}", room_bytes // 2) if summary.strip() else ""
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


def get_tail_bytes(limit_tokens: int) -> int:
    """Return the length of the log's end that needs no summary. Twice this length always fits beside the summary."""
    return limit_tokens * CHARS_PER_TOKEN * _SHARES[LOGS] // (sum(_SHARES.values()) + 1) // 5


def find_unsummarized(log: str, through: int, tail_bytes: int) -> tuple[str, int]:
    """Return the part of the log to add to its summary, and the index where that part ends.

    `through` is the end of the previous part. The last `tail_bytes` stay out. The part is empty until it is as long as
    that tail. A very long part, such as the log of earlier runs, is cut to its end.
    """
    through = through if through <= len(log) else 0  # a person shortened the log
    rest = log[through:]
    if _size(rest) <= 2 * tail_bytes:
        return "", through
    end = rest.rfind("\n", 0, len(rest) - len(_cut_start(rest, tail_bytes))) + 1
    if not end:
        return "", through
    part, limit_bytes = rest[:end], _MAX_BATCHES * tail_bytes
    return (part if _size(part) <= limit_bytes else shorten_log(part, limit_bytes)), through + end


def build_summary_prompt(before: str, part: str) -> str:
    """Build the request to the fast model for a summary of the log up to the end of `part`."""
    known = f"Your notes so far:\n{before.strip()}\n\n" if before.strip() else ""
    return (
        f"{known}Actions since then, by round:\n{part.strip()}\n\n"
        "Write the notes anew and include these actions: successes, failures and their causes, decisions, and "
        "names, paths and figures that are needed later. At most 150 words, plain lines, nothing else. Invent nothing."
    )


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
