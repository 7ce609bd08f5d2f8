"""Extensions of recipes: goose's names of tools as toolkits of ours, and its servers as configurations of MCP."""

import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import UsageError

from .content import Extension
from .recipe import FilledRecipe

_TOOLKITS = {
    "analyze": "developer",
    "code_execution": "code",
    "computercontroller": "developer",
    "developer": "developer",
    "skills": "skills",
    "summon": "delegate",
    "todo": "developer",
}
"""Toolkits by the names of goose's extensions that do the same."""

SERVERS = "mcp"
"""The toolkit of servers."""

HELPERS = "delegate"
"""The toolkit of sub recipes."""

_PRELUDE = """\
import sys, types
import mcp.server.mcpserver as _server
_old = types.ModuleType("mcp.server.fastmcp")
_old.FastMCP = _server.MCPServer
_old.Context = _server.Context
sys.modules["mcp.server.fastmcp"] = _old
"""
"""Code before that of a recipe, which goose runs with version 1 of the package `mcp`: the old name of its class."""


@dataclass(frozen=True, slots=True)
class UsableExtensions:
    """The toolkits that a recipe wants, and its servers by name, as the toolkit of servers takes them."""

    toolkits: tuple[str, ...]
    servers: dict[str, dict[str, Any]]


def read_extensions(filled: FilledRecipe, without: Sequence[str] = ()) -> UsableExtensions | None:
    """Return what the extensions of a recipe are here, or None for a recipe that names none. Leave out `without`.

    Raises:
        UsageError: an extension has no counterpart. The text names its line.
    """
    if filled.content.extensions is None:
        return None
    toolkits: dict[str, None] = {}
    servers: dict[str, dict[str, Any]] = {}
    for index, extension in enumerate(filled.content.extensions):
        if extension.name in without:
            continue
        name = _TOOLKITS.get(extension.name.lower().replace(" ", ""))
        problem = _find_problem(extension, name)
        if problem:
            place = filled.source.locate("extensions", index)
            advice = f"to run the recipe without it: --without {extension.name}"
            raise UsageError(f"{place}: the extension {extension.name!r} {problem}; {advice}")
        if name and extension.type in ("builtin", "platform"):
            toolkits[name] = None
        else:
            toolkits[SERVERS] = None
            servers[extension.name] = describe_server(extension)
    return UsableExtensions(tuple(toolkits), servers)


def _find_problem(extension: Extension, toolkit: str | None) -> str:
    match extension.type:
        case "frontend":
            return "has its tools in goose's desktop program"
        case "builtin" | "platform" if toolkit is None:
            return "is a part of goose that has no counterpart here"
        case "stdio" if not extension.cmd:
            return "has no `cmd`"
        case "streamable_http" | "sse" if not extension.uri:
            return "has no `uri`"
        case "inline_python" if not extension.code.strip():
            return "has no `code`"
    return ""


def describe_server(extension: Extension) -> dict[str, Any]:
    """Return the configuration of a server, as the toolkit of servers takes it."""
    server: dict[str, Any] = {}
    if extension.uri:
        server["url"] = extension.uri
        server["headers"] = extension.headers
        if extension.type == "sse":
            server["type"] = "sse"
    else:
        command = _make_python_command(extension) if extension.code else [extension.cmd, *extension.args]
        server["command"], *server["args"] = command
        server["env"] = dict(extension.envs)
        for key in extension.env_keys:
            server["env"][key] = f"${{{key}}}"
    if extension.timeout:
        server["timeout_s"] = extension.timeout
    if extension.available_tools:
        server["tools"] = list(extension.available_tools)
    return server


def _make_python_command(extension: Extension) -> list[str]:
    """Return the command for the code of a server: this Python, or `uvx` if it needs packages that are not here."""
    missing = [name for name in extension.dependencies if not _is_installed(name)]
    if not missing:
        return [sys.executable, "-c", _PRELUDE + extension.code]
    command = ["uvx", "--with", "mcp<2"]
    for name in extension.dependencies:
        if name != "mcp":
            command += ["--with", name]
    return [*command, "python", "-c", extension.code]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return False
    return True
