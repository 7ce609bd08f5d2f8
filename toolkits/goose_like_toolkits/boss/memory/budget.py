"""The memory as a controller reads it: section by section, within a budget whatever the files hold."""

from collections.abc import Callable, Iterator, Mapping

from goose_like.agent.compaction.truncate import CHARACTERS_A_TOKEN
from goose_like_toolkits.boss.library.outline import Detail, entries
from goose_like_toolkits.boss.spec import LIBRARY, LOGS, PLAN

from .files import Contents
from .plan_text import steps

_TITLES = {PLAN: "Plan", LOGS: "Log", LIBRARY: "Code library"}
_SHARES = {PLAN: 4, LOGS: 4, LIBRARY: 3}  # of these and one of all other files together
_NOTE_BYTES = 60
_BATCHES = 8


def sections(contents: Contents, *, limit_tokens: int, log_summary: str = "") -> list[tuple[str, str]]:
    """Title and text of each memory file that holds something, in all no more than the limit, but for titles.

    Of the plan, finished steps are left out first; of the log, the oldest entries, for which `log_summary` stands; of
    the library's outline docstrings, then signatures, then the oldest names; of other files the middle.
    """
    limit_bytes = limit_tokens * CHARACTERS_A_TOKEN
    texts = dict(contents.texts)
    source = texts.get(LIBRARY, "")
    if source:
        texts[LIBRARY] = outlined(source, limit_bytes)
    full = {name: text for name, text in texts.items() if text.strip()}
    rooms = _rooms({name: _size(text) for name, text in full.items()}, limit_bytes)
    shorten: dict[str, Callable[[str, int], str]] = {
        PLAN: folded,
        LOGS: lambda text, room_bytes: tail(text, room_bytes, log_summary),
        LIBRARY: lambda _, room_bytes: outlined(source, room_bytes),
    }
    fitting = {
        name: text if _size(text) <= rooms[name] else shorten.get(name, _ends)(text, rooms[name])
        for name, text in full.items()
    }
    return [(_TITLES.get(name, name), text.rstrip("\n")) for name, text in fitting.items()]


def folded(plan: str, room_bytes: int) -> str:
    """A plan of at most that size: finished steps become a line, and if need be the middle of all is left out."""
    found = steps(plan)
    lines = plan.split("\n")
    starts = [*(step.line for step in found), len(lines)]
    shown, finished = lines[: starts[0]], list[int]()
    for number, step in enumerate(found, 1):
        own = lines[starts[number - 1] : starts[number]]
        if step.status == "complete":
            finished.append(number)
            own = [line for line in own[1:] if line.startswith("#")]  # the headings of what comes after it
        if own:
            shown += [*_fold(finished), *own]
            finished = []
    return _ends("\n".join([*shown, *_fold(finished)]), room_bytes)


def tail(log: str, room_bytes: int, summary: str = "") -> str:
    """The newest entries that fit, whole; above them what came before in short, or how many there were."""
    above = _ends(f"[Before, in short:]\n{summary.strip()}", room_bytes // 2) if summary.strip() else ""
    lines = log.strip("\n").split("\n")
    room_bytes -= _size(above) + _NOTE_BYTES
    kept = 0
    for line in reversed(lines):
        room_bytes -= _size(line) + 1
        if room_bytes < 0:
            break
        kept += 1
    newest = lines[len(lines) - kept :] or [_last(lines[-1], room_bytes + _size(lines[-1]))]
    left_out = len(lines) - len(newest)
    return "\n".join(filter(None, [above, f"[... {left_out:,} earlier lines ...]" if left_out else "", *newest]))


def outlined(source: str, room_bytes: int) -> str:
    """The library's outline with as much of it as fits, the newest names last and longest."""
    details: tuple[Detail, ...] = ("docstrings", "signatures", "names")
    for detail in details:
        shown = entries(source, detail)
        if _size(text := "\n".join(shown)) <= room_bytes:
            return text
    room_bytes -= _NOTE_BYTES
    kept = 0
    for name in reversed(shown):
        room_bytes -= _size(name) + 1
        if room_bytes < 0:
            break
        kept += 1
    return "\n".join([f"[... {len(shown) - kept:,} older ones ...]", *shown[len(shown) - kept :]])


def tail_bytes(limit_tokens: int) -> int:
    """How much of the log need not be summarised yet: twice that much is shown in any case, beside the summary."""
    return limit_tokens * CHARACTERS_A_TOKEN * _SHARES[LOGS] // (sum(_SHARES.values()) + 1) // 5


def unsummarised(log: str, through: int, tail_bytes: int) -> tuple[str, int]:
    """What of the log is to go into its summary now, and up to which character it then goes; "" until it is worth it.

    `through` is where the summary ended so far. All but the last `tail_bytes` are taken, once that is as much again. Of
    far more than that (the log of earlier runs) it is the newest.
    """
    through = through if through <= len(log) else 0  # a person cut it
    rest = log[through:]
    if _size(rest) <= 2 * tail_bytes:
        return "", through
    end = rest.rfind("\n", 0, len(rest) - len(_last(rest, tail_bytes))) + 1
    if not end:
        return "", through
    part = rest[:end]
    return (part if _size(part) <= _BATCHES * tail_bytes else tail(part, _BATCHES * tail_bytes)), through + end


def summary_prompt(before: str, part: str) -> str:
    """What the fast model is asked, so that its answer stands for the log up to here."""
    known = f"Your notes so far:\n{before.strip()}\n\n" if before.strip() else ""
    return (
        f"{known}What was done since, by round:\n{part.strip()}\n\n"
        "Write the notes anew, with what is new in them: what was achieved, what failed and why, what was decided, and "
        "names, paths and figures that are needed later. At most 150 words, plain lines, nothing else. Invent nothing."
    )


def _rooms(sizes: Mapping[str, int], limit_bytes: int) -> dict[str, int]:
    """How much each may have: what it needs up to its share, then of what the others leave, the log as the last."""
    others = sum(name not in _SHARES for name in sizes)
    whole = sum(share for name, share in _SHARES.items() if name in sizes) + bool(others)
    rooms = {}
    for name, size in sizes.items():
        share = limit_bytes * _SHARES[name] // whole if name in _SHARES else limit_bytes // whole // others
        rooms[name] = min(size, share)
    left = limit_bytes - sum(rooms.values())
    for name, size in sorted(sizes.items(), key=lambda held: held[0] == LOGS):  # it has a summary
        more = min(left, size - rooms[name])
        rooms[name] += more
        left -= more
    return rooms


def _fold(finished: list[int]) -> Iterator[str]:
    if len(finished) == 1:
        yield f"[step {finished[0]} is done]"
    elif finished:
        yield f"[steps {finished[0]} to {finished[-1]} are done]"


def _ends(text: str, room_bytes: int) -> str:
    """Both ends of a text that is longer than there is room."""
    if (size := _size(text)) <= room_bytes:
        return text
    room_bytes = max(0, room_bytes - _NOTE_BYTES)
    head, end = _first(text, room_bytes * 3 // 4), _last(text, room_bytes // 4)
    return f"{head}\n[... {size - _size(head) - _size(end):,} bytes left out here ...]\n{end}"


def _first(text: str, room_bytes: int) -> str:
    return text[:room_bytes].encode(errors="replace")[:room_bytes].decode(errors="ignore")


def _last(text: str, room_bytes: int) -> str:
    if room_bytes <= 0:
        return ""
    return text[-room_bytes:].encode(errors="replace")[-room_bytes:].decode(errors="ignore")


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))
