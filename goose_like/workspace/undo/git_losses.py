"""Losses by git commands, such as `git clean` and `git reset --hard`."""

import os
import re
from collections.abc import Sequence
from itertools import pairwise

from goose_like.workspace.permissions.simple_command import Words, split_git_options

from .losses import Losses
from .names import WorkingFolder, split_operands
from .program_losses import find_overwritten, find_removed

_EVERYWHERE = ("/",)
_EXCLUDE_OPTION = re.compile(r"-[a-zA-Z]*e(.*)|--exclude(?:=(.*))?")
_PATTERN = re.compile(r"[*?\[]|(^|/):")


def find_git_losses(losses: Losses, folder: WorkingFolder, words: Words) -> None:
    """Add what a git command deletes or overwrites."""
    git_options, subcommand = split_git_options(words)
    name = subcommand[0] if subcommand else ""
    rest = subcommand[1:]
    folder = _enter_folders(folder, git_options)
    options, operands = split_operands(rest)
    is_forced = bool(options & {"-f", "--force"})
    match name:
        case "clean" if not options & {"-n", "--dry-run"}:
            _add_cleaned(losses, folder, rest, options)
        case "reset" if options & {"--hard", "--merge", "--keep"}:
            losses.changed += _EVERYWHERE
        case "switch" if is_forced or "--discard-changes" in options:
            losses.changed += _EVERYWHERE
        case "checkout" if "--" in rest:
            losses.changed += _list_pathspecs(folder, rest)
        case "checkout" if operands or is_forced:
            losses.changed += _EVERYWHERE
        case "restore":
            losses.changed += _list_pathspecs(folder, rest)
        case "stash" if not operands or operands[0] in ("push", "save"):
            _add_stashed(losses, options)
        case "mv" if is_forced:
            find_overwritten(losses, folder, rest)
        case "rm" if "--cached" not in options:
            find_removed(losses, folder, rest)


def _enter_folders(folder: WorkingFolder, git_options: Words) -> WorkingFolder:
    """Return the folder after the `-C` options of git."""
    for option, value in pairwise(git_options):
        if option == "-C":
            folder = folder.enter(value)
    return folder


def _list_pathspecs(folder: WorkingFolder, words: Words) -> Sequence[str]:
    """List the paths that a git command names, or the root if a pattern or an unknown word is among them."""
    _, names = split_operands(words)
    if "--" in words:
        start = words.index("--") + 1
        names = [*words[start:]]
    paths = _list_known(folder, names)
    if any(_PATTERN.search(path) for path in paths):
        return _EVERYWHERE
    return paths


def _list_known(folder: WorkingFolder, names: Sequence[str | None]) -> Sequence[str]:
    """List the paths of words, or the root if one of them is unknown."""
    paths = []
    for name in names:
        if not folder.is_known(name):
            return _EVERYWHERE
        paths.append(os.path.realpath(folder.join(name)))
    return paths


def _add_stashed(losses: Losses, options: set[str]) -> None:
    takes_ignored = bool(options & {"-a", "--all"})
    losses.changed += _EVERYWHERE
    if takes_ignored or options & {"-u", "--include-untracked"}:
        losses.untracked += _EVERYWHERE
    if takes_ignored:
        losses.cleaned += _EVERYWHERE


def _add_cleaned(losses: Losses, folder: WorkingFolder, words: Words, options: set[str]) -> None:
    """Add the paths that `git clean` cleans, and the patterns of `-e`."""
    rest: list[str | None] = []
    following = iter(words)
    for word in following:
        found = _EXCLUDE_OPTION.fullmatch(word or "")
        if not found:
            rest.append(word)
            continue
        pattern = found[1] or found[2] or next(following, None) or ""
        losses.kept.append(pattern.strip("/"))
    _, operands = split_operands(tuple(rest))
    folders = _list_known(folder, operands or ["."])
    if options & {"-x", "-X"}:
        losses.cleaned += folders
    if "-X" not in options:
        losses.untracked += folders
