"""The text of a skill for the model: its instructions, and the names of the files in its folder."""

import os
from collections.abc import Iterator

from goose_like.config.bundles import read_bundle

from .catalog import Skill
from .loaded import write_header
from .places import FILE_NAME
from .skill_file import SkillFile

_ARGUMENTS = "$ARGUMENTS"
_FOLDER = "${CLAUDE_SKILL_DIR}"
"""The folder of the skill, as other agents write it."""
_MAX_FILES = 100
_MAX_SEEN = 1_000
_SKIPPED = ("__pycache__", "node_modules", ".git")


def write_skill(skill: Skill, content: SkillFile) -> str:
    """Write the text of a skill for the model."""
    folder = str(skill.folder)
    body = content.body.replace(_FOLDER, folder)
    bundle = None
    if skill.owner == "bundle":
        bundle = read_bundle(skill.package)
    if bundle:
        body = bundle.fill(body)
    parts = [write_header(skill.name, folder), body]
    names = list(_list_files(folder))
    if names:
        listed = "\n".join(names[:_MAX_FILES])
        parts.append(f"Files in {folder}, from which paths above start:\n{listed}")
    if len(names) > _MAX_FILES:
        parts.append("[and more: list that folder]")
    return "\n\n".join(parts)


def _list_files(folder: str) -> Iterator[str]:
    """Yield the paths of the files of a skill in its folder, without SKILL.md."""
    count = 0
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders).difference(_SKIPPED))
        for name in sorted(names):
            path = os.path.relpath(f"{top}/{name}", folder)
            if path == FILE_NAME:
                continue
            yield path
            count += 1
            if count == _MAX_SEEN:
                return


def fill_arguments(text: str, words: str) -> str:
    """Put the words of the person in the place of `$ARGUMENTS`, or at the end.

    Other placeholders of slash commands, such as `$1`, stay: instructions hold lines of shell.
    """
    if _ARGUMENTS in text:
        return text.replace(_ARGUMENTS, words)
    if not words:
        return text
    return f"{text}\n\nThe task: {words}"
