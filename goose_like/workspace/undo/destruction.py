"""Commands that delete or overwrite files: the paths that a shell line would lose."""

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import PurePath

from goose_like.workspace.permissions.shell_syntax import Words, parse_line, split_git_options

_PROGRAM = re.compile(
    r"\b(rm|unlink|shred|truncate|mv|cp|tee|dd|find)\b"
    r"|\bgit\b.*\b(clean|reset|checkout|restore|switch)\b",
    re.DOTALL,
)
_REDIRECT = re.compile(r"(?<![>=-])>(?![>&=])(?!\s*/dev/null\b)")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_UNCERTAIN = re.compile(r"[(|]|(?<!&)&(?!&)|&&[^;\n]*\bcd\b|\b(?:if|while|until|for|case|function|\w*sh)\b")
"""Parts of a line after which a `cd` may not hold for all of the rest."""

_MAX_WORDS = 1_000
_MAX_ENTRIES = 100_000


@dataclass(slots=True)
class Losses:
    """The paths that a line would delete or overwrite, whether they exist or not.

    `cleaned` are paths where git deletes the files that it ignores, except those that match one of `kept`.
    `resets_tree`: git deletes or overwrites other files. `is_unknown`: folders are deleted whose names are only known
    while the line runs.
    """

    paths: dict[str, None] = field(default_factory=dict)
    cleaned: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    resets_tree: bool = False
    is_unknown: bool = False

    def __bool__(self) -> bool:
        return bool(self.paths or self.cleaned) or self.resets_tree or self.is_unknown

    def clears(self, path: str) -> bool:
        """Check whether the line may delete this ignored path, or something in it."""
        if self.is_unknown:
            return True
        is_kept = any(fnmatch(os.path.basename(path), one) for one in self.kept)
        folders = [] if is_kept else self.cleaned
        return any(PurePath(path).is_relative_to(one) or PurePath(one).is_relative_to(path) for one in folders)


def is_destructive(line: str) -> bool:
    """Check for the name of a destructive program. A redirect to a file does not count."""
    return _PROGRAM.search(line) is not None


def find_losses(line: str, folder: str) -> Losses:
    """Find what a line would lose that starts in `folder`. A line without a destructive word costs microseconds."""
    losses = Losses()
    if not is_destructive(line) and not _REDIRECT.search(line):
        return losses
    folders: list[str | None] = [folder]
    for command in parse_line(line):
        words = command.words[1:]
        for here in folders:
            _add_written(losses, here, command.overwrites)
        if command.name in ("cd", "pushd"):
            targets = [word for word in words if word is None or not word.startswith("-")]
            known = folders[-1] if targets and targets[0] is not None else None
            inner = None if known is None else os.path.join(known, os.path.expanduser(targets[0] or ""))
            is_certain = inner is not None and os.path.isdir(inner) and not _UNCERTAIN.search(line)
            folders = [inner] if is_certain else [*folders, inner]
        elif find := _FINDERS.get(command.name):
            for here in folders:
                find(losses, here, words)
    return losses


def _add_written(losses: Losses, folder: str | None, words: Iterable[str | None]) -> None:
    """Add files that are truncated. The file behind a link is the one that loses its content."""
    for word in words:
        if word is not None and (folder is not None or os.path.isabs(word)):
            path = os.path.realpath(os.path.join(folder or "/", os.path.expanduser(word)))
            if os.path.isfile(path):
                losses.paths[path] = None


def _add_removed(losses: Losses, folder: str | None, words: Iterable[str | None]) -> None:
    """Add paths that are removed, or replaced by another file. A link itself is the one that is lost."""
    for word in words:
        if word is None or (folder is None and not os.path.isabs(word)):
            losses.is_unknown = True
            continue
        for path in _expand_word(os.path.join(folder or "/", os.path.expanduser(word))):
            path = os.path.normpath(path)
            losses.paths[os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))] = None


def _expand_word(word: str) -> Iterator[str]:
    """Expand braces and patterns as bash does."""
    words = [word]
    while len(words) <= _MAX_WORDS and (found := next(filter(None, map(_BRACES.search, words)), None)):
        old = found.string
        words.remove(old)
        words += [f"{old[: found.start()]}{part}{old[found.end() :]}" for part in found[1].split(",")]
    for one in words:
        yield from glob.iglob(one) if glob.has_magic(one) else (one,)


def _split_operands(words: Words) -> tuple[set[str], list[str | None]]:
    """Split words into options, short ones by letter, and operands."""
    options: set[str] = set()
    operands: list[str | None] = []
    for index, word in enumerate(words):
        if word == "--":
            return options, [*operands, *words[index + 1 :]]
        if word is not None and len(word) > 1 and word.startswith("-"):
            options |= {word.partition("=")[0]} if word.startswith("--") else {f"-{letter}" for letter in word[1:]}
        else:
            operands.append(word)
    return options, operands


# --- programs


