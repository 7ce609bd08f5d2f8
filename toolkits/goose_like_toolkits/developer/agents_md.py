"""Instructions for agents from AGENTS.md, the files of other agents and .goosehints, by the project and the user."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from goose_like.config.paths import config_folder, find_repository_root, home_folder
from goose_like.core.errors import GooseLikeError

_TEMPLATE = ".goosehints"
_NAMES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md")
"""Names of instruction files. The first one that a folder has counts."""

_MARKS = (b"{{", b"{%", b"{#")
_GOOSE09_FILE = ".config/goose/.goosehints"
MAX_FILE_BYTES = 12_000
MAX_BYTES = 32_000
MAX_IMPORT_DEPTH = 5
_MAX_IMPORTS = 20

_CODE = re.compile(r"^[ ]{0,3}(```+|~~~+).*?(?:^[ ]{0,3}\1|\Z)|(`+)[^`\n]+\2", re.DOTALL | re.MULTILINE)
_IMPORT = re.compile(r"(?<!\S)@([^\s@]+)")
_SENTENCE_END = ".,;:!?)]}>*'\""

OpenFile = Callable[[Path], AbstractContextManager[BinaryIO]]


@dataclass(frozen=True, slots=True)
class HintFile:
    """A file with hints, cut to the room that is left. `problem` says which part of its text is not filled in."""

    file: Path
    text: str
    is_cut: bool
    problem: str = ""


class _Loaded(NamedTuple):
    """A file that was read. `depth` is 0 for an instruction file, and higher by 1 for each import on the way to it."""

    file: Path
    data: bytes
    problem: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class _Source:
    """The files below one folder, and how they are opened."""

    root: Path
    open_file: OpenFile
    is_ignored: Callable[[Path], bool]


def _open(file: Path) -> BinaryIO:
    return file.open("rb")


def load_hints(
    cwd: Path, is_ignored: Callable[[Path], bool] = lambda _: False, open_file: OpenFile = _open
) -> list[HintFile]:
    """Load the user's hints, then the project's from the repository root down to `cwd`.

    The nearest file comes last, where a model gives it the most weight, and is cut last. Each file is followed by
    those that it imports with `@path`. Imports are cut before all instruction files, the deepest ones first.
    A project's file is left out if it is ignored, or a link to an ignored file. .goosehints are Jinja templates, as in
    goose 0.9. `open_file` opens the project's files that others include.
    """
    user = _Source(config_folder(), _open, lambda _: False)
    project = _Source(find_repository_root(cwd), open_file, is_ignored)
    seen: set[Path] = set()
    found: list[_Loaded] = []
    for source, files in ((user, _find_user_files()), (project, _find_project_files(cwd))):
        for file in files:
            found += _load_file(file, source, seen)
    nearest_first, room, kept = found[::-1], MAX_BYTES, dict[Path, bytes]()
    for loaded in sorted(nearest_first, key=lambda loaded: loaded.depth):
        kept[loaded.file] = loaded.data[: min(MAX_FILE_BYTES, room)]
        room -= len(kept[loaded.file])
    return [_make_hint(loaded, kept[loaded.file]) for loaded in found]


def _make_hint(loaded: _Loaded, kept: bytes) -> HintFile:
    is_cut = len(kept) < len(loaded.data)
    text = kept.decode(errors="ignore").strip()
    shown = f"{text}\n[cut; the rest is in {loaded.file}]".lstrip() if is_cut else text
    return HintFile(loaded.file, shown, is_cut, loaded.problem)


def _load_file(file: Path, source: _Source, seen: set[Path]) -> Iterator[_Loaded]:
    """Yield a file and its imports."""
    if source.is_ignored(file) or file.resolve() in seen:
        return
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError:
        return
    if b"\0" in data or not data.strip():
        return
    seen.add(file.resolve())
    if file.name == _TEMPLATE:
        root = source.root if file.is_relative_to(source.root) else file.parent
        yield _Loaded(file, *_fill_in(file, data, root, source.open_file))
        return
    problems: list[str] = []
    imported = list(_load_imports(file, data, source, seen, problems, 1))
    yield _Loaded(file, data, "\n".join(problems))
    yield from imported


def _load_imports(
    file: Path, data: bytes, source: _Source, seen: set[Path], problems: list[str], depth: int
) -> Iterator[_Loaded]:
    """Yield the files that a file imports with `@path`, each once. Code spans and blocks import nothing."""
    for path in _find_imports(data.decode(errors="replace")):
        try:
            target = (file.parent / os.path.expanduser(path)).resolve()
            if target in seen or (not target.is_file() and target.suffix != ".md"):  # other words can be names
                continue
            if not target.is_file():
                raise GooseLikeError("there is no such file")
            if not target.is_relative_to(source.root.resolve()):
                raise GooseLikeError(f"it is not below {source.root}")
            if depth > MAX_IMPORT_DEPTH or len(seen) >= _MAX_IMPORTS:
                raise GooseLikeError(f"imports go at most {MAX_IMPORT_DEPTH} files deep, {_MAX_IMPORTS} files in all")
            with source.open_file(target) as stream:
                text = stream.read(MAX_BYTES + 1)
            if b"\0" in text:
                raise GooseLikeError("it is no text")
        except (OSError, ValueError, RuntimeError, GooseLikeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error  # the rest of an OSError is a path of ours
            problems.append(f"{file}: @{path} is not imported: {reason}")
            continue
        seen.add(target)
        yield _Loaded(target, text, depth=depth)
        yield from _load_imports(target, text, source, seen, problems, depth + 1)


def _find_imports(text: str) -> Sequence[str]:
    words = _IMPORT.findall(_CODE.sub(" ", text))
    return list(dict.fromkeys(path for word in words if (path := word.rstrip(_SENTENCE_END))))


def _fill_in(file: Path, data: bytes, root: Path, open_file: OpenFile) -> tuple[bytes, str]:
    """Fill in the template of a .goosehints. Return it unchanged, with the problem, if it is broken."""
    if not any(mark in data for mark in _MARKS):
        return data, ""
    from .hint_template import render_hints  # Jinja is slow to import

    try:
        text = render_hints(data.decode(errors="replace"), file.parent, root, open_file, MAX_BYTES)
    except GooseLikeError as error:
        return data, f"{file}: {error}; the model reads the file as it is"
    return text.encode(errors="replace"), ""


def _find_user_files() -> Iterator[Path]:
    """Yield the user's files. Links are allowed, since nobody else can write in this folder."""
    yield from _list_files(config_folder())
    if not (config_folder() / _TEMPLATE).is_file() and (file := home_folder() / _GOOSE09_FILE).is_file():
        yield file


def _find_project_files(cwd: Path) -> Iterator[Path]:
    """Yield the project's files. A link out of the repository is skipped: it may lead to a secret."""
    chain = [cwd, *cwd.parents]
    root = find_repository_root(cwd)
    for folder in reversed(chain[: chain.index(root) + 1]):
        yield from (file for file in _list_files(folder) if file.resolve().is_relative_to(root))


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield the first instruction file of a folder, and its .goosehints."""
    yield from [file for name in _NAMES if (file := folder / name).is_file()][:1]
    yield from (file for file in (folder / _TEMPLATE,) if file.is_file())
