"""Prompt: the words that a component has for a model, wherever it keeps them."""

from collections.abc import Sequence
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel

_LIMIT_PROMPT_BYTES = 256_000


class Prompt(FrozenModel):
    """Where the words come from that a component has for a model: itself, a file beside its config.yaml, or any."""

    text: str = ""
    file_name: str = ""
    file_path: str = ""

    def read(self, folder: Path, reach: Sequence[Path] = (), prefix: str = "") -> str:
        """The words; "" if there are none. Of the three the first counts.

        `folder` is where its configuration lies; a file is read only from there or from below a folder of `reach`, and
        of no hidden folder there. A repository's name for it, which begins with `prefix`, goes before its own.

        Raises:
            GooseLikeError: the file is elsewhere, not there, too large or no UTF-8.
        """
        if self.text:
            return self.text
        key = "prompt_file_name" if self.file_name else "prompt_file_path"
        name = self.file_name or self.file_path
        if not name:
            return ""
        try:
            file = _named(folder / name, prefix).resolve()
            if not any(_is_open(file, root.resolve()) for root in (folder, *reach)):
                raise GooseLikeError(f"{key} names {name!r}, which is outside of {folder}; put it there")
            if not file.is_file():
                raise GooseLikeError(f"{key} names {name!r}, and there is no such file in {folder}; write it")
            if file.stat().st_size > _LIMIT_PROMPT_BYTES:
                raise GooseLikeError(f"{folder / name}: a prompt has {_LIMIT_PROMPT_BYTES:,} bytes at most; shorten it")
            return file.read_bytes().decode("utf-8-sig").strip()
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise GooseLikeError(f"{folder / name}: can't be read: {reason}; it is the {key} of a component") from error


def _named(file: Path, prefix: str) -> Path:
    """A file by the name that it has there."""
    stored = file.with_name(f"{prefix}{file.name}") if prefix and file.name else file
    return stored if stored.is_file() else file


def _is_open(file: Path, root: Path) -> bool:
    """Whether a file is below a folder, by no name that begins with a dot but `.runtime`."""
    if not file.is_relative_to(root):
        return False
    return all(not part.startswith(".") or part == ".runtime" for part in file.relative_to(root).parts)
