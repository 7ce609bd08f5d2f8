"""The configuration of one MCP server."""

import hashlib
from typing import Literal

from pydantic import Field

from goose_like.core.message import FrozenModel

Transport = Literal["stdio", "http", "sse"]


class ServerConfig(FrozenModel):
    """An MCP server as a file or a profile describes it. Variables such as `${TOKEN}` are not replaced yet.

    `command` is the program with its arguments, for `stdio`; `url` is the address, for `http` and `sse`. `variables`
    are environment variables of the program. `origin` names the file or profile for the person. With `is_projects`
    the project brought the server, so a person trusted its exact text.
    """

    name: str
    origin: str
    is_projects: bool = False
    transport: Transport = "stdio"
    command: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    folder: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    client_id: str = Field(default="", description="of a client that the person registered there, for OAuth")
    client_secret: str = ""
    callback_port: int = Field(default=0, ge=0, le=65535, description="of this machine, to which a login leads; 0: any")
    tools: tuple[str, ...] = Field(default=("*",), description="patterns of the tools that the model may use")
    start_timeout_s: float = Field(default=30, gt=0)
    timeout_s: float = Field(default=120, gt=0, description="of one call; progress of the server starts it anew")

    @property
    def fingerprint(self) -> str:
        """The hash of everything that decides what runs or is asked, without the origin and the limits of time."""
        text = self.model_dump_json(include={"transport", "command", "variables", "folder", "url", "headers"})
        return hashlib.sha256(text.encode()).hexdigest()
