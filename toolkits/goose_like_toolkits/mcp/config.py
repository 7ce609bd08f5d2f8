"""The servers that a profile, a person, bundles and a project configure, and the values of the variables in them."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from goose_like.config.bundles import Bundle, list_bundles
from goose_like.config.foreign_text import parse_json
from goose_like.config.paths import describe_read_error, shorten_home
from goose_like.config.secrets import find_key, is_secret_variable
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import UsageError
from goose_like.core.masking import add_secret
from goose_like.core.pattern import compile_later
from goose_like.core.spelling import did_you_mean

from .places import PROJECT_FILE, find_personal_file, read_personal_text
from .server import KNOWN_KEYS, ServerConfig, parse_entry

SERVERS_KEY = "mcpServers"
"""The key of the servers in both files, as in those of other agents."""

PROFILE_ORIGIN = "the profile"

SETTINGS = ("definition_tokens", "tools")
"""The keys of the toolkit's `config:` that are no servers."""

_VARIABLE = compile_later(r"\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}")
"""A place for a variable, with the text that stands for a missing one. Some agents write `env:` before the name."""


def load_servers(
    config: Mapping[str, Any],
    project: ProjectConfig | None,
    read_personal: Callable[[], str | None] = read_personal_text,
) -> tuple[list[ServerConfig], list[str]]:
    """Load the servers of a session in a stable order, and the problems as sentences.

    The profile comes first, then the person's file, then bundles, then the project's file. The first server of a name
    is used: a project never replaces a server of the person. `config` is that of the toolkit, `project` holds trusted
    files, and `read_personal` returns the text of the person's file.
    """
    servers: dict[str, ServerConfig] = {}
    loaded, problems = _load_profile(config)
    for load in (_load_personal(read_personal), _load_bundles(), load_project_servers(project)):
        loaded += load[0]
        problems += load[1]
    for server in loaded:
        first = servers.setdefault(server.name, server)
        if first.fingerprint != server.fingerprint:
            text = f"{server.origin}: the server {server.name!r} is not used: {first.origin} has one of this name"
            problems.append(text)
    return list(servers.values()), problems


def parse_servers(entries: object, origin: str, *, root: str = "") -> tuple[list[ServerConfig], list[str]]:
    """Parse servers by name, and the problems of those that are left out. `root` is the folder of a project's file."""
    if not isinstance(entries, Mapping):
        return [], [f"{origin}: expected servers by name in `{SERVERS_KEY}`"]
    servers = []
    problems = []
    for name, entry in entries.items():
        try:
            server = parse_entry(str(name), entry, origin, is_projects=bool(root))
        except ValueError as error:
            problems.append(f"{origin}: the server {str(name)!r} is left out: {error}")
            continue
        if server is None:
            continue
        if root and server.transport == "stdio":
            # The same command is another program in another project.
            folder = Path(root, server.folder)
            server = replace(server, folder=str(folder))
        servers.append(server)
    return servers, problems


def read_servers_text(text: str, origin: str, *, root: str = "") -> tuple[list[ServerConfig], list[str]]:
    """Read the servers of a JSON file in the format of other agents: `{"mcpServers": {NAME: {...}}}`."""
    try:
        content = parse_json(text)
    except ValueError as error:
        return [], [f"{origin} is no JSON: {error}"]
    if not isinstance(content, Mapping):
        return [], [f"{origin}: expected an object with `{SERVERS_KEY}`"]
    if content and SERVERS_KEY not in content:
        first = next(iter(content))
        return [], [f"{origin}: write the servers below `{SERVERS_KEY}`; the file begins with {first!r}"]
    return parse_servers(content.get(SERVERS_KEY, {}), origin, root=root)


def list_variables(server: ServerConfig) -> dict[str, bool]:
    """List the variables that a server's configuration names, and whether each has a text that replaces it."""
    found: dict[str, bool] = {}
    if server.is_literal:
        return found
    for text in _list_texts(server):
        for name, default in _VARIABLE.findall(text):
            has_default = default != "" or f"${{{name}:-" in text
            found[name] = has_default and found.get(name, True)
    return found