def _find_rm(losses: Losses, folder: str | None, words: Words) -> None:
    options, operands = _split_operands(words)
    is_recursive = bool(options & {"-r", "-R", "--recursive"})
    known = [word for word in operands if is_recursive or word is not None]
    _add_removed(losses, folder, [word for word in known if word != "{}"])  # find adds the paths for {}


def _find_mv(losses: Losses, folder: str | None, words: Words) -> None:
    """Add the file that `mv` or `cp` would overwrite, also inside a folder."""
    for index, word in enumerate(words):
        if found := re.fullmatch(r"(?:-[a-zA-Z]*t|--target-directory)=?(.*)", word or ""):
            target_first = (found[1], *words[index + 1 :]) if found[1] else words[index + 1 :]
            words = (*words[:index], *target_first[1:], *target_first[:1])
            break
    options, operands = _split_operands(words)
    if folder is None or len(operands) < 2 or operands[-1] is None or options & {"-n", "--no-clobber"}:
        return
    target = os.path.join(folder, os.path.expanduser(operands[-1]))
    if not os.path.isdir(target):
        _add_removed(losses, folder, [target])
        _add_written(losses, folder, [target])
        return
    for source in operands[:-1]:
        names = _expand_word(os.path.join(folder, source)) if source is not None else ()
        paths = [os.path.join(target, os.path.basename(os.path.normpath(name))) for name in names]
        _add_removed(losses, folder, [path for path in paths if not os.path.isdir(path)])


def _find_written(losses: Losses, folder: str | None, words: Words) -> None:
    options, operands = _split_operands(words)
    if not options & {"-a", "--append"}:
        _add_written(losses, folder, [word and word.removeprefix("of=") for word in operands])


def _find_find(losses: Losses, folder: str | None, words: Words) -> None:
    """Add what `find` deletes, or passes to `rm`: all paths below its folders with one of its names."""
    if not {"-delete", "rm", "/bin/rm", "unlink", "shred"} & set(words):
        return
    first = next((index for index, word in enumerate(words) if word is not None and word[:1] in "-(!"), len(words))
    roots = words[:first] or (".",)
    patterns = [pattern for option, pattern in pairwise(words) if option in ("-name", "-iname")]
    if folder is None or None in (*roots, *patterns):
        losses.is_unknown = True
        return
    if {"!", "-not"} & set(words) or len(patterns) < 1 + words.count("-o"):
        _add_removed(losses, folder, roots)  # it may delete other names too
        return
    count = 0
    for root in roots:
        for parent, folders, files in os.walk(os.path.join(folder, str(root))):
            names = [*folders, *files]
            found = (name for name in names if any(fnmatch(name.lower(), str(one).lower()) for one in patterns))
            _add_removed(losses, parent, found)
            count += len(names)
            if count > _MAX_ENTRIES:
                losses.is_unknown = True
                return


def _find_git(losses: Losses, folder: str | None, words: Words) -> None:
    """Add what a git command deletes or overwrites."""
    before, (name, *rest) = split_git_options(words)[0], split_git_options(words)[1] or ("",)
    for option, value in pairwise(before):
        if option == "-C":
            folder = None if folder is None or value is None else os.path.join(folder, value)
    options, operands = _split_operands(tuple(rest))
    match name:
        case "clean" if not options & {"-n", "--dry-run"}:
            losses.resets_tree = True
            if options & {"-x", "-X"}:
                _add_cleaned(losses, folder, rest)
        case "reset" if options & {"--hard", "--merge", "--keep"}:
            losses.resets_tree = True
        case "switch" if options & {"-f", "--force", "--discard-changes"}:
            losses.resets_tree = True
        case "checkout" if operands or options & {"-f", "--force"}:
            losses.resets_tree = True
        case "restore":
            losses.resets_tree = True
        case "rm" if "--cached" not in options:
            _find_rm(losses, folder, tuple(rest))


def _add_cleaned(losses: Losses, folder: str | None, words: Sequence[str | None]) -> None:
    """Add the paths that `git clean -x` cleans, and the patterns of `-e`."""
    rest = []
    following = iter(words)
    for word in following:
        if word is not None and (found := re.fullmatch(r"-[a-zA-Z]*e(.*)|--exclude(?:=(.*))?", word)):
            losses.kept.append((found[1] or found[2] or next(following, None) or "").strip("/"))
        else:
            rest.append(word)
    for operand in _split_operands(tuple(rest))[1] or ["."]:
        if operand is None or folder is None:
            losses.is_unknown = True
        else:
            losses.cleaned.append(os.path.realpath(os.path.join(folder, operand)))


_FINDERS: dict[str, Callable[[Losses, str | None, Words], None]] = {
    **dict.fromkeys(("rm", "unlink", "shred"), _find_rm),
    **dict.fromkeys(("mv", "cp"), _find_mv),
    **dict.fromkeys(("tee", "truncate", "dd"), _find_written),
    "find": _find_find,
    "git": _find_git,
}
