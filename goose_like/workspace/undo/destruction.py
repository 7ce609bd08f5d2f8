"""Commands that delete or overwrite files: the paths that a shell line would lose."""

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import PurePath
from typing import TypeGuard

from goose_like.workspace.permissions.inner_commands import find_entered_folder
from goose_like.workspace.permissions.shell_syntax import parse_line
from goose_like.workspace.permissions.simple_command import SimpleCommand, Words, split_git_options

from .variables import UNKNOWN_PART, fill_variables

_PROGRAM = re.compile(
    r"\b(rm|unlink|shred|truncate|mv|cp|tee|dd|find)\b"
    r"|\bgit\b.*\b(clean|reset|checkout|restore|switch|stash)\b",
    re.DOTALL,
)
_EDITOR = re.compile(r"\b(ln|install)\b|\b(sed|perl)\b.*\s-(\w*i|-in-place)")
_REDIRECT = re.compile(r"(?<![>=-])>(?![>&=])(?!\s*/dev/null\b)|>&\s*(?![\d\s-])")
_WITHIN_WORDS = re.compile(r"\\\n|['\"\\]|\$[@*]|\$\{\w*\}")
"""Signs within a word that the shell removes, or that may stand for nothing, as in `r''m`."""
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_UNCERTAIN = re.compile(r"[(|]|(?<!&)&(?!&)|&&[^;\n]*\bcd\b|\b(?:if|while|until|for|case|function|\w*sh)\b")
"""Parts of a line after which a `cd` may not hold for all of the rest."""

