"""The work of the commands `session list`, `show`, `export` and `clear`."""

import errno
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import typer

from goose_like.agent.profile_choice import choose_profile
from goose_like.config.trust import load_trusted_project
from goose_like.core.errors import CredentialError, DeniedError, GooseLikeError, UsageError
from goose_like.core.events import MessageCompleted, TurnFinished, TurnStarted
from goose_like.core.message import Usage
from goose_like.core.spelling import format_count
from goose_like.providers.prices import compute_cost_usd
from goose_like.providers.registry import choose_models, format_model_label
from goose_like.sessions.archive import export_archive
from goose_like.sessions.export_atif import export_atif
from goose_like.sessions.export_html import export_html
from goose_like.sessions.export_markdown import export_markdown
from goose_like.sessions.export_notebook import export_notebook
from goose_like.sessions.index import (
    SessionInfo,
    count_totals,
    find_session_or_newest,
    list_sessions,
    list_subagent_sessions,
    search_sessions,
    session_errors,
)
from goose_like.sessions.search import search_messages
from goose_like.sessions.session import Session, delete_session
from goose_like.sessions.transcript import Transcript, format_time, list_changed_files
from goose_like.terminal.escape import escape_controls, escape_for, to_one_line
from goose_like.terminal.interaction import has_person
from goose_like.terminal.report_table import print_table
from goose_like.workspace.files import write_file
from goose_like.workspace.permissions.policy import effective_sandbox

MAX_LISTED = 20
_CUT_CHARACTERS = 40
_LINE_CHARACTERS = 80
_FORMATS = {
    ".md": "markdown",
    ".txt": "markdown",
    ".html": "html",
    ".htm": "html",
    ".ipynb": "notebook",
    ".json": "json",
}


# --- list and delete


def print_sessions(words: Sequence[str], *, cwd: str | None, is_complete: bool) -> None:
    """Print the sessions that contain these words, newest first, with their cost."""
    sessions = search_sessions(words, cwd)
    limit = None if is_complete else MAX_LISTED
    rows = []
    for info in islice(sessions, limit):
        turns, usage = count_totals(info)
        tokens = sum(spent.total_tokens for spent in usage.values())
        cost = format_money(compute_cost_usd(usage))
        name, age, folder, summary = _make_row(info)
        rows.append((name, age, folder, str(turns), cost, f"{tokens:,}", summary))
    empty = "no sessions yet; start one: goose-like session start"
    if words or cwd:
        empty = "no matching sessions; see all: goose-like session list --all"
    print_table(("name", "age", "folder", "turns", "cost", "tokens", "about"), rows, empty)
    if next(sessions, None):
        print(f"\nthe newest {MAX_LISTED}; see all: goose-like session list --all")


def print_matches(words: Sequence[str], *, cwd: str | None, is_complete: bool) -> None:
    """Print the sessions with these words, newest first, each with a line that matches."""
    split = " ".join(words).split()
    if not split:
        raise UsageError("give a word to search for: goose-like session search parser")
    matches = search_messages(split, cwd)
    limit = None if is_complete else MAX_LISTED
    rows = []
    for match in islice(matches, limit):
        name, age, folder, _ = _make_row(match.info)
        rows.append((name, age, folder, match.author, _clip_line(match.line, split)))
    print_table(("name", "age", "folder", "who", "line"), rows, f"no session has {' '.join(split)!r}")
    if next(matches, None):
        print(f"\nthe newest {MAX_LISTED}; see all: goose-like session search --all {shlex.join(split)}")


def _clip_line(line: str, words: Sequence[str]) -> str:
    """Return the part of a line around the first word."""
    folded = line.casefold()
    places = [folded.find(word.casefold()) for word in words]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, first - _LINE_CHARACTERS // 3)
    part = to_one_line(line[start:], _LINE_CHARACTERS)
    return f"…{part}" if start else part


def _make_row(info: SessionInfo) -> tuple[str, str, str, str]:
    return info.name, format_age(info.changed_at), escape_controls(info.cwd), to_one_line(info.summary, 60)


