"""What the commands of sessions print: `list`, `show`, `export`, `import`, `fork`, `rename`, `clear`."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from shlex import quote

import typer

from ..errors import DeniedError, SessionError
from ..events import TurnFinished, TurnStarted
from ..fork import fork
from ..message import Usage
from ..prices import cost_usd
from ..session import delete_session
from ..sessions import find_session, list_sessions, search, tally
from ..transfer.archive import archive, take_in
from ..transfer.markdown import markdown
from ..transfer.page import page
from ..transfer.transcript import Transcript, when
from .reports import print_table
from .terminal import has_person
from .visible import one_line, visible

LISTED = 20

_FORMATS = {".html": "html", ".htm": "html", ".json": "json"}


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
                one_line(listed.first_words, 60),
            )
        )
    none = "no sessions yet; start one with `goose-like session start`"
    if words or cwd:
        none = "no session is like that; `goose-like session list --all` lists every one"
    print_table(("name", "age", "folder", "turns", "cost", "tokens", "first words"), rows, none)
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


def show_session(name: str) -> None:
    """What a session is, its turns, the files it changed, and what it took."""
    transcript = Transcript.read(find_session(name))
    listed, header = transcript.listed, transcript.history.header
    facts = {
        "name": listed.name,
        "folder": listed.cwd,
        "last used": f"{when(listed.changed)} ({age(listed.changed)})",
        "profile": header.profile if header else "",
        "models": ", ".join(f"{role} {model}" for role, model in header.models.items()) if header else "",
        "file": str(listed.file),
    }
    print_table(("", ""), [(key, visible(value)) for key, value in facts.items() if value], "")
    print()
    print_table(("turn", "first words", "end"), _turns(transcript), "")
    if changed := transcript.changed_files:
        print("\nfiles written by tools:")
        print(*(f"  {visible(path)}" for path in changed), sep="\n")
    print()
    usage = transcript.usage
    rows = [(visible(model), *_counts(spent), money(cost_usd({model: spent}))) for model, spent in usage.items()]
    if len(rows) > 1:
        rows.append(("all", *_counts(transcript.history.total_usage), money(cost_usd(usage))))
    print_table(("model", "tokens in", "cached", "out", "cost"), rows, "no tokens were counted")
    for sentence in transcript.damage:
        print(f"goose-like: {visible(sentence)}", file=sys.stderr)


def _counts(spent: Usage) -> tuple[str, str, str]:
    return f"{spent.input_tokens:,}", f"{spent.cache_read_tokens:,}", f"{spent.output_tokens:,}"


def _turns(transcript: Transcript) -> list[tuple[str, str, str]]:
    """Every turn that was begun: its number, its words and its end. Those that were taken back say so."""
    standing = {turn.number for turn in transcript.history.turns}
    turns: list[tuple[str, str, str]] = []
    for event in transcript.events:
        if isinstance(event, TurnStarted):
            turns.append((str(len(turns) + 1), one_line(event.message.text, 60), "not finished"))
        elif isinstance(event, TurnFinished) and turns:
            told = f"{event.reason.replace('_', ' ')} {event.detail}".strip()
            turns[-1] = (*turns[-1][:2], one_line(told, 60))
    return [turn if int(turn[0]) in standing else (*turn[:2], f"{turn[2]}, taken back") for turn in turns]


def export_session(name: str, form: str | None, file: Path | None) -> None:
    """Writes a session to a file or stdout; without a form that of the file's ending, else Markdown."""
    listed = find_session(name)
    form = form or _FORMATS.get(file.suffix.lower() if file else "", "markdown")
    if form == "json":
        text = archive(listed)
    else:
        transcript = Transcript.read(listed)
        text = page(transcript) if form == "html" else markdown(transcript)
        for sentence in transcript.damage:
            print(f"goose-like: {visible(sentence)}", file=sys.stderr)
    if file is None:
        print(text, end="")
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SessionError(f"{str(file)!r} can't be written: {error}; give another file after -o") from None
    print(f"wrote {file}")


def import_session(file: Path, name: str | None) -> None:
    """A new session with what is in the file, and how to go on with it."""
    session = take_in(file, name)
    session.close()
    print(f"imported as {session.name!r}; go on with it: goose-like session resume {quote(session.name)}")


def fork_session(name: str, at: int | None, new: str | None) -> None:
    """A new session that begins as another, and how to go on with it."""
    session = fork(find_session(name), at=at, name=new)
    session.close()
    for sentence in session.damage:
        print(f"goose-like: {visible(sentence)}", file=sys.stderr)
    print(f"forked {name!r} as {session.name!r}; go on with it: goose-like session resume {quote(session.name)}")


def clear_sessions(keep: int, *, is_agreed: bool) -> None:
    """Deletes all but the newest `keep` sessions, once somebody has agreed; those that are open stay.

    Raises:
        DeniedError: nobody has.
    """
    old = list_sessions()[keep:]
    if not old:
        print(f"there are no more than {keep} sessions; nothing was deleted")
        return
    rows = [(listed.name, age(listed.changed), visible(listed.cwd), one_line(listed.first_words, 60)) for listed in old]
    print_table(("name", "age", "folder", "first words"), rows, "")
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
