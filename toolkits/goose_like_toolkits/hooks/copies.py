"""The file with the hooks of other agents that the person took over."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from goose_like.config.paths import describe_read_error, lock_folder, read_user_file, replace_private_file
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel, JsonData


class _Copies(FrozenModel):
    """The hooks by the path of the file from which they were copied."""

    version: Literal[1] = 1
    files: dict[str, JsonData] = {}


def read_copies(file: Path) -> Mapping[str, JsonData]:
    """Read the hooks by the path of the file from which they were copied.

    Raises:
        GooseLikeError: the file cannot be read.
    """
    try:
        return _Copies.model_validate_json(read_user_file(file)).files
    except (OSError, ValueError) as error:
        reason = "it has another form" if isinstance(error, ValidationError) else describe_read_error(error)
        raise GooseLikeError(f"{file} can't be read ({reason}); remove it, then: goose-like hooks use FILE") from error


def edit_copies(file: Path, name: str, data: object) -> None:
    """Replace the hooks that were copied from the file `name`, or remove them if `data` is None.

    Raises:
        GooseLikeError: the file cannot be read.
    """
    with lock_folder(file.parent):
        files = dict(read_copies(file)) if file.exists() else {}
        files.pop(name, None)
        if data is not None:
            files[name] = data  # type: ignore[assignment]
        if files:
            replace_private_file(file, _Copies(files=files).model_dump_json(indent=1))
        else:
            file.unlink(missing_ok=True)
