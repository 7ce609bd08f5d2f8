"""The configuration of one MCP server."""

import hashlib
import json
from dataclasses import field
from typing import Literal

from goose_like.core.dataclass import dataclass

Transport = Literal["stdio", "http", "sse"]


@dataclass(frozen=True)
class ServerConfig:
    """An MCP server as a file or a profile describes it. Variables such as `${TOKEN}` are not replaced yet.

    `command` is the program with its arguments, for `stdio`; `url` is the address, for `http` and `sse`. `variables`
    are environment variables of the program. `origin` names the file or profile for the person. With `is_projects`
    the project brought the server, so a person trusted its exact text.

    `client_id` and `client_secret` are those of a client that the person registered there, for OAuth; a login leads to
    `callback_port` of this machine (0: any). `tools` are patterns of the tools that the model may use. Progress of the
    server starts the time of a call anew.
    """

    name: str
    origin: str
    is_projects: bool = False
    transport: Transport = "stdio"
    command: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    folder: str = ""
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    client_id: str = ""
    client_secret: str = ""
    callback_port: int = 0
    tools: tuple[str, ...] = ("*",)
    start_timeout_s: float = 30
    timeout_s: float = 120

    @property
    def sends_key(self) -> bool:
        """True if the configuration has the header for a key, so that no login is needed."""
        return "authorization" in {header.lower() for header in self.headers}

    @property
    def fingerprint(self) -> str:
        """The hash of everything that decides what runs or is asked, without the origin and the limits of time."""
        fields = {
            "transport": self.transport,
            "command": self.command,
            "variables": self.variables,
            "folder": self.folder,
            "url": self.url,
            "headers": self.headers,
        }
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
