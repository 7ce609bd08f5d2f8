"""The work of the commands `hooks ...`."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goose_like.config.bundles import list_broken_bundles, list_roots
from goose_like.config.foreign_text import parse_json
from goose_like.config.profile import Profile
from goose_like.config.profile_loader import load_profile
from goose_like.config.trust import ProjectConfig, is_trusted, read_project_config
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.launch.start_notifier import StartNotifier
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_invisible
from goose_like.terminal.interaction import has_person
from goose_like.terminal.report_table import print_table
from goose_like.workspace.workspace import Workspace

from .engine import HookEngine, Run
from .events import HookInput, make_sample
from .reply import RawReply, describe_effect, read_reply
from .runner import is_confined, run_hook
from .settings import EVENTS, Handler
from .sources import (
    HookSet,
    describe_hooks,
    list_own_files,
    read_bundle_hooks,
    read_copied_hooks,
    read_own_file,
    read_profile_hooks,
    read_project_hooks,
    use_hooks,
)

_NAME = "hooks"
_MAX_SHOWN_CHARS = 2_000
_COLUMNS = ("event", "matcher", "hook", "source", "runs")


def _find_hooks(name: str | None) -> tuple[Profile, HookSet, HookSet]:
    """Return the profile, its hooks with those of the person and of the trusted project, and those without trust."""
    profile, _ = load_profile(name)
    found = HookSet()
    for choice in profile.toolkits:
        if choice.name == _NAME:
            found += read_profile_hooks(choice.config)
    found += read_copied_hooks() + read_bundle_hooks()
    project = read_project_config(Path.cwd())
    hooks = read_project_hooks(project)
    if project and not _may_use(project):
        return profile, found, hooks
    return profile, found + hooks, HookSet()


def _may_use(project: ProjectConfig) -> bool:
    return not project.files or is_trusted(project)


def print_hooks(name: str | None) -> None:
    """Print all hooks with their sources, and what is not used."""
    _, used, untrusted = _find_hooks(name)
    rows = [_make_row(handler, _describe_rights(handler)) for handler in used.handlers]
    rows += [_make_row(handler, "no: goose-like trust add") for handler in untrusted.handlers]
    problems = [*used.problems, *untrusted.problems, *list_broken_bundles()]
    for path, state in list_own_files():
        if state == "not used":
            hooks = describe_hooks(path, read_own_file(path))
            rows += [_make_row(handler, f"no: goose-like hooks use {path}") for handler in hooks.handlers]
    print_table(_COLUMNS, rows, "there are no hooks; see goose-like help hooks")
    for problem in problems:
        print(f"goose-like: {escape_invisible(problem)}", file=sys.stderr)


def _make_row(handler: Handler, state: str) -> Sequence[str]:
    cells = (handler.event, handler.matcher or "*", handler.label, handler.source.name, state)
    return [escape_invisible(cell) for cell in cells]


def _describe_rights(handler: Handler) -> str:
    return "in the sandbox" if handler.is_confined else "with your rights"


def take_over(path: Path, *, is_sure: bool) -> None:
    """Show the hooks of a file, ask whether they may run, and keep a copy of them.

    Raises:
        UsageError: the person said no, or nobody is there to ask.
    """
    data = read_own_file(path)
    found = describe_hooks(path, data)
    for problem in found.problems:
        print(f"goose-like: {escape_invisible(problem)}", file=sys.stderr)
    if not found.handlers:
        raise UsageError(f"{path} has no hooks that run here")
    print_table(_COLUMNS, [_make_row(handler, _describe_rights(handler)) for handler in found.handlers], "")
    if not is_sure:
        if not has_person():
            raise UsageError("nobody is there to ask; look at the hooks above, then add --yes")
        if input("Run these hooks with your rights, in every project? [y/N] ").strip().lower() not in ("y", "yes"):
            raise UsageError("nothing changed")
    use_hooks(path, data)
    print("they run from the next session on, as they are now; to stop them: goose-like hooks forget FILE")


async def print_trial(event: str, tool: str, arguments: str, name: str | None) -> int:
    """Run the hooks of an event one after the other, and print each reply and its effect.

    Raises:
        UsageError: there is no such event, or the arguments are no JSON object.
    """
    if event not in EVENTS:
        raise UsageError(f"there is no event {event!r} here; {did_you_mean(event, EVENTS)}")
    fields = _read_arguments(arguments)
    profile, used, untrusted = _find_hooks(name)
    for handler in untrusted.handlers:
        if handler.event == event:
            print(f"not run: {handler.place}; first: goose-like trust add", file=sys.stderr)
    notifier = StartNotifier()
    session = Session.temporary()
    try:
        async with Workspace(
            Path.cwd(), mode=profile.sandbox, approval=profile.approval, notifier=notifier, settings=profile
        ) as workspace:
            workspace.open_folders(list_roots())
            engine = HookEngine(used.handlers, workspace, notifier)
            runs = _make_runs(HookInput(engine, workspace, session, profile), event, tool, fields)
            if not runs:
                print(f"no hook matches {event}", file=sys.stderr)
            for run in runs:
                raw = await run_hook(run.handler, run.fields, workspace)
                _print_reply(run, raw, workspace)
    finally:
        session.close()
    return 0


def _read_arguments(text: str) -> Mapping[str, Any]:
    try:
        data = parse_json(text)
    except ValueError as error:
        raise UsageError(f"--input is no JSON: {error}") from error
    if not isinstance(data, Mapping):
        raise UsageError('--input is an object, such as \'{"command": "ls"}\'')
    return data


def _make_runs(source: HookInput, event: str, tool: str, arguments: Mapping[str, Any]) -> list[Run]:
    name, fields = make_sample(event)
    if name is not None:
        return source.make_runs(event, name, fields)
    output = "the output" if event == "PostToolUse" else None
    return source.make_tool_runs(event, tool, arguments, fields, output=output)


def _print_reply(run: Run, raw: RawReply, workspace: Workspace) -> None:
    handler = run.handler
    place = "in the sandbox" if is_confined(handler, workspace) else "with your rights"
    print(f"{handler.event}: {handler.place}, {place}")
    call = run.fields.get("tool_input")
    if call is not None:
        _print_value("input", json.dumps(call))
    _print_value("exit code", str(raw.code))
    _print_value("output", raw.output)
    _print_value("errors", raw.errors)
    effect = describe_effect(handler, read_reply(handler, raw))
    _print_value("effect", effect)


def _print_value(title: str, text: str) -> None:
    shown = escape_invisible(text.strip()[:_MAX_SHOWN_CHARS])
    if shown:
        print(f"  {title}: {shown}")
