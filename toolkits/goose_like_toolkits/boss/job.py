"""What a boss is told on the command line: a file, the options over it; kept with its session, to go on by."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from goose_like.config.yaml_source import Source, read_yaml
from goose_like.core.errors import SessionError, UsageError
from goose_like.sessions.index import find_session, sessions
from goose_like.sessions.session import Session
from goose_like_toolkits.boss.aiflows.configuration import read_configuration

from .spec import FILES, LIBRARY, BossSpec

_KEPT = "boss.json"


@dataclass(frozen=True, slots=True)
class Commission:
    """A spec, of which some memory files may have no place yet.

    `has_own_files`: its file names memory; where that has no library, there is to be none.
    """

    spec: BossSpec
    has_own_files: bool = False

    def kept_in(self, session: Session) -> BossSpec:
        """The spec with all of its memory files, kept in the session's folder.

        Raises:
            SessionError: the folder can't be written.
        """
        named = self.spec.memory_files
        beside = [name for name in FILES if name != LIBRARY or not self.has_own_files]
        files = {name: str(session.folder / "memory" / FILES[name]) for name in beside}
        spec = self.spec.model_copy(update={"memory_files": files | named})
        try:
            (session.folder / _KEPT).write_text(spec.model_dump_json(exclude_defaults=True), encoding="utf-8")
        except OSError as error:
            raise SessionError(f"{session.folder} can't be written: {error}; free some space") from error
        return spec


def commissioned(config: Path | None, memory: Sequence[str], max_round: int | None, *, is_reviewed: bool) -> Commission:
    """What the file says, with the options over it; what of the file can't be done is told on stderr.

    Raises:
        UsageError: a memory file without a name, or one that is none.
        ProfileError: the file can't be read; the text names it and the line.
    """
    spec = _read(config) if config else BossSpec()
    has_own_files, named = bool(spec.memory_files), dict(map(_named, memory))
    update = {
        "memory_files": {**spec.memory_files, **named},
        "max_round": max_round or spec.max_round,
        "review_plan": is_reviewed or spec.review_plan,
    }
    spec = spec.model_copy(update=update)
    for name, file in spec.memory_files.items():
        _check(name, Path(file))
    return Commission(spec, has_own_files)


def to_begin(name: str | None) -> str | None:
    """The name of a new run. Raises: SessionError: another run has it."""
    if any(each.name == name and (each.folder / _KEPT).is_file() for each in sessions() if name):
        again = f"goose-like boss --resume --session {shlex.quote(str(name))}"
        raise SessionError(f"there is a run {name!r} already; go on with it: {again}, or give another name")
    return name


def to_resume(name: str | None) -> str:
    """The session of a boss's run: of that name, or the newest of the current folder.

    Raises:
        SessionError: there is none, or that is no boss's run, or one of another folder.
    """
    if name is None:
        here = os.getcwd()
        found = next((each for each in sessions() if each.cwd == here and (each.folder / _KEPT).is_file()), None)
        if found is None:
            raise SessionError(f'no run of a boss to go on with in {here}; start one: goose-like boss "GOAL"')
        return found.name
    found = find_session(name)
    if not (found.folder / _KEPT).is_file():
        other = f"goose-like session resume {shlex.quote(name)}"
        raise SessionError(f"session {name!r} is no run of a boss; go on with it: {other}")
    if found.cwd != os.getcwd():  # its memory is there
        raise SessionError(f"that run works in {found.cwd}; go on with it there: cd {shlex.quote(found.cwd)}")
    return name


def recommissioned(session: Session, goal: str, max_round: int | None) -> BossSpec:
    """What a resumed run was told; only its rounds may be others now.

    Raises:
        UsageError: it has another goal.
        SessionError: what it was told can't be read.
    """
    before = next((session.history.messages[turn.start].first_text for turn in session.history.turns), "")
    if goal and goal.strip() != before.strip():
        first = before.strip().partition("\n")[0]
        raise UsageError(f"that run has another goal: {first!r}; leave the goal out, or start anew without --resume")
    file = session.folder / _KEPT
    try:
        spec = BossSpec.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise SessionError(f"{file} can't be read any more, so the run can't go on; start it anew") from error
    return spec.model_copy(update={"max_round": max_round or spec.max_round})


def _named(option: str) -> tuple[str, str]:
    name, is_there, file = option.partition("=")
    if not (name and is_there and file):
        raise UsageError(f"--memory takes NAME=FILE, e.g. --memory plan=plan.md, not {option!r}")
    return name, file


def _check(name: str, file: Path) -> None:
    if file.is_dir():
        raise UsageError(f"memory {name!r}: {str(file)!r} is a folder; name a file, e.g. {str(file / f'{name}.md')!r}")


def _read(file: Path) -> BossSpec:
    configured = read_configuration(Source(file.stem, file, read_yaml(file)), imports=False)
    for sentence in configured.unmapped:
        print(f"goose-like: {file}: {sentence}", file=sys.stderr)
    return configured.spec
