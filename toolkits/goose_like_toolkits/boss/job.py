"""The job of a boss run: a configuration file with the options of the command line, saved in the session."""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from goose_like.config.yaml_source import YamlSource, read_yaml
from goose_like.core.errors import SessionError, UsageError
from goose_like.sessions.index import find_session, list_sessions
from goose_like.sessions.session import Session
from goose_like_toolkits.boss.aiflows.configuration import read_configuration

from .spec import DEFAULT_FILES, LIBRARY, BossSpec

_JOB_FILE = "boss.json"


@dataclass(frozen=True, slots=True)
class Job:
    """The description of a boss. `has_own_files` means that its configuration names memory files."""

    spec: BossSpec
    has_own_files: bool = False

    def save(self, session: Session) -> BossSpec:
        """Give every memory file a path, and save the description in the session's folder.

        Raises:
            SessionError: the folder can't be written.
        """
        # A configuration that names files, but no library, gets no library.
        names = [name for name in DEFAULT_FILES if name != LIBRARY or not self.has_own_files]
        files = {name: str(session.folder / "memory" / DEFAULT_FILES[name]) for name in names}
        spec = self.spec.model_copy(update={"memory_files": files | self.spec.memory_files})
        try:
            (session.folder / _JOB_FILE).write_text(spec.model_dump_json(exclude_defaults=True), encoding="utf-8")
        except OSError as error:
            raise SessionError(f"can't write to {session.folder}: {error}; free some space") from error
        return spec


def create_job(config: Path | None, memory: Sequence[str], max_round: int | None, *, review_plan: bool) -> Job:
    """Read a configuration and apply the options to it. Print to stderr what the configuration can't do here.

    Raises:
        UsageError: a memory option has no name, or names a folder.
        ProfileError: the configuration is wrong. The text has the file and the line.
    """
    spec = _read_spec(config) if config else BossSpec()
    has_own_files, given_files = bool(spec.memory_files), dict(map(_split_option, memory))
    update = {
        "memory_files": {**spec.memory_files, **given_files},
        "max_round": max_round or spec.max_round,
        "review_plan": review_plan or spec.review_plan,
    }
    spec = spec.model_copy(update=update)
    for name, file in spec.memory_files.items():
        if Path(file).is_dir():
            example = str(Path(file) / f"{name}.md")
            raise UsageError(f"memory {name!r}: {file!r} is a folder; name a file, e.g. {example!r}")
    return Job(spec, has_own_files)


def load_job(session: Session, goal: str, max_round: int | None) -> BossSpec:
    """Load the description of a resumed run, with another number of rounds if given.

    Raises:
        UsageError: the run has another goal.
        SessionError: the saved description can't be read.
    """
    before = next((session.history.messages[turn.start].first_text for turn in session.history.turns), "")
    if goal and goal.strip() != before.strip():
        first = before.strip().partition("\n")[0]
        raise UsageError(
            f"that run has another goal: {first!r}; leave the goal out, or start a new run without --resume"
        )
    file = session.folder / _JOB_FILE
    try:
        spec = BossSpec.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise SessionError(f"can't read {file}, so the run can't continue; start a new one") from error
    return spec.model_copy(update={"max_round": max_round or spec.max_round})


def check_new_name(name: str | None) -> str | None:
    """Return the name for a new run. Raise SessionError if another run has that name."""
    if any(each.name == name and (each.folder / _JOB_FILE).is_file() for each in list_sessions() if name):
        command = f"goose-like boss --resume --session {shlex.quote(str(name))}"
        raise SessionError(f"there is a run {name!r} already; continue it with: {command}, or give another name")
    return name


def find_run(name: str | None) -> str:
    """Return the session name of a boss run: the given one, or the newest of the current folder.

    Raises:
        SessionError: there is no such run, the session is no boss run, or the run belongs to another folder.
    """
    here = os.getcwd()
    if name is None:
        newest = next(
            (each for each in list_sessions() if each.cwd == here and (each.folder / _JOB_FILE).is_file()), None
        )
        if newest is None:
            raise SessionError(f'there is no boss run to continue in {here}; start one: goose-like boss "GOAL"')
        return newest.name
    found = find_session(name)
    if not (found.folder / _JOB_FILE).is_file():
        command = f"goose-like session resume {shlex.quote(name)}"
        raise SessionError(f"session {name!r} is no boss run; continue it with: {command}")
    if found.cwd != here:  # the memory files are there
        raise SessionError(f"that run works in {found.cwd}; continue it there: cd {shlex.quote(found.cwd)}")
    return name


def _split_option(option: str) -> tuple[str, str]:
    name, _, file = option.partition("=")
    if not (name and file):
        raise UsageError(f"--memory takes NAME=FILE, e.g. --memory plan=plan.md, not {option!r}")
    return name, file


def _read_spec(file: Path) -> BossSpec:
    configuration = read_configuration(YamlSource(file.stem, file, read_yaml(file)), imports=False)
    for sentence in configuration.unmapped:
        print(f"goose-like: {file}: {sentence}", file=sys.stderr)
    return configuration.spec