def expand_server(server: ServerConfig) -> ServerConfig:
    """Return the server with the values of its variables, and with `~` replaced. Its fingerprint is another one.

    Values come from the environment, and for a person's server also from the stored keys. A project's server never
    gets stored keys. Values that look like secrets are masked from now on.

    Raises:
        UsageError: a variable has no value; the text names it.
    """
    if server.is_literal:
        return server
    expand = _Expansion(server)
    command = tuple(map(expand.text, server.command))
    if command:
        command = (os.path.expanduser(command[0]), *command[1:])
    expanded = replace(
        server,
        command=command,
        variables=expand.values(server.variables),
        folder=os.path.expanduser(expand.text(server.folder)),
        url=expand.text(server.url),
        headers=expand.values(server.headers),
        client_id=expand.text(server.client_id),
        client_secret=expand.text(server.client_secret),
    )
    for name, value in expanded.variables.items():
        if is_secret_variable(name):
            add_secret(name, value)
    for name, value in expanded.headers.items():
        if is_secret_variable(name.replace("-", "_")) or name.lower() == "authorization":
            # Behind the word for the scheme, such as `Bearer`.
            add_secret(name, value.rpartition(" ")[2])
    add_secret("client_secret", expanded.client_secret)
    return expanded


class _Expansion:
    """The replacement of variables in the texts of one server."""

    def __init__(self, server: ServerConfig) -> None:
        self._server = server

    def values(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {name: self.text(text) for name, text in texts.items()}

    def text(self, text: str) -> str:
        return _VARIABLE.sub(self._replace, text)

    def _replace(self, match: "re.Match[str]") -> str:
        name = match[1]
        value = os.environ.get(name, "")
        if not value and not self._server.is_projects:
            value = find_key(name)
        if value:
            return value
        if match[2] is not None:
            return match[2]
        raise UsageError(_describe_missing(self._server, name))


def _describe_missing(server: ServerConfig, name: str) -> str:
    text = f"the server {server.name!r} needs {name}, which is not set: export {name}=..."
    if server.is_projects:
        return text
    return f"{text}, or store it: goose-like mcp login {server.name}"


def _list_texts(server: ServerConfig) -> list[str]:
    return [
        *server.command,
        *server.variables.values(),
        server.folder,
        server.url,
        *server.headers.values(),
        server.client_id,
        server.client_secret,
    ]


def _load_profile(config: Mapping[str, Any]) -> tuple[list[ServerConfig], list[str]]:
    """Load the servers of the profile. A misspelt key leaves a server out: it may be one that narrows its tools."""
    entries = {}
    problems = []
    for name, entry in config.items():
        if name in SETTINGS:
            continue
        unknown = []
        if isinstance(entry, Mapping):
            unknown = [key for key in map(str, entry) if key not in KNOWN_KEYS]
        if unknown:
            hint = did_you_mean(unknown[0], KNOWN_KEYS)
            problems.append(f"{PROFILE_ORIGIN}: the server {name!r} is left out: unknown key {unknown[0]!r}; {hint}")
        else:
            entries[name] = entry
    servers, more = parse_servers(entries, PROFILE_ORIGIN)
    return servers, [*problems, *more]


def _load_personal(read: Callable[[], str | None]) -> tuple[list[ServerConfig], list[str]]:
    origin = shorten_home(str(find_personal_file()))
    try:
        text = read()
    except (OSError, ValueError) as error:
        return [], [f"{origin} can't be read: {describe_read_error(error)}"]
    if text is None:
        return [], []
    return read_servers_text(text, origin)


def _load_bundles() -> tuple[list[ServerConfig], list[str]]:
    servers: list[ServerConfig] = []
    problems: list[str] = []
    for bundle in list_bundles():
        entries = bundle.read_part("servers")
        if not entries:
            continue
        found, more = parse_bundle_servers(bundle, entries)
        servers += found
        problems += more
    return servers, problems


def parse_bundle_servers(bundle: Bundle, entries: Mapping[str, Any]) -> tuple[list[ServerConfig], list[str]]:
    """Parse the servers of a bundle, which get its variables. They get no stored keys, like those of a project."""
    origin = f"the bundle {bundle.name}"
    servers: list[ServerConfig] = []
    problems: list[str] = []
    for name, entry in entries.items():
        try:
            server = parse_entry(name, bundle.fill_all(entry), origin, is_projects=True)
        except ValueError as error:
            problems.append(f"{origin}: the server {name!r} is left out: {error}")
            continue
        if server is None:
            continue
        if server.transport == "stdio":
            variables = {**server.variables, **bundle.variables}
            server = replace(server, variables=variables, data_folder=str(bundle.data))
        servers.append(replace(server, is_literal=bundle.layout == "agent-plugins"))
    return servers, problems


def load_project_servers(project: ProjectConfig | None) -> tuple[list[ServerConfig], list[str]]:
    """Load the servers of a project's file, and the problems of those that are left out."""
    if project is None or PROJECT_FILE not in project.files:
        return [], []
    return read_servers_text(project.files[PROJECT_FILE], PROJECT_FILE, root=str(project.root))
