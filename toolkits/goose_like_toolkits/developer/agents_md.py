"""Instructions for agents from AGENTS.md, the files of other agents and .goosehints, by the project and the user."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from goose_like.config.paths import config_folder, find_repository_root, home_folder
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later

_TEMPLATE = ".goosehints"
_NAMES_OF_OTHERS = ("CLAUDE.md", "GEMINI.md")
_NAMES = ("AGENTS.override.md", "AGENTS.md", *_NAMES_OF_OTHERS)
"""Names of instruction files. The first one that a folder has counts."""

_MARKS = (b"{{", b"{%", b"{#")
_GOOSE09_FILE = ".config/goose/.goosehints"
MAX_FILE_BYTES = 12_000
MAX_BYTES = 32_000
MAX_IMPORT_DEPTH = 5
_MAX_IMPORTS = 20

_CODE = compile_later(r"^[ ]{0,3}(```+|~~~+).*?(?:^[ ]{0,3}\1|\Z)|(`+)[^`\n]+\2", re.DOTALL | re.MULTILINE)
_IMPORT = compile_later(r"(?<!\S)@([^\s@]+)")
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
    cwd: Path,
    is_ignored: Callable[[Path], bool] = lambda _: False,
    open_file: OpenFile = _open,
    personal: Iterable[Path] = (),
) -> list[HintFile]:
    """Load the user's hints, then the project's from the repository root down to `cwd`.

    The first ones are the `personal` files of other agents. They import files below their own folders.

    The nearest file comes last, where a model gives it the most weight, and is cut last. Each file is followed by
    those that it imports with `@path`. Imports are cut before all instruction files, the deepest ones first.
    A project's file is left out if it is ignored, or a link to an ignored file. .goosehints are Jinja templates, as in
    goose 0.9. `open_file` opens the project's files that others include.
    """
    user = _Source(config_folder(), _open, lambda _: False)
    project = _Source(find_repository_root(cwd), open_file, is_ignored)
    seen: set[Path] = set()
    found: list[_Loaded] = []
    for file in personal:
        found += _load_file(file, _Source(file.parent, _open, lambda _: False), seen)
    for file in _find_user_files():
        found += _load_file(file, user, seen)
    for file in _find_project_files(cwd):
        found += _load_file(file, project, seen)
    kept = _fit(found)
    return [_make_hint(loaded, kept[loaded.file]) for loaded in found]


def _fit(found: Sequence[_Loaded]) -> dict[Path, bytes]:
    """Cut the content of files to the room for all of them. The files that are nearest to the work get it first."""
    kept: dict[Path, bytes] = {}
    room = MAX_BYTES
    nearest_first = reversed(found)
    for loaded in sorted(nearest_first, key=lambda loaded: loaded.depth):
        data = loaded.data[: min(MAX_FILE_BYTES, room)]
        kept[loaded.file] = data
        room -= len(data)
    return kept


def describe_hints(found: Sequence[HintFile]) -> str:
    """Describe the files for the person, with what is cut or not filled in."""
    names = [f"{hint.file} (cut)" if hint.is_cut else str(hint.file) for hint in found]
    lines = ["hints from " + ", ".join(names)]
    if any(hint.is_cut for hint in found):
        lines.append(
            f"a file is cut at {MAX_FILE_BYTES:,} bytes, all together at {MAX_BYTES:,}; shorten those that are cut"
        )
    lines += [hint.problem for hint in found if hint.problem]
    read = {hint.file.resolve() for hint in found}
    for hint in found:
        for other in _find_unread(hint.file):
            if other.resolve() not in read:
                lines.append(f"not read: {other}, since {hint.file.name} beside it comes first")
    return "\n".join(lines)


def _find_unread(file: Path) -> Iterator[Path]:
    """Yield the files of other agents beside an instruction file that say something else."""
    if file.name not in _NAMES:
        return
    text = _read_start(file)
    imports = (f"@{file.name}", f"@./{file.name}")
    for name in _NAMES_OF_OTHERS:
        other = file.with_name(name)
        if name == file.name or not other.is_file():
            continue
        if _read_start(other) not in ("", text, *imports):
            yield other


def _read_start(file: Path) -> str:
    with suppress(OSError), file.open("rb") as stream:
        return stream.read(MAX_BYTES).decode(errors="replace").strip()
    return ""


def _make_hint(loaded: _Loaded, kept: bytes) -> HintFile:
    is_cut = len(kept) < len(loaded.data)
    text = kept.decode(errors="ignore").strip()
    if is_cut:
        text = f"{text}\n[cut; the rest is in {loaded.file}]".lstrip()
    return HintFile(loaded.file, text, is_cut, loaded.problem)


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
        filled, problem = _fill_in(file, data, root, source.open_file)
        yield _Loaded(file, filled, problem)
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
            is_name = target.suffix != ".md" and not target.is_file()
            if target in seen or is_name:
                continue
            _check_place(target, source)
            if depth > MAX_IMPORT_DEPTH or len(seen) >= _MAX_IMPORTS:
                raise GooseLikeError(f"imports go at most {MAX_IMPORT_DEPTH} files deep, {_MAX_IMPORTS} files in all")
            text = _read_text(target, source)
        except (OSError, ValueError, RuntimeError, GooseLikeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error  # the rest of an OSError is a path of ours
            problems.append(f"{file}: @{path} is not imported: {reason}")
            continue
        seen.add(target)
        yield _Loaded(target, text, depth=depth)
        yield from _load_imports(target, text, source, seen, problems, depth + 1)


def _check_place(target: Path, source: _Source) -> None:
    if not target.is_file():
        raise GooseLikeError("there is no such file")
    if not target.is_relative_to(source.root.resolve()):
        raise GooseLikeError(f"it is not below {source.root}")


def _read_text(target: Path, source: _Source) -> bytes:
    with source.open_file(target) as stream:
        data = stream.read(MAX_BYTES + 1)
    if b"\0" in data:
        raise GooseLikeError("it is no text")
    return data


def _find_imports(text: str) -> Sequence[str]:
    words = _IMPORT.findall(_CODE.sub(" ", text))
    paths = [word.rstrip(_SENTENCE_END) for word in words]
    return list(dict.fromkeys(filter(None, paths)))


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
    if (config_folder() / _TEMPLATE).is_file():
        return
    file = home_folder() / _GOOSE09_FILE
    if file.is_file():
        yield file


def _find_project_files(cwd: Path) -> Iterator[Path]:
    """Yield the project's files. A link out of the repository is skipped: it may lead to a secret."""
    chain = [cwd, *cwd.parents]
    root = find_repository_root(cwd)
    folders = chain[: chain.index(root) + 1]
    for folder in reversed(folders):
        for file in _list_files(folder):
            if file.resolve().is_relative_to(root):
                yield file


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield the first instruction file of a folder, and its .goosehints."""
    for name in _NAMES:
        file = folder / name
        if file.is_file():
            yield file
            break
    template = folder / _TEMPLATE
    if template.is_file():
        yield template
