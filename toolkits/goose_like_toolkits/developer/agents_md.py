"""Hints for agents from AGENTS.md and .goosehints, by the project and by the user."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from goose_like.config.paths import config_folder, find_repository_root
from goose_like.core.errors import GooseLikeError

_TEMPLATE = ".goosehints"
NAMES = ("AGENTS.md", _TEMPLATE)
_MARKS = (b"{{", b"{%", b"{#")
_GOOSE09_FILE = ".config/goose/.goosehints"
MAX_FILE_BYTES = 8_000
MAX_BYTES = 24_000


@dataclass(frozen=True, slots=True)
class HintFile:
    """A file with hints, cut to the room that is left. `problem` says why its text is not filled in."""

    file: Path
    text: str
    is_cut: bool
    problem: str = ""


def _open(file: Path) -> BinaryIO:
    return file.open("rb")


def load_hints(
    cwd: Path,
    is_ignored: Callable[[Path], bool] = lambda _: False,
    open_file: Callable[[Path], AbstractContextManager[BinaryIO]] = _open,
) -> list[HintFile]:
    """Load the user's hints, then the project's from the repository root down to `cwd`.

    The nearest file comes last, where a model gives it the most weight. A long file is cut with a note. A
    project's file is left out if it is ignored, or a link to an ignored file. .goosehints are Jinja templates, as in
    goose 0.9; `open_file` opens the project's files that they include.
    """
    found: list[HintFile] = []
    room = MAX_BYTES
    users, root = list(_find_user_files()), find_repository_root(cwd)
    project_files = (file for file in _find_project_files(cwd) if not is_ignored(file))
    for file in (*users, *project_files):
        try:
            with file.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except OSError:
            continue
        if b"\0" in data or not data.strip():
            continue
        is_users = file in users
        data, problem = _fill_in(file, data, file.parent if is_users else root, _open if is_users else open_file)
        kept = data[: min(MAX_FILE_BYTES, room)]
        room -= len(kept)
        is_cut = len(kept) < len(data)
        text = kept.decode(errors="ignore").strip()
        found.append(
            HintFile(file, f"{text}\n[cut; the rest is in {file}]".lstrip() if is_cut else text, is_cut, problem)
        )
    return found


def _fill_in(
    file: Path, data: bytes, root: Path, open_file: Callable[[Path], AbstractContextManager[BinaryIO]]
) -> tuple[bytes, str]:
    """Fill in the template of a .goosehints. Return it unchanged, with the problem, if it is broken."""
    if file.name != _TEMPLATE or not any(mark in data for mark in _MARKS):
        return data, ""
    from .hint_template import render_hints  # Jinja is slow to import

    try:
        text = render_hints(data.decode(errors="replace"), file.parent, root, open_file, MAX_BYTES)
    except GooseLikeError as error:
        return data, f"{file}: {error}; the model reads the file as it is"
    return text.encode(errors="replace"), ""


def _find_user_files() -> Iterator[Path]:
    """Yield the user's files. Links are allowed, since nobody else can write in this folder."""
    files = [config_folder() / name for name in NAMES]
    if not files[-1].is_file():
        files[-1] = Path.home() / _GOOSE09_FILE
    return filter(Path.is_file, files)


def _find_project_files(cwd: Path) -> Iterator[Path]:
    """Yield the project's files. A link out of the repository is skipped: it may lead to a secret."""
    chain = [cwd, *cwd.parents]
    root = find_repository_root(cwd)
    for folder in reversed(chain[: chain.index(root) + 1]):
        for name in NAMES:
            file = folder / name
            if file.is_file() and file.resolve().is_relative_to(root):
                yield file
