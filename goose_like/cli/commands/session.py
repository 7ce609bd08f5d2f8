"""What `session list` and `session clear` print."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice

import typer

from goose_like.core.errors import DeniedError
from goose_like.providers.prices import cost_usd
from goose_like.sessions.index import list_sessions, search, tally
from goose_like.sessions.session import delete_session
from goose_like.terminal.escape import one_line, visible
from goose_like.terminal.interaction import has_person
from goose_like.terminal.report_table import print_table

LISTED = 20


def show_sessions(words: Sequence[str], *, cwd: str | None, has_all: bool) -> None:
    """The sessions with these words, newest first, and what each cost."""
    found = search(words, cwd)
    rows = []
    for listed in found if has_all else islice(found, LISTED):
        counted = tally(listed)
        rows.append(
            (
                listed.name,
                age(listed.changed),
                visible(listed.cwd),
                str(counted.turns),
                money(cost_usd(counted.usage)),
                f"{sum(spent.total_tokens for spent in counted.usage.values()):,}",
                one_line(listed.about, 60),
            )
        )
    none = "no sessions yet; start one with `goose-like session start`"
    if words or cwd:
        none = "no session is like that; `goose-like session list --all` lists every one"
    print_table(("name", "age", "folder", "turns", "cost", "tokens", "about"), rows, none)
    if next(found, None):
        print(f"\nthe newest {LISTED}; all of them: goose-like session list --all")


def age(then: datetime) -> str:
    """How long ago that is, in words."""
    seconds = max(0.0, (datetime.now(UTC) - then).total_seconds())
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if count := int(seconds // size):
            return f"{count} {unit}{'s' * (count > 1)}"
    return "now"


def money(cost: float | None) -> str:
    """US dollars; `?` where a price is not known."""
    return "?" if cost is None else f"${cost:.4f}" if cost else "$0"


def clear_sessions(keep: int, *, is_agreed: bool) -> None:
    """Deletes all but the newest `keep` sessions, once somebody has agreed; those that are open stay.

    Raises:
        DeniedError: nobody has.
    """
    old = list_sessions()[keep:]
    if not old:
        print(f"there are no more than {keep} sessions; nothing was deleted")
        return
    rows = [(listed.name, age(listed.changed), visible(listed.cwd), one_line(listed.about, 60)) for listed in old]
    print_table(("name", "age", "folder", "about"), rows, "")
    if not is_agreed:
        _ask_to_delete(len(old))
    left = [listed for listed in old if not delete_session(listed)]
    print(f"deleted {len(old) - len(left)}")
    for listed in left:
        print(f"left, as it is open in another process: {listed.name}")


def _ask_to_delete(count: int) -> None:
    what = f"delete {'this session' if count == 1 else f'these {count} sessions'} for good?"
    if not has_person():
        raise DeniedError(f"{what} nobody can be asked; say so with --yes")
    try:
        is_agreed = typer.confirm(what, default=False, err=True)
    except typer.Abort:
        is_agreed = False
    if not is_agreed:
        raise DeniedError("nothing was deleted; see them with `goose-like session list --all`")
