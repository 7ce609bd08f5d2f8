"""The prompt of a component, wherever it keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from goose_like.core.errors import GooseLikeError

_MAX_BYTES = 256_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """The source of a prompt: the text itself, a file beside config.yaml, or another file. The first one counts."""

    text: str = ""
    file_name: str = ""
    file_path: str = ""

    def read(self, folder: Path, roots: Sequence[Path] = (), prefix: str = "") -> str:
        """Read the prompt, "" if there is none. Raise GooseLikeError if its file cannot be used.

        Args:
            folder: the folder of config.yaml.
            roots: more folders in which the file may be, but not below a dot folder.
            prefix: the beginning of file names in a repository.
        """
        name = self.file_name or self.file_path
        if self.text or not name:
            return self.text
        try:
            file = folder / name
            stored = file.with_name(f"{prefix}{file.name}")
            if prefix and stored.is_file():
                file = stored
            file = file.resolve()
            if not any(_is_open(file, root.resolve()) for root in (folder, *roots)):
                raise GooseLikeError(f"its prompt file {name!r} is outside of {folder}; put it there")
            if not file.is_file():
                raise GooseLikeError(f"there is no prompt file {name!r} in {folder}; write it")
            if file.stat().st_size > _MAX_BYTES:
                raise GooseLikeError(f"{file}: a prompt has {_MAX_BYTES:,} bytes at most; shorten it")
            return file.read_bytes().decode("utf-8-sig").strip()
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise GooseLikeError(f"its prompt file {name!r} can't be read: {reason}") from error


def _is_open(file: Path, root: Path) -> bool:
    """Check whether a file is below a folder, and below no dot folder but `.runtime`."""
    if not file.is_relative_to(root):
        return False
    parts = file.relative_to(root).parts
    return all(part == ".runtime" or not part.startswith(".") for part in parts)
