"""The files of servers that a start reads."""

import os
from contextlib import suppress
from pathlib import Path

from goose_like.config.paths import config_folder, read_user_file, state_folder

PERSONAL_FILE = "mcp.json"
"""The file of the person's servers, in the configuration folder."""

PROJECT_FILE = ".mcp.json"
"""The file of a project's servers, at its root."""


def find_personal_file() -> Path:
    """Return the path of the person's file."""
    return config_folder() / PERSONAL_FILE


def read_personal_text() -> str | None:
    """Read the person's file; None if there is none.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    file = find_personal_file()
    if not os.path.lexists(file):  # a link to nothing is an error
        return None
    return read_user_file(file)


def find_stored_file(fingerprint: str) -> Path:
    """Return the file with the definitions of a server. Commands in the sandbox cannot see its folder."""
    return state_folder() / "mcp" / f"{fingerprint}.json"


class StoredFile:
    """The stored definitions of a server: the status and the content of the file; both None if it cannot be read."""

    def __init__(self, fingerprint: str) -> None:
        self.status: os.stat_result | None = None
        self.data: bytes | None = None
        with suppress(OSError), open(find_stored_file(fingerprint), "rb") as file:
            self.status = os.fstat(file.fileno())
            self.data = file.read()
