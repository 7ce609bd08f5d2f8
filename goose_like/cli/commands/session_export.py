"""What `session show`, `export`, `import` and `fork` print and write."""

import sys
from pathlib import Path
from shlex import quote

from goose_like.core.errors import SessionError
from goose_like.core.events import TurnFinished, TurnStarted
from goose_like.core.message import Usage
from goose_like.providers.prices import cost_usd
from goose_like.sessions.archive import archive, take_in
from goose_like.sessions.export_html import page
from goose_like.sessions.export_markdown import markdown
from goose_like.sessions.fork import fork
from goose_like.sessions.index import find_session, nested_sessions
from goose_like.sessions.transcript import Transcript, when
from goose_like.terminal.escape import one_line, visible
from goose_like.terminal.report_table import print_table

from .session import age, money

_FORMATS = {".html": "html", ".htm": "html", ".json": "json"}


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
    if delegated := nested_sessions(listed):
        print()
        print_table(
            ("delegated", "events"),
            [(one_line(each.first_words, 60), visible(str(each.file))) for each in delegated],
            "",
        )
    written = (path for each in (transcript, *map(Transcript.read, delegated)) for path in each.changed_files)
    if changed := list(dict.fromkeys(written)):
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
            turns.append((str(len(turns) + 1), one_line(event.message.first_text, 60), "not finished"))
        elif isinstance(event, TurnFinished) and turns:
            told = f"{event.reason.replace('_', ' ')} {event.detail}".strip()
            turns[-1] = (*turns[-1][:2], one_line(told, 60))
    return [turn if int(turn[0]) in standing else (*turn[:2], f"{turn[2]}, taken back") for turn in turns]


def export_session(name: str, form: str | None, file: Path | None) -> None:
    """Writes a session to a file or stdout; without a form that of the file's ending, else Markdown."""
    if file is not None:
        print(write_export(name, file, form))
    else:
        print(_exported(name, form or "markdown"), end="")


def write_export(name: str, file: Path, form: str | None = None) -> str:
    """Writes a session to a file and says so; without a form that of the file's ending, else Markdown.

    Raises:
        SessionError: no such session, or the file can't be written.
    """
    text = _exported(name, form or _FORMATS.get(file.suffix.lower(), "markdown"))
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SessionError(f"{str(file)!r} can't be written: {error}; give another file after -o") from None
    return f"wrote {file}"


def _exported(name: str, form: str) -> str:
    listed = find_session(name)
    if form == "json":
        return archive(listed)
    transcript = Transcript.read(listed)
    for sentence in transcript.damage:
        print(f"goose-like: {visible(sentence)}", file=sys.stderr)
    return page(transcript) if form == "html" else markdown(transcript)


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