_MAX_WORDS = 1_000
_MAX_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name that is only known while the line runs: a regular expression of absolute paths."""

    pattern: str
    is_recursive: bool = False

    def find(self, candidates: Iterable[str]) -> Iterator[str]:
        """Find the candidates that may be meant, or what is in a candidate folder.

        Folders that tools make again count only as a whole.
        """
        regex = re.compile(rf"(?:{self.pattern})(?:/.*)?" if self.is_recursive else self.pattern, re.DOTALL)
        for path in candidates:
            is_folder = os.path.isdir(path) and not os.path.islink(path)
            if is_folder and not self.is_recursive and _is_made_by_tools(path):
                continue
            if regex.fullmatch(path):
                yield path
            elif is_folder and not _is_made_by_tools(path):
                for count, (parent, folders, files) in enumerate(os.walk(path)):
                    if count > _MAX_ENTRIES:
                        yield path
                        break
                    yield from filter(regex.fullmatch, (os.path.join(parent, name) for name in (*folders, *files)))


def _is_made_by_tools(folder: str) -> bool:
    names = ("CACHEDIR.TAG", "pyvenv.cfg")
    is_named = os.path.basename(folder) in ("node_modules", "__pycache__")
    return is_named or any(os.path.lexists(os.path.join(folder, name)) for name in names)


@dataclass(slots=True)
class Losses:
    """The paths that a line would delete or overwrite, whether they exist or not.

    git deletes or overwrites files in folders: the ignored files of `cleaned`, the untracked files of `untracked`,
    except those that match one of `kept`, and the changes in `changed`. `moved` maps paths to where they go.
    `replaced` are unknown names that are overwritten: files are stored if possible, without a question.
    """

    paths: dict[str, None] = field(default_factory=dict)
    unknown: list[UnknownName] = field(default_factory=list)
    replaced: list[UnknownName] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    cleaned: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any((self.paths, self.unknown, self.replaced, self.moved, self.cleaned, self.resets_tree))

    @property
    def resets_tree(self) -> bool:
        """True if git deletes or overwrites files that it does not ignore."""
        return bool(self.untracked or self.changed)

    @property
    def needs_tree(self) -> bool:
        """True if the lost paths depend on the files that there are."""
        return bool(self.resets_tree or self.cleaned or self.unknown)

    @property
    def is_unknown(self) -> bool:
        """True if folders are deleted whose names are only known while the line runs."""
        return any(name.is_recursive for name in self.unknown)

    def clears(self, path: str, status: str = "!!") -> bool:
        """Check whether git may delete or overwrite this path of a `git status`, or something in it."""
        folders = {"!!": self.cleaned, "??": self.untracked}.get(status, self.changed)
        if status in ("!!", "??") and any(fnmatch(os.path.basename(path), one) for one in self.kept):
            return False
        return any(PurePath(path).is_relative_to(one) or PurePath(one).is_relative_to(path) for one in folders)


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
    folders: list[str | None] = [folder]
    commands = parse_line(fill_variables(line))
    for index, command in enumerate(commands):
        words = command.words[1:]
        if _is_find_to_rm(commands[index : index + 3], line):
            words = (*words, "rm")
        elif _is_find_to_rm(commands[max(index - 2, 0) : index + 1], line):
            continue
        for here in folders:
            _add_written(losses, here, command.overwrites)
        if command.name in ("cd", "pushd"):
            targets = [word for word in words if word is None or not word.startswith("-")]
            targets = [None if word and UNKNOWN_PART in word else word for word in targets]
            known = folders[-1] if targets and targets[0] is not None else None
            inner = None if known is None else os.path.join(known, os.path.expanduser(targets[0] or ""))
            is_certain = inner is not None and os.path.isdir(inner) and not _UNCERTAIN.search(line)
            folders = [inner] if is_certain else [*folders, inner]
        elif command.words[0] is None:
            for here in folders:
                _add_operands(losses, here, words)
        elif find := _FINDERS.get(command.name):
            for here in folders:
                find(losses, here, words)
        elif entered := find_entered_folder(command):
            known = folders[-1]
            folders = [*folders, os.path.join(known, os.path.expanduser(entered)) if known else None]
    return losses


def _is_find_to_rm(commands: Sequence[SimpleCommand], line: str) -> bool:
    """Check for `find ... | xargs rm`, where `find` tells the names."""
    names = [command.name for command in commands]
    return names == ["find", "xargs", "rm"] and line.count("|") == 1 and "-a" not in line.split()


def _is_known(word: str | None, folder: str | None) -> TypeGuard[str]:
    return word is not None and UNKNOWN_PART not in word and (folder is not None or os.path.isabs(word))


def _describe_unknown(folder: str | None, word: str | None, *, is_recursive: bool = False) -> UnknownName:
    """Describe an unknown name by the parts of it that are known."""
    if word is None or word == "{}":
        return UnknownName(".*", is_recursive)
    text = word if word.startswith(UNKNOWN_PART) else os.path.join(folder or UNKNOWN_PART, os.path.expanduser(word))
    text = UNKNOWN_PART + text.rpartition("/..")[2] if "/.." in text else text.replace("/./", "/")
    text = os.path.realpath(folder) + text[len(folder) :] if folder and text.startswith(f"{folder}/") else text
    parts = re.split(rf"({UNKNOWN_PART}|[*?]|\[[^\]]*\]|\{{[^}}]*\}})", text.rstrip("/"))
    return UnknownName("".join(".*" if at % 2 else re.escape(part) for at, part in enumerate(parts)), is_recursive)


def _add_written(losses: Losses, folder: str | None, words: Iterable[str | None]) -> None:
    """Add files that are truncated. The file behind a link is the one that loses its content."""
    for word in words:
        if not _is_known(word, folder):
            losses.replaced.append(_describe_unknown(folder, word))
            continue
        for name in _expand_word(os.path.join(folder or "/", os.path.expanduser(word))):
            path = os.path.realpath(name)
            if os.path.isfile(path):
                losses.paths[path] = None


def _add_removed(
    losses: Losses, folder: str | None, words: Iterable[str | None], *, is_recursive: bool = False
) -> None:
    """Add paths that are removed, or replaced by another file. A link itself is the one that is lost."""
    for word in words:
        if not _is_known(word, folder):
            losses.unknown.append(_describe_unknown(folder, word, is_recursive=is_recursive))
            continue
        for path in _expand_word(os.path.join(folder or "/", os.path.expanduser(word))):
            losses.paths[_resolve(path)] = None


def _add_operands(losses: Losses, folder: str | None, words: Words) -> None:
    """Add what a program with an unknown name may change. Nobody is asked, since it may only read."""
    for word in words:
        if word and not word.startswith("-"):
            losses.replaced.append(_describe_unknown(folder, word, is_recursive=True))


def _resolve(path: str) -> str:
    path = os.path.normpath(path)
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


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
    known = [word for word in operands if word != "{}"]  # find adds the paths for {}
    _add_removed(losses, folder, known, is_recursive=is_recursive)


def _put_target_last(words: Words) -> Words:
    for index, word in enumerate(words):
        if found := re.fullmatch(r"(?:-[a-zA-Z]*t|--target-directory)=?(.*)", word or ""):
            target_first = (found[1], *words[index + 1 :]) if found[1] else words[index + 1 :]
            return (*words[:index], *target_first[1:], *target_first[:1])
    return words


def _find_mv(losses: Losses, folder: str | None, words: Words) -> None:
    """Add the files that `mv`, `cp` and the like would overwrite, also inside folders."""
    options, operands = _split_operands(_put_target_last(words))
    if len(operands) < 2 or options & {"-n", "--no-clobber"}:
        return
    if folder is None or not _is_known(operands[-1], folder):
        losses.replaced.append(_describe_unknown(folder, operands[-1]))
        return
    target = os.path.join(folder, os.path.expanduser(operands[-1]))
    is_recursive = bool(options & {"-r", "-R", "-a", "--recursive", "--archive"})
    is_inside = os.path.isdir(target) and not options & {"-T", "--no-target-directory"}
    for source in operands[:-1]:
        if not _is_known(source, folder):
            if is_inside:
                losses.replaced.append(_describe_unknown(target, f"{UNKNOWN_PART}"))
            else:
                _add_replaced(losses, target)
            continue
        for name in _expand_word(os.path.join(folder, os.path.expanduser(source))):
            end = target
            if is_inside and "--parents" in options:
                end = os.path.join(target, os.path.relpath(name, folder))
            elif is_inside:
                # `cp sub/. data` writes into `data` itself.
                end = os.path.join(target, os.path.basename(name.rstrip("/")))
            _add_merged(losses, name, end, is_recursive=is_recursive)


def _add_merged(losses: Losses, source: str, end: str, *, is_recursive: bool) -> None:
    """Add the files that a copy of `source` replaces at `end`. Folders are merged."""
    if not os.path.isdir(end):
        _add_replaced(losses, end)
        return
    if not is_recursive or not os.path.isdir(source):
        return
    for count, (parent, folders, files) in enumerate(os.walk(source)):
        if count > _MAX_ENTRIES:
            losses.replaced.append(_describe_unknown(None, end, is_recursive=True))
            return
        inner = os.path.join(end, os.path.relpath(parent, source))
        for name in (*folders, *files):
            path = os.path.join(inner, name)
            if os.path.lexists(path) and not os.path.isdir(path):
                _add_replaced(losses, path)


def _add_replaced(losses: Losses, path: str) -> None:
    """Add a file that is replaced. `cp` writes through a link, and others replace it."""
    losses.paths[_resolve(path)] = None
    real = os.path.realpath(path)
    if os.path.isfile(real):
        losses.paths[real] = None


def _find_moved(losses: Losses, folder: str | None, words: Words) -> None:
    """Add what `mv` overwrites and what it moves: the way back may end with the private /tmp."""
    _find_mv(losses, folder, words)
    operands = _split_operands(_put_target_last(words))[1]
    for source in operands[:-1]:
        target = operands[-1]
        if not _is_known(source, folder):
            losses.replaced.append(_describe_unknown(folder, source, is_recursive=True))
            continue
        end = os.path.realpath(os.path.join(folder or "/", target)) if target and _is_known(target, folder) else ""
        for path in _expand_word(os.path.join(folder or "/", os.path.expanduser(source))):
            losses.moved[_resolve(path)] = end


def _find_linked(losses: Losses, folder: str | None, words: Words) -> None:
    """Add what `ln -f` replaces. With `-n`, a link to a folder is replaced itself."""
    options, operands = _split_operands(_put_target_last(words))
    if not options & {"-f", "--force"}:
        return
    if len(operands) == 1:
        operands = [*operands, "."]
    is_name = options & {"-n", "-T", "--no-dereference", "--no-target-directory"}
    if is_name and len(operands) == 2 and _is_known(operands[1], folder):
        link = os.path.join(folder or "/", os.path.expanduser(operands[1]))
        if os.path.islink(link):
            losses.paths[_resolve(link)] = None
            return
    _find_mv(losses, folder, ("--", *operands))


def _find_edited(losses: Losses, folder: str | None, words: Words) -> None:
    """Add the files that `sed -i` or `perl -i` edits. Their script is no file."""
    options, operands = _split_operands(words)
    if options & {"-i", "--in-place"}:
        _add_written(losses, folder, operands)


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
    if not all(_is_known(word, folder) for word in roots) or None in patterns:
        losses.unknown.append(UnknownName(".*", is_recursive=True))
        return
    if {"!", "-not"} & set(words) or len(patterns) < 1 + words.count("-o"):
        _add_removed(losses, folder, roots)  # it may delete other names too
        return
    count = 0
    for root in roots:
        for parent, folders, files in os.walk(os.path.join(folder or "/", str(root))):
            names = [*folders, *files]
            found = (name for name in names if any(fnmatch(name.lower(), str(one).lower()) for one in patterns))
            _add_removed(losses, parent, found)
            count += len(names)
            if count > _MAX_ENTRIES:
                losses.unknown.append(UnknownName(".*", is_recursive=True))
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
            _add_cleaned(losses, folder, rest, options)
        case "reset" if options & {"--hard", "--merge", "--keep"}:
            losses.changed.append("/")
        case "switch" if options & {"-f", "--force", "--discard-changes"}:
            losses.changed.append("/")
        case "checkout" if operands or options & {"-f", "--force"}:
            losses.changed += _list_pathspecs(folder, rest) if "--" in rest else ["/"]
        case "restore":
            losses.changed += _list_pathspecs(folder, rest)
        case "stash" if not operands or operands[0] in ("push", "save"):
            losses.changed.append("/")
            losses.untracked += ["/"] if options & {"-u", "-a", "--include-untracked", "--all"} else []
            losses.cleaned += ["/"] if options & {"-a", "--all"} else []
        case "mv" if options & {"-f", "--force"}:
            _find_mv(losses, folder, tuple(rest))
        case "rm" if "--cached" not in options:
            _find_rm(losses, folder, tuple(rest))


def _list_pathspecs(folder: str | None, words: Sequence[str | None]) -> list[str]:
    """List the paths that a git command names, or the root if a pattern or an unknown word is among them."""
    names = words[words.index("--") + 1 :] if "--" in words else _split_operands(tuple(words))[1]
    known = [os.path.realpath(os.path.join(folder or "/", name)) for name in names if _is_known(name, folder)]
    return known if len(known) == len(names) and not any(re.search(r"[*?\[]|(^|/):", name) for name in known) else ["/"]


def _add_cleaned(losses: Losses, folder: str | None, words: Sequence[str | None], options: set[str]) -> None:
    """Add the paths that `git clean` cleans, and the patterns of `-e`."""
    rest = []
    following = iter(words)
    for word in following:
        if word is not None and (found := re.fullmatch(r"-[a-zA-Z]*e(.*)|--exclude(?:=(.*))?", word)):
            losses.kept.append((found[1] or found[2] or next(following, None) or "").strip("/"))
        else:
            rest.append(word)
    operands = _split_operands(tuple(rest))[1] or ["."]
    known = [os.path.realpath(os.path.join(folder or "/", word)) for word in operands if _is_known(word, folder)]
    folders = known if len(known) == len(operands) else ["/"]
    losses.cleaned += folders if options & {"-x", "-X"} else []
    losses.untracked += folders if "-X" not in options else []


_FINDERS: dict[str, Callable[[Losses, str | None, Words], None]] = {
    **dict.fromkeys(("rm", "unlink", "shred"), _find_rm),
    **dict.fromkeys(("cp", "install"), _find_mv),
    **dict.fromkeys(("sed", "perl"), _find_edited),
    "mv": _find_moved,
    "ln": _find_linked,
    **dict.fromkeys(("tee", "truncate", "dd"), _find_written),
    "find": _find_find,
    "git": _find_git,
}
