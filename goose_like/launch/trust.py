"""Trust in a project's own files: the question at the start."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

from goose_like.agent.present_toolkits import describe_effects, name_kinds
from goose_like.config.folder_marks import describe_difference
from goose_like.config.trust import (
    ProjectConfig,
    find_trusted,
    is_refused,
    load_folder_trust,
    load_unchanged_project,
    mark_folders,
    read_project_config,
    refuse_project,
    trust_project,
)
from goose_like.core.events import Question
from goose_like.core.notifier import Notifier, ask_or_deny

EFFECTS = "with these files, goose-like starts or asks:"
"""The line above what toolkits say about the files of a project."""

_MAX_NAMED = 5
_MAX_FILES = 20
"""The files that a question names. The answer `t` shows all texts."""
_UNCHANGED = ", unchanged"


async def settle_project_trust(folder: Path, notifier: Notifier, *, is_trusted_now: bool) -> ProjectConfig:
    """Return the files of the project around a folder that may be used; ask about new or changed ones.

    Without an answer, or if the person refused these contents before, the files are skipped with a warning.
    `is_trusted_now` trusts them without a question, and only for this time.
    """
    unchanged = load_unchanged_project(folder)
    if unchanged:
        return unchanged
    project = read_project_config(folder)
    if project is None:
        return ProjectConfig(folder, {})
    for problem in project.skipped:
        notifier.log(problem)
    if not project.files:
        return project
    trusted = find_trusted(project)
    if trusted:
        return trusted
    return await _settle_new_files(project, notifier, is_trusted_now=is_trusted_now)


async def _settle_new_files(project: ProjectConfig, notifier: Notifier, *, is_trusted_now: bool) -> ProjectConfig:
    nothing = replace(project, files={}, folders={})
    if not is_trusted_now and is_refused(project):
        files = describe_files(project)
        notifier.log(f"skipped the files that you refused: {files}; to use them: goose-like trust add")
        return nothing
    project = _mark(project, notifier)
    if is_trusted_now:
        return project
    answer = await ask_or_deny(notifier, _make_question(project, notifier), notifier.log)
    if answer.by == "nobody":
        files = describe_files(project)
        notifier.log(f"skipped untrusted files: {files}; to use them: --trust, or goose-like trust add")
        return nothing
    if answer.choice == "allow_always":
        trust_project(project)
    if not answer.is_allowed:
        refuse_project(project)
        return nothing
    return project


def _mark(project: ProjectConfig, notifier: Notifier) -> ProjectConfig:
    """Mark the folders of the project's files as they are now. Log which cannot be marked."""
    marked = mark_folders(project)
    for problem in marked.skipped[len(project.skipped) :]:
        notifier.log(problem)
    return marked


def _make_question(project: ProjectConfig, notifier: Notifier) -> Question:
    is_changed = bool(load_folder_trust(project.root).files)
    reason = f"brings {_join_words(name_kinds(project))}"
    if is_changed:
        reason = "has changed files that you trusted"
    text = f"this project {reason}: {describe_files(project)}."
    detail = _format_files(project)
    effects = describe_effects(project, notifier.log)
    if effects:
        # In the question itself: not everybody looks at the texts, which the answer `t` shows.
        listed = "; ".join(map(str.strip, effects))
        text = f"{text} {EFFECTS.capitalize()} {listed}."
        detail = "\n".join([detail, "", EFFECTS, *effects])
    text = f"{text} Use them?"
    return Question(kind="trust", subject=str(project.root), text=text, detail=detail)


def _join_words(words: Sequence[str]) -> str:
    *first, last = words
    if not first:
        return last
    return f"{', '.join(first)} and {last}"


def describe_files(project: ProjectConfig) -> str:
    """Return the files with their sizes, and how they differ from the trusted ones. Of many, return the first ones."""
    trusted = load_folder_trust(project.root)
    before = trusted.files or {}
    changed: list[str] = []
    same: list[str] = []
    for name in sorted({*before, *project.files}):
        path = project.get_path(name)
        state = _describe_state(name, project, before)
        beside = _describe_folder(trusted.folders.get(name, ""), project.folders.get(name, ""))
        is_same = state.endswith(_UNCHANGED) and not beside
        listed = same if is_same else changed
        listed.append(f"{path} ({state}{beside})")
    parts = [*changed, *same]
    more_count = len(parts) - _MAX_FILES
    if more_count > 0:
        parts = [*parts[:_MAX_FILES], f"and {more_count:,} more"]
    return "; ".join(parts)


def _describe_folder(before: str, now: str) -> str:
    """Describe what lies beside a file: the names of few files, else their number; and how they differ from before."""
    names = [line.split(" ", 2)[2] for line in now.splitlines()]
    text = ""
    if 0 < len(names) <= _MAX_NAMED:
        text = f", with {', '.join(names)}"
    elif names:
        text = f", with {len(names):,} more files"
    if before and before != now:
        text += f"; changed since: {describe_difference(before, now)}"
    return text


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
        return f"{size}{_UNCHANGED}"
    return f"{size}, changed"


def _format_files(project: ProjectConfig) -> str:
    """Return the texts of the files, or a diff if other versions were trusted."""
    trusted = load_folder_trust(project.root)
    texts = _join_texts(project.files, project.folders)
    if not trusted.files:
        return "\n".join(f"{name}:\n{text}" for name, text in sorted(texts.items()))
    before = _join_texts(trusted.files, trusted.folders)
    lines: list[str] = []
    for name in sorted({*before, *texts}):
        old = before.get(name, "").split("\n")
        new = texts.get(name, "").split("\n")
        lines += unified_diff(old, new, f"trusted {name}", name, lineterm="", n=10_000)
    return "\n".join(lines)


def _join_texts(files: Mapping[str, str], folders: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of files, and the marks of the folders beside them, by names that stand next to each other."""
    texts = dict(files)
    for name, mark in folders.items():
        texts[f"{name}, the other files of its folder"] = mark
    return texts
