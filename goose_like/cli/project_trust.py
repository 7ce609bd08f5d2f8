"""Trust in a project's own files: the question at the start, and the work of the commands `trust ...`."""

import asyncio
import sys
from difflib import unified_diff
from pathlib import Path

from goose_like.config.trust import (
    ProjectConfig,
    StoredApproval,
    is_refused,
    is_trusted,
    load_folder_trust,
    load_trust,
    read_project_config,
    refuse_project,
    revoke,
    trust_project,
)
from goose_like.core.errors import UsageError
from goose_like.core.events import Answered, Asked, Question
from goose_like.terminal.escape import escape_invisible
from goose_like.terminal.interaction import has_person, open_screen


def settle_project_trust(*, is_trusted_now: bool) -> ProjectConfig | None:
    """Return the trusted files of the current project; ask the person about new or changed files.

    If nobody is there, or if the person refused these contents before, skip the files with a warning. `is_trusted_now`
    trusts them for this run without a question.
    """
    project = read_project_config(Path.cwd())
    if project is None:
        return None
    for problem in project.skipped:
        _warn(problem)
    if is_trusted_now or not project.files or is_trusted(project):
        return project
    if is_refused(project):
        _warn(f"skipped the files that you refused: {_list_files(project)}; to use them: goose-like trust add")
        return None
    if has_person():
        return project if asyncio.run(_ask(project)) else None
    _warn(f"skipped untrusted files: {_list_files(project)}; to use them: --trust, or goose-like trust add")
    return None


async def _ask(project: ProjectConfig) -> bool:
    screen = open_screen(shows_answer=False)
    is_changed = bool(load_folder_trust(project.root).files)
    reason = "has changed files that you trusted" if is_changed else "brings settings, commands or agents"
    text = f"this project {reason}: {_list_files(project)}. Use them?"
    question = Question(kind="trust", subject=str(project.root), text=text, detail=_format_files(project))
    screen.notify(Asked(question=question))
    answer = await screen.ask(question)
    screen.notify(Answered(question=question, answer=answer))
    if answer.choice == "allow_always":
        trust_project(project)
    elif not answer.is_allowed:
        refuse_project(project)
    return answer.is_allowed


def _list_files(project: ProjectConfig) -> str:
    """Return the files with their sizes, and how they differ from the trusted ones."""
    before = load_folder_trust(project.root).files or {}
    parts = []
    for name in sorted({*before, *project.files}):
        text = project.files.get(name)
        state = "deleted" if text is None else f"{len(text.encode()):,} bytes"
        if before and text is not None:
            state += ", unchanged" if before.get(name) == text else ", changed" if name in before else ", new"
        parts.append(f"{project.get_path(name)} ({state})")
    return "; ".join(parts)


def _format_files(project: ProjectConfig) -> str:
    """Return the texts of the files, or a diff if other versions were trusted."""
    before = load_folder_trust(project.root).files
    if not before:
        return "\n".join(f"{name}:\n{text}" for name, text in sorted(project.files.items()))
    lines: list[str] = []
    for name in sorted({*before, *project.files}):
        old, new = before.get(name, "").split("\n"), project.files.get(name, "").split("\n")
        lines += unified_diff(old, new, f"trusted {name}", name, lineterm="", n=10_000)
    return "\n".join(lines)


def add_trust(folder: str) -> None:
    """Trust the files of a folder's project as they are now."""
    project = read_project_config(Path(folder))
    if project is None or not project.files:
        missing = "it has none of profiles.yaml, commands/*.md and agents/*.md in .goose-like"
        reason = "; ".join(project.skipped) if project else missing
        raise UsageError(f"there is nothing to trust in {folder!r}: {reason}")
    files = _list_files(project)
    trust_project(project)
    print(f"trusted as it is now: {files}")


def _list_permissions() -> list[tuple[str, Path, StoredApproval | None, str]]:
    """Return number, folder, approval (None: the project's files) and description of each permanent permission."""
    rows: list[tuple[Path, StoredApproval | None, str]] = []
    for folder, trusted in sorted(load_trust().items()):
        if trusted.files is not None:
            rows.append((folder, None, f"the project's {', '.join(trusted.files)}"))
        rows += [(folder, approval, f"{approval.kind}: {approval.subject}") for approval in trusted.approvals]
    return [(str(number), *row) for number, row in enumerate(rows, 1)]


def print_permissions() -> None:
    """Print all permanent permissions with the numbers that `trust forget` takes."""
    from goose_like.terminal.report_table import print_table  # imported here: each start imports this file

    rows = [(number, str(folder), escape_invisible(text)) for number, folder, _, text in _list_permissions()]
    print_table(
        ("number", "folder", "allowed"), rows, "there are no permanent permissions; rules: goose-like permissions list"
    )


def revoke_permissions(which: str) -> None:
    """Revoke the permission with a number, or all permissions of a folder."""
    wanted = which if which.isdecimal() else str(Path(which).resolve())
    chosen = [row for row in _list_permissions() if wanted in (row[0], str(row[1]))]
    if not chosen:
        raise UsageError(f"no permission {which!r}; see numbers and folders with: goose-like trust list")
    for _, folder, approval, text in chosen:
        revoke(folder, approval)
        print(f"revoked: {escape_invisible(text)} in {folder}")


def _warn(text: str) -> None:
    print(f"goose-like: {escape_invisible(text)}", file=sys.stderr)
