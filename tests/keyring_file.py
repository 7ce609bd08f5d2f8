"""A keyring that is a JSON file: the backend for tests, named by PYTHON_KEYRING_BACKEND and the file by VAULT."""

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class Vault(KeyringBackend):
    priority = 1

    def _all(self) -> dict[str, str]:
        file = Path(os.environ["VAULT"])
        return json.loads(file.read_text()) if file.exists() else {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._all().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        Path(os.environ["VAULT"]).write_text(json.dumps({**self._all(), f"{service}/{username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        kept = self._all()
        if kept.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError("not there")
        Path(os.environ["VAULT"]).write_text(json.dumps(kept))


class Broken(Vault):
    """One whose door is jammed."""

    def get_password(self, service: str, username: str) -> str | None:
        raise OSError("the bus is gone")

    set_password = delete_password = get_password  # type: ignore[assignment]
