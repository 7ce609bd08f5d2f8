"""Requirements: what an entry of `setup.pip` asks for, in pip's words, and what of these a stranger may say."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from goose_like.core.errors import GooseLikeError

_SHORT = {"U": "upgrade", "q": "quiet", "i": "index-url", "f": "find-links", "e": "editable"}
_SWITCHES = frozenset(
    (
        *("pre", "upgrade", "no-deps", "no-index", "prefer-binary", "no-build-isolation", "force-reinstall"),
        *("no-cache-dir", "use-pep517", "quiet"),
    )
)
_VALUES = frozenset(
    (
        *("index-url", "extra-index-url", "find-links", "trusted-host", "only-binary", "no-binary", "timeout"),
        *("retries", "upgrade-strategy", "editable"),
    )
)
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_PLACE = re.compile(r"[a-z][a-z0-9+.-]*:.*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One installation. `named` are requirements by name, `places` those by URL or path, of which no name is known.

    Of these `editable` are those whose code stays where it is.
    """

    words: tuple[str, ...]
    named: tuple[Requirement, ...]
    places: tuple[str, ...]
    editable: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(self.words)


def read(entry: str | Sequence[str]) -> Wanted:
    """An entry as it stands in `setup.pip`: one requirement, or a list of pip's words.

    Raises:
        GooseLikeError: it is no requirement, or an option with which pip reads or runs what the entry doesn't name.
    """
    words = (entry,) if isinstance(entry, str) else tuple(entry)
    named: list[Requirement] = []
    places: list[str] = []
    editable: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.strip() or not word.isprintable():
            raise GooseLikeError(f"setup.pip: {word!r} is no requirement; write a name, e.g. 'pandas>=2'")
        if not word.startswith("-"):
            _sort(word, named, places)
            continue
        name, is_joined, value = _option(word)
        if name in _VALUES and not is_joined:
            if not left:
                raise GooseLikeError(f"setup.pip: {word} needs a value; write it as the next item of the list")
            value = left.pop(0)
        elif name not in _VALUES and (name not in _SWITCHES or is_joined):
            raise _refused(word)
        if not value.isprintable():
            raise GooseLikeError(f"setup.pip: {value!r} is no value for {word}; write plain text")
        if name == "editable":
            editable.append(value)
    places += editable
    if not named and not places:
        raise GooseLikeError(f"setup.pip: {shlex.join(words)!r} installs nothing; add the name of a package")
    return Wanted(words, tuple(named), tuple(places), tuple(editable))


def local_path(word: str, root: Path) -> Path | None:
    """The file or folder that a word of pip's means, if there is one; relative ones count from `root`."""
    if word.startswith("-"):
        word = word.partition("=")[2]
    if "@" in word and " @ " in word:
        word = word.partition(" @ ")[2]
    text = re.sub(r"^file://(localhost)?", "", word)
    text = re.sub(r"\[[^\]]*\]$", "", text.partition("#")[0])
    if not _is_place(word) or not text or "://" in text or "\0" in text:
        return None
    try:
        path = root / Path(text).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError):
        return None


def _sort(word: str, named: list[Requirement], places: list[str]) -> None:
    try:
        requirement = Requirement(word)
    except InvalidRequirement as error:
        if not _is_place(word):
            why = str(error).splitlines()[0]
            raise GooseLikeError(f"setup.pip: {word!r} is no requirement: {why}; write one a line") from error
        places.append(word)
    else:
        if requirement.url:
            places.append(word)
        else:
            named.append(requirement)


def _is_place(word: str) -> bool:
    """Whether pip takes it for a URL or a path."""
    return "/" in word or word.startswith(".") or word.endswith(_ARCHIVES) or _PLACE.fullmatch(word) is not None


def _option(word: str) -> tuple[str, bool, str]:
    """An option's whole name without its dashes, whether a value is joined to it, and that value."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        return name, bool(equals), value
    return _SHORT.get(word[1:], word), False, ""


def _refused(word: str) -> GooseLikeError:
    if " " in word:
        return GooseLikeError(f"setup.pip: {word!r} is an option; write it as a list of words, e.g. [--pre, pandas]")
    taken = ", ".join(f"--{name}" for name in sorted(_SWITCHES | _VALUES))
    return GooseLikeError(f"setup.pip: {word} is not taken from a component; it may use {taken}")