def format_age(time: datetime) -> str:
    """Return how long ago a time was, in words."""
    seconds = max(0.0, (datetime.now(UTC) - time).total_seconds())
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if count := int(seconds // size):
            return format_count(count, unit)
    return "now"


def format_money(cost_usd: float | None) -> str:
    """Return US dollars, or `?` for an unknown price."""
    if cost_usd is None:
        return "?"
    if not cost_usd:
        return "$0"
    return f"${cost_usd:.4f}"


def delete_sessions(keep: int, *, is_confirmed: bool) -> None:
    """Delete all but the newest `keep` sessions after asking; open sessions stay."""
    old = list_sessions()[keep:]
    if not old:
        print(f"there are at most {keep} sessions; nothing was deleted")
        return
    print_table(("name", "age", "folder", "about"), list(map(_make_row, old)), "")
    if not is_confirmed:
        what = "this session" if len(old) == 1 else f"these {len(old)} sessions"
        _confirm(f"delete {what} permanently?")
    kept = [info for info in old if not delete_session(info)]
    print(f"deleted {len(old) - len(kept)}")
    for info in kept:
        print(f"kept, because another process has it open: {info.name}")


def _confirm(question: str) -> None:
    if not has_person():
        raise DeniedError(f"{question} nobody can be asked; confirm with --yes")
    with suppress(typer.Abort):
        if typer.confirm(question, default=False, err=True):
            return
    raise DeniedError("nothing was deleted; see the sessions: goose-like session list --all")


# --- show


def describe_resumption(name: str) -> str:
    """Describe the mode and the model with which a session would resume here: `auto · workspace · openai:NAME`."""
    session = Session.resume(name)
    session.close()
    try:
        profile = choose_profile(None, session=session, project=load_trusted_project(Path.cwd())).profile
    except GooseLikeError as error:
        return f"its profile can't be loaded: {error}"
    mode = f"{profile.approval} · {effective_sandbox(profile.sandbox, profile.approval)}"
    try:
        processor, _ = choose_models(profile)
    except CredentialError:
        return f"{mode} · no model yet"
    return f"{mode} · {format_model_label(processor)}"


def print_session(name: str | None) -> None:
    """Print the facts of a session, its turns, the files it changed, its tokens and cost."""
    transcript = Transcript.read(find_session_or_newest(name, os.getcwd()))
    print_table(("", ""), _list_facts(transcript), "")
    print()
    print_table(("turn", "first words", "end"), _list_turns(transcript), "")
    nested = list_subagent_sessions(transcript.info)
    if nested:
        print()
        print_table(("delegated", "events"), list(map(_make_subagent_row, nested)), "")
    changed = list(list_changed_files(transcript.events))
    for info in nested:
        changed += list_changed_files(Transcript.read(info).events)
    if changed:
        print("\nfiles written by tools:")
    for path in dict.fromkeys(changed):
        print(f"  {escape_controls(path)}")
    print()
    _print_usage(transcript)
    print_problems(transcript.damage)


def _list_facts(transcript: Transcript) -> list[tuple[str, str]]:
    """Return what is known about a session as a whole."""
    info = transcript.info
    facts = {
        "name": info.name,
        "folder": info.cwd,
        "last used": f"{format_time(info.changed_at)} ({format_age(info.changed_at)})",
    }
    if header := transcript.history.header:
        facts["profile"] = header.profile
        models = [f"{role} {model}" for role, model in header.models.items()]
        facts["models"] = ", ".join(models)
    facts["file"] = str(info.file)
    return [(key, escape_controls(value)) for key, value in facts.items() if value]


def _make_subagent_row(info: SessionInfo) -> tuple[str, str]:
    return to_one_line(info.first_words, 60), escape_controls(str(info.file))


@dataclass
class _TurnRow:
    """A turn in the list: its first words, how it ended, and a note about an answer that was cut off."""

    words: str
    end: str = "not finished"
    cut: str = ""


def _list_turns(transcript: Transcript) -> list[tuple[str, str, str]]:
    """Return number, first words and end of every turn, with the last words of a cut-off answer."""
    turns: list[_TurnRow] = []
    for event in transcript.events:
        if isinstance(event, TurnStarted):
            words = to_one_line(event.message.first_text, 60)
            turns.append(_TurnRow(words))
        elif isinstance(event, TurnFinished) and turns:
            reason = event.reason.replace("_", " ")
            turns[-1].end = to_one_line(f"{reason} {event.detail}".strip(), 60)
        elif isinstance(event, MessageCompleted) and turns:
            turns[-1].cut = _describe_cut(event)
    current = {turn.number for turn in transcript.history.turns}
    rows = []
    for number, turn in enumerate(turns, 1):
        end = turn.end + turn.cut
        if number not in current:
            end += ", taken back"
        rows.append((str(number), turn.words, end))
    return rows


def _describe_cut(event: MessageCompleted) -> str:
    """Return a note with the last words of an answer that was cut off, or an empty text."""
    if not event.is_cut:
        return ""
    last_words = to_one_line(event.message.text[-_CUT_CHARACTERS:], _CUT_CHARACTERS)
    if not last_words:
        return ""
    return f", cut off: …{last_words}"


def _print_usage(transcript: Transcript) -> None:
    rows = [_make_usage_row(model, {model: usage}) for model, usage in transcript.usage.items()]
    if len(rows) > 1:
        rows.append(_make_usage_row("all", transcript.usage))
    print_table(("model", "tokens in", "cached", "out", "cost"), rows, "no tokens were counted")


def _make_usage_row(name: str, usage: Mapping[str, Usage]) -> tuple[str, str, str, str, str]:
    """Return the tokens of some models and their cost."""
    total = sum(usage.values(), Usage())
    return (
        escape_controls(name),
        f"{total.input_tokens:,}",
        f"{total.cache_read_tokens:,}",
        f"{total.output_tokens:,}",
        format_money(compute_cost_usd(usage)),
    )


def print_problems(problems: Sequence[str]) -> None:
    """Print problems, such as unreadable lines of a session, on standard error."""
    for problem in problems:
        print(f"goose-like: {escape_controls(problem)}", file=sys.stderr)


# --- export


def export_session(name: str | None, form: str | None, file: Path | None) -> None:
    """Write a session to a file, or to standard output as Markdown unless `form` says otherwise."""
    if file is not None:
        print(write_export(name, file, form))
        return
    text = _export_text(name, form or "markdown")
    print(escape_for(sys.stdout, text), end="")


def write_export(name: str | None, file: Path, form: str | None = None) -> str:
    """Write a session to a file and return a message; without `form` the file's suffix decides the format.

    Raises:
        UsageError: the suffix means no format.
    """
    form = form or _FORMATS.get(file.suffix.lower())
    if form is None:
        raise UsageError(f"{file.name!r} ends with no known format; use one of {', '.join(_FORMATS)}")
    text = _export_text(name, form)
    with session_errors(f"cannot write {str(file)!r}", "choose another file with -o"):
        write_file(_find_place(file), text.encode())
    return f"wrote {file}"


def _find_place(file: Path) -> Path:
    """Return the path to write to. Links below the current folder are refused: a command may have put them there."""
    place = Path(os.path.abspath(file))
    here = Path.cwd()
    if not place.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(place.parent))
    for checked in (place, *place.parents):
        is_below = checked == place or here in checked.parents
        if is_below and checked.is_symlink():
            raise UsageError(f"{checked} is a link, which is not followed; choose another file")
    if place.is_relative_to(here):
        return place
    return place.parent.resolve() / place.name


def _export_text(name: str | None, form: str) -> str:
    info = find_session_or_newest(name, os.getcwd())
    if form == "json":
        return export_archive(info)
    transcript = Transcript.read(info)
    print_problems(transcript.damage)
    exporters = {
        "html": export_html,
        "notebook": export_notebook,
        "markdown": export_markdown,
        "atif": export_atif,
    }
    return exporters[form](transcript)
