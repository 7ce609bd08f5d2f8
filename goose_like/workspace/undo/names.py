"""Names in a shell line: the paths that words stand for, as far as they are known before the line runs."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from goose_like.workspace.permissions.simple_command import Words

from .variables import UNKNOWN_PART

MAX_ENTRIES = 100_000
_MAX_WORDS = 1_000

_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_UNKNOWN_PARTS = re.compile(rf"{UNKNOWN_PART}|[*?]|\[[^\]]*\]|\{{[^}}]*\}}")
_TARGET_OPTION = re.compile(r"(?:-[a-zA-Z]*t|--target-directory)=?(.*)")


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A name that is only known while the line runs: a regular expression of absolute paths."""

    pattern: str
    is_recursive: bool = False

    def find(self, candidates: Iterable[str]) -> Iterator[str]:
        """Find the candidates that may be meant, or what is in a candidate folder.

        Folders that tools make again count only as a whole.
        """
        pattern = self.pattern
        if self.is_recursive:
            pattern = rf"(?:{pattern})(?:/.*)?"
        regex = re.compile(pattern, re.DOTALL)
        for path in candidates:
            is_folder = os.path.isdir(path) and not os.path.islink(path)
            is_remade = is_folder and _is_made_by_tools(path)
            if is_remade and not self.is_recursive:
                continue
            if regex.fullmatch(path):
                yield path
            elif is_folder and not is_remade:
                yield from _find_below(path, regex)


def _find_below(folder: str, regex: re.Pattern[str]) -> Iterator[str]:
    """Find the matching paths below a folder, and the folder itself if it holds too many others."""
    for count, (parent, folders, files) in enumerate(os.walk(folder)):
        if count > MAX_ENTRIES:
            yield folder
            return
        for name in (*folders, *files):
            path = os.path.join(parent, name)
            if regex.fullmatch(path):
                yield path


def _is_made_by_tools(folder: str) -> bool:
    if os.path.basename(folder) in ("node_modules", "__pycache__"):
        return True
    marks = ("CACHEDIR.TAG", "pyvenv.cfg")
    return any(os.path.lexists(os.path.join(folder, mark)) for mark in marks)


ANY_NAME = UnknownName(".*", is_recursive=True)
"""Any path, with all that is below it."""


@dataclass(frozen=True, slots=True)
class WorkingFolder:
    """The folder in which a command runs. The path is None if it is only known while the line runs."""

    path: str | None

    def exists(self) -> bool:
        """Check that the folder is known and exists."""
        return self.path is not None and os.path.isdir(self.path)

    def is_known(self, word: str | None) -> TypeGuard[str]:
        """Check that a word names the same paths before the line runs as when it runs."""
        if word is None or UNKNOWN_PART in word:
            return False
        return self.path is not None or os.path.isabs(word)

    def join(self, word: str) -> str:
        """Return the path that a known word names. It may be a pattern."""
        return os.path.join(self.path or "/", os.path.expanduser(word))

    def enter(self, word: str | None) -> "WorkingFolder":
        """Return the folder after `cd` with this word."""
        if self.path is None or word is None or UNKNOWN_PART in word:
            return WorkingFolder(None)
        return WorkingFolder(self.join(word))

    def expand(self, word: str) -> Iterator[str]:
        """Yield the paths that a known word names, after its braces and patterns as in bash."""
        for one in _expand_braces(self.join(word)):
            if glob.has_magic(one):
                yield from glob.iglob(one)
            else:
                yield one

    def describe_unknown(self, word: str | None, *, is_recursive: bool = False) -> UnknownName:
        """Describe an unknown name by the parts of it that are known."""
        if word is None or word == "{}":
            return UnknownName(".*", is_recursive)
        text = word
        if not word.startswith(UNKNOWN_PART):
            text = os.path.join(self.path or UNKNOWN_PART, os.path.expanduser(word))
        if "/.." in text:
            # Nobody knows which folder is above an unknown one.
            text = UNKNOWN_PART + text.rpartition("/..")[2]
        else:
            text = text.replace("/./", "/")
        if self.path and text.startswith(f"{self.path}/"):
            text = os.path.realpath(self.path) + text.removeprefix(self.path)
        known_parts = _UNKNOWN_PARTS.split(text.rstrip("/"))
        pattern = ".*".join(map(re.escape, known_parts))
        return UnknownName(pattern, is_recursive)


def _expand_braces(word: str) -> list[str]:
    words = [word]
    while len(words) <= _MAX_WORDS:
        found = next(filter(None, map(_BRACES.search, words)), None)
        if found is None:
            break
        old = found.string
        head = old[: found.start()]
        tail = old[found.end() :]
        words.remove(old)
        words += [f"{head}{part}{tail}" for part in found[1].split(",")]
    return words


def resolve_link_itself(path: str) -> str:
    """Resolve the folder of a path, but not the path itself, which may be a link."""
    path = os.path.normpath(path)
    folder = os.path.realpath(os.path.dirname(path))
    return os.path.join(folder, os.path.basename(path))


def split_operands(words: Words) -> tuple[set[str], list[str | None]]:
    """Split words into options, short ones by letter, and operands."""
    options: set[str] = set()
    operands: list[str | None] = []
    for index, word in enumerate(words):
        if word == "--":
            operands += words[index + 1 :]
            break
        if word is None or len(word) < 2 or not word.startswith("-"):
            operands.append(word)
        elif word.startswith("--"):
            options.add(word.partition("=")[0])
        else:
            options.update(f"-{letter}" for letter in word[1:])
    return options, operands


def move_target_last(words: Words) -> Words:
    """Move the target of `-t` or `--target-directory` behind the other words, where it stands without the option."""
    for index, word in enumerate(words):
        found = _TARGET_OPTION.fullmatch(word or "")
        if not found:
            continue
        before = words[:index]
        after = words[index + 1 :]
        if found[1]:
            return (*before, *after, found[1])
        return (*before, *after[1:], *after[:1])
    return words
