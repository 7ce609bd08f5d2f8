"""Commands that delete or overwrite files: the paths that a shell line would lose."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from goose_like.workspace.permissions.inner_commands import find_entered_folder
from goose_like.workspace.permissions.shell_syntax import parse_line
from goose_like.workspace.permissions.simple_command import SimpleCommand, Words

from .git_losses import find_git_losses
from .losses import Losses
from .names import WorkingFolder
from .program_losses import (
    FindLosses,
    find_edited,
    find_found,
    find_linked,
    find_moved,
    find_overwritten,
    find_removed,
    find_written,
)
from .variables import fill_variables

_PROGRAM = re.compile(
    r"\b(rm|unlink|shred|truncate|mv|cp|tee|dd|find)\b"
    r"|\bgit\b.*\b(clean|reset|checkout|restore|switch|stash)\b",
    re.DOTALL,
)
_EDITOR = re.compile(r"\b(ln|install)\b|\b(sed|perl)\b.*\s-(\w*i|-in-place)")
_REDIRECT = re.compile(r"(?<![>=-])>(?![>&=])(?!\s*/dev/null\b)|>&\s*(?![\d\s-])")
_WITHIN_WORDS = re.compile(r"\\\n|['\"\\]|\$[@*]|\$\{\w*\}")
"""Signs within a word that the shell removes, or that may stand for nothing, as in `r''m`."""
_UNCERTAIN = re.compile(r"[(|]|(?<!&)&(?!&)|&&[^;\n]*\bcd\b|\b(?:if|while|until|for|case|function|\w*sh)\b")
"""Parts of a line after which a `cd` may not hold for all of the rest."""

_FINDERS: dict[str, FindLosses] = {
    "rm": find_removed,
    "unlink": find_removed,
    "shred": find_removed,
    "cp": find_overwritten,
    "install": find_overwritten,
    "sed": find_edited,
    "perl": find_edited,
    "mv": find_moved,
    "ln": find_linked,
    "tee": find_written,
    "truncate": find_written,
    "dd": find_written,
    "find": find_found,
    "git": find_git_losses,
}
_FIND_TO_RM = ["find", "xargs", "rm"]


def is_destructive(line: str) -> bool:
    """Check for the name of a destructive program. A redirect to a file does not count."""
    return _PROGRAM.search(_WITHIN_WORDS.sub("", line)) is not None


def may_lose(line: str) -> bool:
    """Check for a word or sign by which a line could delete or overwrite something."""
    if is_destructive(line) or _REDIRECT.search(line) or "$'" in line:  # `$'...'` may spell any name
        return True
    return _EDITOR.search(_WITHIN_WORDS.sub("", line)) is not None


def find_losses(line: str, folder: str) -> Losses:
    """Find what a line would lose that starts in `folder`."""
    losses = Losses()
    if not may_lose(line):
        return losses
    # All folders in which the next command may run.
    folders = [WorkingFolder(folder)]
    commands = parse_line(fill_variables(line))
    for command in _join_find_to_rm(commands, line):
        for here in folders:
            losses.add_written(here, command.overwrites)
        find = _choose_finder(command)
        if find is None:
            folders = _follow_command(folders, command, line)
            continue
        for here in folders:
            find(losses, here, command.words[1:])
    return losses


def _choose_finder(command: SimpleCommand) -> FindLosses | None:
    if command.words[0] is None:
        return Losses.add_operands
    return _FINDERS.get(command.name)


def _follow_command(folders: list[WorkingFolder], command: SimpleCommand, line: str) -> list[WorkingFolder]:
    """Return the folders in which the next command may run, after one that may have entered another folder."""
    last = folders[-1]
    if command.name in ("cd", "pushd"):
        inner = _enter_folder(last, command.words[1:])
        if inner.exists() and not _UNCERTAIN.search(line):
            return [inner]
        return [*folders, inner]
    entered = find_entered_folder(command)
    if not entered:
        return folders
    return [*folders, last.enter(entered)]


def _join_find_to_rm(commands: Sequence[SimpleCommand], line: str) -> Iterator[SimpleCommand]:
    """Yield the commands, and `find ... | xargs rm` as a `find` that runs `rm`: it tells the names."""
    names = [command.name for command in commands]
    is_only_pipe = line.count("|") == 1 and "-a" not in line.split()
    for index, command in enumerate(commands):
        if is_only_pipe and names[index : index + 3] == _FIND_TO_RM:
            yield replace(command, words=(*command.words, "rm"))
            continue
        start = max(index - 2, 0)
        is_joined = is_only_pipe and names[start : index + 1] == _FIND_TO_RM
        if not is_joined:
            yield command


def _enter_folder(folder: WorkingFolder, words: Words) -> WorkingFolder:
    """Return the folder after `cd` with these words."""
    for word in words:
        if word is None or not word.startswith("-"):
            return folder.enter(word)
    return WorkingFolder(None)
