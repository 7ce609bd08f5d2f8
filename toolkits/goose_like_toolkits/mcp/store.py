"""Definitions of servers that are kept between sessions."""

import json
from dataclasses import asdict
from pathlib import Path

from goose_like.config.paths import create_private_folder, read_user_file, replace_private_file, state_folder

from .definitions import Definitions, build_definitions
from .server import ServerConfig

_FORMAT = 1


class DefinitionStore:
    """The definitions of each server by the fingerprint of its configuration, as the person last accepted them.

    A server with another command or address is another one: it starts without definitions. Give the configuration as
    `load_servers` returns it, not the expanded one. Commands in the sandbox cannot see the folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or state_folder() / "mcp"

    def load(self, server: ServerConfig) -> Definitions | None:
        """Load the definitions of a server; None if there are none, or none that this version can read."""
        try:
            text = read_user_file(self._get_file(server))
            stored = json.loads(text)
            if stored["version"] != _FORMAT:
                return None
            return build_definitions(stored["definitions"])
        except (OSError, ValueError, TypeError, LookupError):  # then the server is asked again, as a new one
            return None

    def save(self, server: ServerConfig, definitions: Definitions) -> None:
        """Save the definitions of a server, for its owner alone.

        Raises:
            OSError: the folder is not writable.
        """
        # The name is for a person who looks at the file.
        stored = {"version": _FORMAT, "server": server.name, "definitions": asdict(definitions)}
        create_private_folder(self._folder)
        replace_private_file(self._get_file(server), json.dumps(stored, indent=1))

    def forget(self, server: ServerConfig) -> bool:
        """Remove the definitions of a server. Return whether there were any."""
        file = self._get_file(server)
        has_file = file.exists()
        file.unlink(missing_ok=True)
        return has_file

    def _get_file(self, server: ServerConfig) -> Path:
        return self._folder / f"{server.fingerprint}.json"
