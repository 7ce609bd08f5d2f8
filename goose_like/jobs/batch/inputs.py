"""The inputs of a batch: a folder, a file with rows, or a list of repositories."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goose_like.config.foreign_text import parse_json
from goose_like.config.paths import describe_read_error, find_repository_root, read_user_file
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import UsageError

from .job import BatchInput, PlaceKind

_MAX_INPUT_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class InputReader:
    """A reader of inputs.

    The keys `repository` and `folder` of a row name what it works on. Other inputs work on the folder of the reader, in
    a worktree or in a copy.
    """

    folder: Path
    kind: PlaceKind

    def read(self, source: str) -> list[BatchInput]:
        """Read the inputs of a folder, a `.jsonl` or `.csv` file, or a list of repositories, one in each line.

        Raises:
            UsageError: there are no inputs, or one cannot be read; the text names its line.
        """
        inputs = [self._place_row(row) for row in _read_rows(self.folder / source, source)]
        if not inputs:
            raise UsageError(f"{source} has no inputs; give a folder, a .jsonl or .csv file, or a list of repositories")
        return inputs

    def _place_row(self, row: dict[str, Any]) -> BatchInput:
        parameters = dict(row)
        repository = parameters.pop("repository", None)
        folder = parameters.pop("folder", None)
        if repository:  # an empty cell names nothing
            local = self.folder / str(repository)
            source = str(local) if local.is_dir() else str(repository)
            return BatchInput(row=row, parameters=parameters, place="clone", source=source)
        if folder:
            source = str(self._find_folder(str(folder)))
            return BatchInput(row=row, parameters=parameters, place="copy", source=source)
        return BatchInput(row=row, parameters=parameters, place=self.kind, source=str(self.folder))

    def _find_folder(self, name: str) -> Path:
        folder = self.folder / name
        if not folder.is_dir():
            raise UsageError(f"an input names the folder {name!r}, which does not exist")
        return folder


def choose_place(folder: Path) -> PlaceKind:
    """Choose a worktree in a git repository, and a copy elsewhere."""
    return "worktree" if (find_repository_root(folder) / ".git").exists() else "copy"


def _read_rows(path: Path, source: str) -> Iterator[dict[str, Any]]:
    if path.is_dir():
        return _list_entries(path)
    try:
        text = read_user_file(path, _MAX_INPUT_BYTES, allows_pipes=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"the inputs {source} can't be read: {describe_read_error(error)}") from error
    readers = {".jsonl": _read_jsonl, ".csv": _read_csv}
    read = readers.get(path.suffix, _read_repositories)
    return read(text, source)


def _list_entries(folder: Path) -> Iterator[dict[str, Any]]:
    """Take a folder as the place to work on, and a file as the parameter `file`."""
    for entry in sorted(folder.iterdir()):
        if not entry.name.startswith("."):
            yield {"folder" if entry.is_dir() else "file": str(entry)}


def _read_jsonl(text: str, source: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):  # JSON texts may hold other line ends
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise UsageError(f"{source}, line {number}: no JSON: {error}") from error
        if not isinstance(row, dict):
            raise UsageError(f'{source}, line {number}: each line is an object, e.g. {{"file": "a.py"}}')
        yield row


def _read_csv(text: str, source: str) -> Iterator[dict[str, Any]]:
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        names = rows.fieldnames or ()
        for name in names:
            if names.count(name) > 1:
                problem = "two columns have no name; name or remove them"
                if name:
                    problem = f"two columns have the name {name!r}; rename one"
                raise UsageError(f"{source}, line {rows.line_num}: {problem}")
        for row in rows:
            is_uneven = None in row or None in row.values()
            if is_uneven:
                count = len(rows.fieldnames or ())
                raise UsageError(
                    f"{source}, line {rows.line_num}: this row does not have {count} cells as the first one"
                )
            yield dict(row)
    except csv.Error as error:
        raise UsageError(f"{source}, after line {rows.line_num}: {error}") from error


def _read_repositories(text: str, _: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        name = line.strip()
        if name and not name.startswith("#"):
            yield {"repository": name}
