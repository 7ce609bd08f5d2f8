"""The work of the commands `trust ...`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

from goose_like.agent.present_toolkits import describe_effects
from goose_like.config.paths import expand_home
from goose_like.config.project_check import find_project_check
from goose_like.config.trust import (
    load_trust,
    mark_folders,
    read_project_config,
    revoke,
    store_check,
    store_reading,
    store_rule,
    trust_project,
)
from goose_like.core.errors import DeniedError, UsageError
from goose_like.launch.personal_files import describe_places, trust_personal_files
from goose_like.launch.start_notifier import print_warning
from goose_like.launch.trust import EFFECTS, describe_files
from goose_like.terminal.escape import escape_invisible
from goose_like.terminal.interaction import confirm, is_terminal
from goose_like.terminal.report_table import print_table
from goose_like.workspace.permissions.policy import Verdict


def add_trust(folder: str) -> None:
    """Trust the files of a folder's project as they are now, and the check of its AGENTS.md. First show what they run.

    A file or folder of another agent in the home folder, such as `~/.claude`, is read from now on.

    Raises:
        UsageError: there are no files.
        DeniedError: the person at the terminal says no.
    """
    places = trust_personal_files(expand_home(folder).absolute())
    if places:
        print(f"read from the next session on, in all projects: {escape_invisible(describe_places(places))}")
        return
    project = read_project_config(Path(folder))
    check = find_project_check(Path(folder))
    if check is None and (project is None or not project.files):
        reason = "it brings no settings, commands, agents, skills, hooks, MCP servers or check in AGENTS.md"
        if project:
            reason = "; ".join(project.skipped)
        raise UsageError(f"there is nothing to trust in {folder!r}: {reason}")
    trusted = []
    effects = []
    if project and project.files:
        project = mark_folders(project)
        trusted.append(describe_files(project))
        effects += describe_effects(project, print_warning)
    if check:
        trusted.append(f"the check of {check.folder / 'AGENTS.md'}")
        effects.append(f"  after turns with changes: {check.command}")
    files = "; ".join(trusted)
    if effects:
        lines = map(escape_invisible, (EFFECTS, *effects))
        print("\n".join(lines))
        if is_terminal(sys.stdin) and not confirm(f"Trust {files}?"):
            raise DeniedError("nothing was trusted")
    if project and project.files:
        trust_project(project)
    if check:
        store_check(check.folder, check.command, may_run=True)
    print(f"trusted as it is now: {files}")


@dataclass(frozen=True, slots=True)
class _Permission:
    """What holds for good in a folder: trust in its files, an answer, or a rule."""

    folder: Path
    verdict: str
    text: str
    forget: Callable[[], None]


def _list_permissions() -> list[_Permission]:
    found = []
    for folder, trusted in sorted(load_trust().items()):
        if trusted.files is not None:
            files = f"the project's {', '.join(trusted.files)}"
            found.append(_Permission(folder, "allow", files, partial(revoke, folder)))
        elif trusted.refused:
            found.append(_Permission(folder, "deny", "the project's files", partial(revoke, folder)))
        if trusted.is_read is not None:
            verdict = "allow" if trusted.is_read else "deny"
            text = "your own files for another agent"
            found.append(_Permission(folder, verdict, text, partial(store_reading, folder, None)))
        for command, may_run in trusted.checks.items():
            verdict = "allow" if may_run else "deny"
            forget = partial(store_check, folder, command, may_run=None)
            found.append(_Permission(folder, verdict, f"check of AGENTS.md: {command}", forget))
        for answer in trusted.approvals:
            text = f"{answer.kind}: {answer.subject}"
            found.append(_Permission(folder, "allow", text, partial(revoke, folder, answer)))
        for verdict in get_args(Verdict):
            for rule in getattr(trusted.permissions, verdict):
                forget = partial(store_rule, folder, rule, None)
                found.append(_Permission(folder, verdict, f"rule: {rule}", forget))
    return found


def print_permissions() -> None:
    """Print all that holds for good, with the numbers that `trust forget` takes."""
    rows = []
    for number, permission in enumerate(_list_permissions(), 1):
        text = escape_invisible(permission.text)
        rows.append((str(number), str(permission.folder), permission.verdict, text))
    print_table(("number", "folder", "verdict", "what"), rows, "nothing is allowed or denied for good")


def revoke_permissions(which: str) -> None:
    """Revoke what holds for good under a number, or all of it in a folder."""
    chosen = _find_permissions(which)
    if not chosen:
        raise UsageError(f"no permission {which!r}; see numbers and folders with: goose-like trust list")
    for permission in chosen:
        permission.forget()
        print(f"revoked: {escape_invisible(permission.text)} in {permission.folder}")


def _find_permissions(which: str) -> list[_Permission]:
    """Find the permission of a number, or those of a folder."""
    permissions = _list_permissions()
    if not which.isdecimal():
        given = expand_home(which).absolute()
        folders = (given, given.resolve())  # a personal file of another agent may be a link
        return [permission for permission in permissions if permission.folder in folders]
    number = int(which)
    if 1 <= number <= len(permissions):
        return [permissions[number - 1]]
    return []
