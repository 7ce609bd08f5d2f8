"""A boss run of the command line: saved in its session, with the result on stdout and progress on stderr."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from pydantic import ValidationError

from goose_like.config.yaml_source import read_yaml
from goose_like.core.errors import GooseLikeError, SessionError, UsageError
from goose_like.core.events import Answered, Asked, Question
from goose_like.core.history import History
from goose_like.core.notifier import Notifier, Tee, ask_or_deny
from goose_like.launch.output import StdoutWriter, describe_stop, make_run_finished, report_failure, run_until_stopped
from goose_like.launch.run_options import RunOptions
from goose_like.launch.start import OpenedSession, SessionRequest, open_session
from goose_like.launch.start_notifier import StartNotifier
from goose_like.sessions.index import SessionInfo, find_session, list_sessions
from goose_like.sessions.session import Session
from goose_like.terminal.interaction import add_person, set_echo
from goose_like.terminal.wrap import open_console
from goose_like_toolkits.boss.aiflows.configuration import read_configuration
from goose_like_toolkits.boss.flow.boss import Boss, BossRun, Outcome, build_outcome, count_rounds, describe_end
from goose_like_toolkits.boss.flow.setup import open_boss

from .spec import DEFAULT_FILES, LIBRARY, BossSpec
from .view import BossScreen

_JOB_FILE = "boss.json"
"""Description of the boss, in the folder of its session."""

_ADVICE = {"max_round": "continue with more rounds", "budget": "continue with a higher limit"}


def create_job(config: Path | None, memory: Sequence[str], max_round: int | None, *, review_plan: bool) -> BossSpec:
    """Read a configuration and apply the options to it. Print to stderr what the configuration can't do here.

    A memory file without a path will lie in the session's folder. Raise UsageError for a wrong memory option, and
    ProfileError for a wrong configuration.
    """
    spec = _read_spec(config) if config else BossSpec()
    # A configuration that names files, but no library, gets no library.
    names = [name for name in DEFAULT_FILES if name != LIBRARY or not spec.memory_files]
    files = {**dict.fromkeys(names, ""), **spec.memory_files}
    files |= map(_split_option, memory)
    for name, file in files.items():
        if file and Path(file).is_dir():
            example = str(Path(file) / f"{name}.md")
            raise UsageError(f"memory {name!r}: {file!r} is a folder; name a file, e.g. {example!r}")
    changes = {
        "memory_files": files,
        "max_round": max_round or spec.max_round,
        "review_plan": review_plan or spec.review_plan,
    }
    return spec.model_copy(update=changes)


def save_job(spec: BossSpec, session: Session) -> BossSpec:
    """Give every memory file a path, and save the description. Raise SessionError if it can't be written."""
    folder = session.folder / "memory"
    files = {}
    for name, file in spec.memory_files.items():
        files[name] = file or str(folder / DEFAULT_FILES[name])
    spec = spec.model_copy(update={"memory_files": files})
    text = spec.model_dump_json(exclude_defaults=True)
    try:
        (session.folder / _JOB_FILE).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SessionError(f"can't write to {session.folder}: {error}; free some space") from error
    return spec


def load_job(session: Session, max_round: int | None) -> BossSpec:
    """Load the description of a resumed run, with another number of rounds if given. Raise SessionError if damaged."""
    file = session.folder / _JOB_FILE
    try:
        spec = BossSpec.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise SessionError(f"can't read {file}, so the run can't continue; start a new one") from error
    return spec.model_copy(update={"max_round": max_round or spec.max_round})


def check_new_name(name: str | None) -> None:
    """Raise SessionError if there is a run with that name."""
    if not name:
        return
    for info in list_sessions():
        if info.name == name and _is_run(info):
            command = f"goose-like boss --resume --session {shlex.quote(name)}"
            raise SessionError(f"there is a run {name!r} already; continue it with: {command}, or give another name")


def find_run(name: str | None) -> str:
    """Return the name of a boss run: the given one, or the newest here. Raise SessionError if there is none."""
    here = os.getcwd()
    if name is None:
        return _find_newest_run(here)
    found = find_session(name)
    if not _is_run(found):
        command = f"goose-like session resume {shlex.quote(name)}"
        raise SessionError(f"session {name!r} is no boss run; continue it with: {command}")
    if found.cwd != here:  # the memory files are there
        raise SessionError(f"that run works in {found.cwd}; continue it there: cd {shlex.quote(found.cwd)}")
    return name


def _find_newest_run(folder: str) -> str:
    for info in list_sessions():
        if info.cwd == folder and _is_run(info):
            return info.name
    raise SessionError(f'there is no boss run to continue in {folder}; start one: goose-like boss "GOAL"')


