"""Hints for agents from AGENTS.md and .goosehints, by the project and by the user."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from goose_like.config.paths import config_folder, find_repository_root

NAMES = ("AGENTS.md", ".goosehints")
MAX_FILE_BYTES = 8_000
MAX_BYTES = 24_000


@dataclass(frozen=True, slots=True)
class HintFile:
    """A file with hints, cut to the room that is left."""

    file: Path
    text: str
    is_cut: bool


def load_hints(cwd: Path, is_ignored: Callable[[Path], bool] = lambda _: False) -> list[HintFile]:
    """Load the user's hints, then the project's from the repository root down to `cwd`.

    The nearest file comes last, where a model gives it the most weight. A long file is cut with a note. A
    project's file is left out if it is ignored, or a link to an ignored file.
    """
    found: list[HintFile] = []
    room = MAX_BYTES
    project_files = (file for file in _find_project_files(cwd) if not is_ignored(file))
    for file in (*_find_user_files(), *project_files):
        try:
            with file.open("rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
        except OSError:
            continue
        if b"\0" in data or not data.strip():
            continue
        kept = data[: min(MAX_FILE_BYTES, room)]
        room -= len(kept)
        is_cut = len(kept) < len(data)
        text = kept.decode(errors="ignore").strip()
        found.append(HintFile(file, f"{text}\n[cut; the rest is in {file}]".lstrip() if is_cut else text, is_cut))
    return found


def _find_user_files() -> Iterator[Path]:
    """Yield the user's files. Links are allowed, since nobody else can write in this folder."""
    return (file for name in NAMES if (file := config_folder() / name).is_file())


def _find_project_files(cwd: Path) -> Iterator[Path]:
    """Yield the project's files. A link out of the repository is skipped: it may lead to a secret."""
    chain = [cwd, *cwd.parents]
    root = find_repository_root(cwd)
    for folder in reversed(chain[: chain.index(root) + 1]):
        for name in NAMES:
            file = folder / name
            if file.is_file() and file.resolve().is_relative_to(root):
                yield file
