"""The person's files of other agents: the servers in them, for `mcp add --from`."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from goose_like.config.foreign_text import parse_json, parse_toml
from goose_like.config.paths import describe_read_error, home_folder, read_user_file, shorten_home
from goose_like.config.yaml_reader import parse_document
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean

from .config import SERVERS_KEY, parse_servers
from .server import ServerConfig


def _parse_yaml(text: str) -> Any:
    content, _ = parse_document(text)
    return content


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file of an agent. `path` is below the home folder, and `key` is that of the servers in it."""

    agent: str
    path: str
    key: str = SERVERS_KEY
    parse: Callable[[str], Any] = parse_json

    @property
    def file(self) -> Path:
        """The path of the file."""
        return home_folder() / self.path


AGENT_FILES = (
    AgentFile("claude", ".claude.json"),
    AgentFile("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    AgentFile("claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
    AgentFile("codex", ".codex/config.toml", "mcp_servers", parse_toml),
    AgentFile("cursor", ".cursor/mcp.json"),
    AgentFile("gemini", ".gemini/settings.json"),
    AgentFile("goose", ".config/goose/config.yaml", "extensions", _parse_yaml),
    AgentFile("opencode", ".config/opencode/opencode.json", "mcp"),
    AgentFile("vscode", ".config/Code/User/mcp.json", "servers"),
    AgentFile("windsurf", ".codeium/windsurf/mcp_config.json"),
)

AGENTS = tuple(dict.fromkeys(file.agent for file in AGENT_FILES))

_OWN_TYPES = ("builtin", "platform", "frontend", "inline_python")
"""Types of extensions of goose that are no servers."""


@dataclass(frozen=True, slots=True)
class FoundServers:
    """The servers in one file of an agent."""

    agent: str
    origin: str
    entries: Mapping[str, Any]
    servers: tuple[ServerConfig, ...]
    problems: tuple[str, ...]


def find_agent_servers(folder: Path, agent: str = "") -> list[FoundServers]:
    """Find the servers in the files of all agents, or of one. `folder` is the one that the person works in.

    Raises:
        UsageError: no such agent.
    """
    if agent and agent not in AGENTS:
        raise UsageError(f"no agent {agent!r}; {did_you_mean(agent, AGENTS)}")
    found = []
    for source in AGENT_FILES:
        is_wanted = not agent or source.agent == agent
        if is_wanted and os.path.lexists(source.file):
            found.append(_read(source, folder))
    return found


def _read(source: AgentFile, folder: Path) -> FoundServers:
    origin = shorten_home(str(source.file))
    try:
        content = source.parse(read_user_file(source.file))
    except (OSError, ValueError) as error:
        reason = describe_read_error(error)
        return FoundServers(source.agent, origin, {}, (), (f"{origin} can't be read: {reason}",))
    entries = _list_entries(source, content, folder)
    servers, problems = parse_servers(entries, origin)
    return FoundServers(source.agent, origin, entries, tuple(servers), tuple(problems))


def _list_entries(source: AgentFile, content: Any, folder: Path) -> dict[str, Any]:
    """List the entries that may be servers, with what this agent means by them."""
    found = _get_mapping(content, source.key)
    if source.agent == "claude":
        # Servers that were added in a folder are stored under its path, and count there only.
        project = _get_mapping(_get_mapping(content, "projects"), str(folder))
        found |= _get_mapping(project, SERVERS_KEY)
    entries = {}
    for name, entry in found.items():
        if isinstance(entry, Mapping):
            if entry.get("type") in _OWN_TYPES:
                continue
            entry = dict(entry)
            if source.agent == "gemini" and "url" in entry:
                entry.setdefault("type", "sse")  # `httpUrl` is the one for streamable HTTP
        entries[str(name)] = entry
    return entries


def _get_mapping(value: Any, key: str) -> dict[str, Any]:
    """Return a mapping within a mapping, or an empty one if there is none."""
    if not isinstance(value, Mapping):
        return {}
    inner = value.get(key)
    return dict(inner) if isinstance(inner, Mapping) else {}
