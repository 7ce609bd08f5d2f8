"""Hints: what a project and its people want an agent to know, from AGENTS.md and .goosehints."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from goose_like.config.paths import config_folder
from goose_like.workspace.git import root_of

NAMES = ("AGENTS.md", ".goosehints")
MAX_FILE_BYTES = 8_000
MAX_BYTES = 24_000


@dataclass(frozen=True, slots=True)
class Hint:
    """What stands in a file, as far as there is room for it."""

    file: Path
    text: str
    is_cut: bool


def hints(cwd: Path) -> list[Hint]:
    """The person's own first, then from the repository's root down to `cwd`: the nearest last, where a model minds it.

    What is too long is cut, and says so.
    """
    found: list[Hint] = []
    room = MAX_BYTES
    for file in (*_own(), *_project(cwd)):
        try:
            with file.open("rb") as opened:
                data = opened.read(MAX_FILE_BYTES + 1)
        except OSError:
            continue
        if b"\0" in data or not data.strip():
            continue
        kept = data[: min(MAX_FILE_BYTES, room)]
        room -= len(kept)
        is_cut = len(kept) < len(data)
        text = kept.decode(errors="ignore").strip()
        found.append(Hint(file, f"{text}\n[cut; the rest is in {file}]".lstrip() if is_cut else text, is_cut))
    return found


def _own() -> Iterator[Path]:
    """The person's files may be links into their dotfiles: whoever can write there needs no such trick."""
    return (file for name in NAMES if (file := config_folder() / name).is_file())


def _project(cwd: Path) -> Iterator[Path]:
    """A link out of the repository is not followed: it may have come with a clone, to bring a secret to a model."""
    chain = [cwd, *cwd.parents]
    root = root_of(cwd)
    for folder in reversed(chain[: chain.index(root) + 1]):
        for name in NAMES:
            file = folder / name
            if file.is_file() and file.resolve().is_relative_to(root):
                yield file
