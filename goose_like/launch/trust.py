"""Trust in a project's own files: the question at the start."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

from goose_like.config.trust import (
    ProjectConfig,
    is_refused,
    is_trusted,
    load_folder_trust,
    read_project_config,
    refuse_project,
    trust_project,
)
from goose_like.core.events import Question
from goose_like.core.notifier import Notifier, ask_or_deny


async def settle_project_trust(folder: Path, notifier: Notifier, *, is_trusted_now: bool) -> ProjectConfig:
    """Return the files of the project around a folder that may be used; ask about new or changed ones.

    Without an answer, or if the person refused these contents before, the files are skipped with a warning.
    `is_trusted_now` trusts them without a question, and only for this time.
    """
    project = read_project_config(folder)
    if project is None:
        return ProjectConfig(folder, {})
    for problem in project.skipped:
        notifier.log(problem)
    if is_trusted_now or not project.files or is_trusted(project):
        return project
    nothing = replace(project, files={})
    files = describe_files(project)
    if is_refused(project):
        notifier.log(f"skipped the files that you refused: {files}; to use them: goose-like trust add")
        return nothing
    answer = await ask_or_deny(notifier, _make_question(project), notifier.log)
    if answer.by == "nobody":
        notifier.log(f"skipped untrusted files: {files}; to use them: --trust, or goose-like trust add")
        return nothing
    if answer.choice == "allow_always":
        trust_project(project)
    if not answer.is_allowed:
        refuse_project(project)
        return nothing
    return project


def _make_question(project: ProjectConfig) -> Question:
    is_changed = bool(load_folder_trust(project.root).files)
    reason = "has changed files that you trusted" if is_changed else "brings settings, commands or agents"
    text = f"this project {reason}: {describe_files(project)}. Use them?"
    return Question(kind="trust", subject=str(project.root), text=text, detail=_format_files(project))


def describe_files(project: ProjectConfig) -> str:
    """Return the files with their sizes, and how they differ from the trusted ones."""
    before = load_folder_trust(project.root).files or {}
    parts = []
    for name in sorted({*before, *project.files}):
        path = project.get_path(name)
        state = _describe_state(name, project, before)
        parts.append(f"{path} ({state})")
    return "; ".join(parts)


def _describe_state(name: str, project: ProjectConfig, before: Mapping[str, str]) -> str:
    text = project.files.get(name)
    if text is None:
        return "deleted"
    size = f"{len(text.encode()):,} bytes"
    if not before:
        return size
    if name not in before:
        return f"{size}, new"
    if before[name] == text:
        return f"{size}, unchanged"
    return f"{size}, changed"


def _format_files(project: ProjectConfig) -> str:
    """Return the texts of the files, or a diff if other versions were trusted."""
    before = load_folder_trust(project.root).files
    if not before:
        texts = [f"{name}:\n{text}" for name, text in sorted(project.files.items())]
        return "\n".join(texts)
    lines: list[str] = []
    for name in sorted({*before, *project.files}):
        old = before.get(name, "").split("\n")
        new = project.files.get(name, "").split("\n")
        lines += unified_diff(old, new, f"trusted {name}", name, lineterm="", n=10_000)
    return "\n".join(lines)