def _is_run(info: SessionInfo) -> bool:
    return (info.folder / _JOB_FILE).is_file()


async def run_command(options: RunOptions, request: SessionRequest, job: BossSpec | None, max_round: int | None) -> int:
    """Open the session in the current folder, run a new job or continue a saved one, and return the exit code."""
    async with AsyncExitStack() as stack:
        with report_failure(options.output_format):
            opened = await stack.enter_async_context(open_session(request, StartNotifier(), Path.cwd()))
            if job:
                spec = save_job(job, opened.session)
            else:
                spec = load_job(opened.session, max_round)
        return await run_boss(spec, options, opened)


async def run_boss(spec: BossSpec, options: RunOptions, opened: OpenedSession) -> int:
    """Run a boss, or continue its session if the options have no text. Return the exit code."""
    session = opened.session
    limits = options.limit(opened.profile)
    out = StdoutWriter(options.output_format)
    screen = None
    front: Notifier = out
    if not options.is_quiet:
        screen = BossScreen(open_console(), spec)
        front = Tee(add_person(screen), out)
    history = History()
    exit_code = 1
    outcome = Outcome(result="", summary="", status="failed")
    failure = ""
    try:
        building = open_boss(Boss(spec), opened.profile, front, session=session, limits=limits, logs_prints=True)
        async with building as run:
            history = run.history
            if screen:
                if history.has_final_result:
                    print("this run is finished; its outcome again:", file=sys.stderr)
                screen.load_history(history)
            handler = InterruptHandler(run, front)
            work = _work(run, options.text)
            ended, exit_code = await run_until_stopped(work, front, out, handler.interrupt)
            if ended:
                outcome = ended
            else:
                outcome = build_outcome(history).model_copy(update={"status": "interrupted"})
                failure = describe_stop(exit_code)
            exit_code = exit_code or run.exit_code or int(outcome.status == "failed")
    except GooseLikeError as error:
        exit_code = error.exit_code
        failure = opened.describe_error(error)
        raise
    finally:  # after all events of closing
        detail = failure or describe_end(history)
        event = make_run_finished(history.usage.by_model, outcome.status, exit_code, detail)
        front.notify(event)
        usage = json.loads(event.model_dump_json(include={"usage", "cost_usd", "detail"}))
        summary = {
            **outcome.model_dump(),
            "rounds": count_rounds(history),
            **usage,
            "session": session.name,
            "memory": spec.memory_files,
        }
        out.finish(outcome.result, summary)
    if screen and outcome.status != "finished":
        advice = _ADVICE.get(outcome.status, "continue with")
        command = f"goose-like boss --resume --session {shlex.quote(session.name)}"
        if outcome.status == "max_round":
            command += f" --max-round {2 * spec.max_round}"
        print(f"{advice}: {command}", file=sys.stderr)
    return exit_code


async def _work(run: BossRun, goal: str) -> Outcome:
    with set_echo(False):  # typed keys would spoil the screen
        if goal:
            return await run.work(goal)
        return await run.resume()


class InterruptHandler:
    """The effect of Ctrl-C while a sub-boss works: stop only that boss, and ask for a note to its caller."""

    def __init__(self, run: BossRun, front: Notifier) -> None:
        self._run = run
        self._front = front
        self._note: asyncio.Task[str] | None = None

    def interrupt(self) -> bool:
        """Stop the innermost sub-boss. Return False if the whole run has to stop: no sub-boss, or a second Ctrl-C."""
        if self._note and not self._note.done():
            self._note.cancel()
            return False
        names = self._run.active_names
        if len(names) < 2:
            return False
        self._note = asyncio.create_task(self._ask_for_note(names[-2]))
        is_stopped = self._run.stop_innermost(self._note)
        if not is_stopped:
            self._note.cancel()
        return is_stopped

    async def _ask_for_note(self, caller: str) -> str:
        question = Question(kind="text", subject=caller, text=f"a note for {caller} (Enter: none)")
        self._front.notify(Asked(question=question))
        answer = await ask_or_deny(self._front, question, self._front.log)
        self._front.notify(Answered(question=question, answer=answer))
        return answer.text


def _split_option(option: str) -> tuple[str, str]:
    name, _, file = option.partition("=")
    if not (name and file):
        raise UsageError(f"--memory takes NAME=FILE, e.g. --memory plan=plan.md, not {option!r}")
    return name, file


def _read_spec(file: Path) -> BossSpec:
    boss, notes = read_configuration(read_yaml(file), imports=False)
    for note in notes:
        print(f"goose-like: {file}: {note}", file=sys.stderr)
    return boss.spec
