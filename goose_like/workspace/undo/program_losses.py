"""Losses by programs that delete, move, copy or edit files, such as `rm`, `mv` and `find`."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import chain, pairwise

from goose_like.workspace.permissions.simple_command import Words

from .losses import Losses
from .names import (
    ANY_NAME,
    MAX_ENTRIES,
    UnknownName,
    WorkingFolder,
    move_target_last,
    resolve_link_itself,
    split_operands,
)

FindLosses = Callable[[Losses, WorkingFolder, Words], None]
"""Adds what a program loses that runs in a folder with these words."""

_DELETING_WORDS = {"-delete", "rm", "/bin/rm", "unlink", "shred"}


def find_removed(losses: Losses, folder: WorkingFolder, words: Words) -> None:
    """Add what `rm` and the like remove."""
    options, operands = split_operands(words)
    is_recursive = bool(options & {"-r", "-R", "--recursive"})
    known = [word for word in operands if word != "{}"]  # find adds the paths for {}
    losses.add_removed(folder, known, is_recursive=is_recursive)


def find_overwritten(losses: Losses, folder: WorkingFolder, words: Words) -> None:
    """Add the files that `mv`, `cp` and the like would overwrite, also inside folders."""
    options, operands = split_operands(move_target_last(words))
    if len(operands) < 2 or options & {"-n", "--no-clobber"}:
        return
    *sources, target = operands
    if folder.path is None or not folder.is_known(target):
        losses.replaced.append(folder.describe_unknown(target))
        return
    path = folder.join(target)
    copy = _Copy(
        folder=folder.path,
        target=path,
        is_inside=os.path.isdir(path) and not options & {"-T", "--no-target-directory"},
        is_recursive=bool(options & {"-r", "-R", "-a", "--recursive", "--archive"}),
        keeps_parents="--parents" in options,
    )
    for source in sources:
        if folder.is_known(source):
            for name in folder.expand(source):
                copy.add_losses(losses, name)
        elif copy.is_inside:
            losses.replaced.append(UnknownName(".*"))
        else:
            losses.add_replaced(path)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy or move to a target. `is_inside`: the target is a folder that gets the sources."""

    folder: str
    target: str
    is_inside: bool
    is_recursive: bool
    keeps_parents: bool

    def add_losses(self, losses: Losses, source: str) -> None:
        """Add the files that `source` replaces. Folders are merged."""
        end = self._find_end(source)
        if not os.path.isdir(end):
            losses.add_replaced(end)
        elif self.is_recursive and os.path.isdir(source):
            _add_merged(losses, source, end)

    def _find_end(self, source: str) -> str:
        if not self.is_inside:
            return self.target
        if self.keeps_parents:
            return os.path.join(self.target, os.path.relpath(source, self.folder))
        # `cp sub/. data` writes into `data` itself.
        return os.path.join(self.target, os.path.basename(source.rstrip("/")))


def _add_merged(losses: Losses, source: str, end: str) -> None:
    """Add the files in the folder `end` that those of the folder `source` replace."""
    for count, (parent, folders, files) in enumerate(os.walk(source)):
        if count > MAX_ENTRIES:
            losses.replaced.append(WorkingFolder(None).describe_unknown(end, is_recursive=True))
            return
        inner = os.path.join(end, os.path.relpath(parent, source))
        for name in (*folders, *files):
            path = os.path.join(inner, name)
            if os.path.lexists(path) and not os.path.isdir(path):
                losses.add_replaced(path)


def find_moved(losses: Losses, folder: WorkingFolder, words: Words) -> None:
    """Add what `mv` overwrites and what it moves: the way back may end with the private /tmp."""
    find_overwritten(losses, folder, words)
    _, operands = split_operands(move_target_last(words))
    if not operands:
        return
    *sources, target = operands
    end = ""
    if target and folder.is_known(target):
        end = os.path.realpath(folder.join(target))
    for source in sources:
        if not folder.is_known(source):
            losses.replaced.append(folder.describe_unknown(source, is_recursive=True))
            continue
        for path in folder.expand(source):
            losses.moved[resolve_link_itself(path)] = end


def find_linked(losses: Losses, folder: WorkingFolder, words: Words) -> None:
    """Add what `ln -f` replaces. With `-n`, a link to a folder is replaced itself."""
    options, operands = split_operands(move_target_last(words))
    if not options & {"-f", "--force"}:
        return
    if len(operands) == 1:
        operands = [*operands, "."]
    replaces_link = options & {"-n", "-T", "--no-dereference", "--no-target-directory"}
    if replaces_link and len(operands) == 2 and folder.is_known(operands[1]):
        link = folder.join(operands[1])
        if os.path.islink(link):
            losses.paths[resolve_link_itself(link)] = None
            return
    find_overwritten(losses, folder, ("--", *operands))


def find_edited(losses: Losses, folder: WorkingFolder, words: Words) -> None:
    """Add the files that `sed -i` or `perl -i` edits. Their script is no file."""
    options, operands = split_operands(words)
    if options & {"-i", "--in-place"}:
        losses.add_written(folder, operands)


def find_written(losses: Losses, folder: WorkingFolder, words: Words) -> None:
    """Add the files that `tee`, `truncate` or `dd` writes."""
    options, operands = split_operands(words)
    if options & {"-a", "--append"}:
        return
    names = [word and word.removeprefix("of=") for word in operands]
    losses.add_written(folder, names)


def find_found(losses: Losses, folder: WorkingFolder, words: Words) -> None:
    """Add what `find` deletes, or passes to `rm`: all paths below its folders with one of its names."""
    if _DELETING_WORDS.isdisjoint(words):
        return
    roots = _list_roots(words)
    patterns = [pattern for option, pattern in pairwise(words) if option in ("-name", "-iname")]
    are_roots_known = all(folder.is_known(root) for root in roots)
    if not are_roots_known or None in patterns:
        losses.unknown.append(ANY_NAME)
        return
    is_negated = not {"!", "-not"}.isdisjoint(words)
    if is_negated or len(patterns) < 1 + words.count("-o"):
        losses.add_removed(folder, roots)  # it may delete other names too
        return
    lower_patterns = [str(pattern).lower() for pattern in patterns]
    _add_found(losses, folder, [str(root) for root in roots], lower_patterns)


def _list_roots(words: Words) -> Words:
    """List the folders before the first test or action of `find`."""
    for index, word in enumerate(words):
        if word is not None and word[:1] in "-(!":
            return words[:index] or (".",)
    return words or (".",)


def _add_found(losses: Losses, folder: WorkingFolder, roots: list[str], patterns: list[str]) -> None:
    """Add the paths below some folders with a name that matches one of the patterns, in any case."""
    count = 0
    tops = chain.from_iterable(map(folder.expand, roots))
    for parent, folders, files in chain.from_iterable(map(os.walk, tops)):
        names = [*folders, *files]
        for name in names:
            if any(fnmatch(name.lower(), pattern) for pattern in patterns):
                path = os.path.join(parent, name)
                losses.paths[resolve_link_itself(path)] = None
        count += len(names)
        if count > MAX_ENTRIES:
            losses.unknown.append(ANY_NAME)
            return
