"""The reach of a server: what it runs or asks, and what it gets, for the person who adds or trusts it."""

import os
import re
import shlex
from urllib.parse import urlsplit

from goose_like.config.profile import Profile
from goose_like.config.secrets import find_key_location, is_secret_variable
from goose_like.config.trust import ProjectConfig
from goose_like.terminal.escape import escape_invisible
from goose_like.workspace.permissions.policy import effective_sandbox

from .config import list_variables, load_project_servers
from .server import ServerConfig

_INSTALLERS = {"npx": "npm install -g", "uvx": "uv tool install", "pipx": "pipx install"}
"""Programs that download what they run, and how to install it instead."""

_HOST = re.compile(r"https?://([\w.-]+)")


def describe_command(server: ServerConfig) -> str:
    """Return what a server runs, or its address. Variables are not replaced."""
    if server.transport == "stdio":
        return escape_invisible(shlex.join(server.command))
    return escape_invisible(server.url)


def describe_project(project: ProjectConfig) -> list[str]:
    """Describe in lines what the servers of a project run, ask and get, and which of them are left out."""
    servers, problems = load_project_servers(project)
    lines: list[str] = []
    for server in servers:
        lines += describe_for_trust(server)
    return [*lines, *map(escape_invisible, problems)]


def describe_for_trust(server: ServerConfig) -> list[str]:
    """Describe a server of a project in lines, for the person who decides about trust: all that it runs and gets."""
    verb = "runs" if server.transport == "stdio" else "is at"
    lines = [f"server {escape_invisible(server.name)!r} {verb}: {describe_command(server)}"]
    hosts = _list_hosts(server)
    if hosts and server.transport == "stdio":
        lines.append(f"  names the hosts: {', '.join(hosts)}")
    variables = describe_variables(server)
    if variables:
        lines.append(f"  gets your variables: {', '.join(variables)}")
    given = [escape_invisible(name) for name in (*server.variables, *server.headers)]
    if given:
        lines.append(f"  sets: {', '.join(given)}")
    return lines


def describe_variables(server: ServerConfig) -> list[str]:
    """Describe the variables that a server takes from the person, each with what it is: a secret, or missing."""
    described = []
    for name, has_default in list_variables(server).items():
        notes = []
        has_value = bool(os.environ.get(name))
        if not has_value and not server.is_projects:
            has_value = bool(find_key_location(name))
        if is_secret_variable(name):
            notes.append("a secret")
        if not has_value:
            notes.append("not set, has a default" if has_default else "not set")
        described.append(f"{name} ({', '.join(notes)})" if notes else name)
    return described


def describe_reach(server: ServerConfig, profile: Profile) -> list[str]:
    """Describe in lines what a server may reach in a session with this profile."""
    variables = describe_variables(server)
    if server.transport != "stdio":
        lines = [f"asks: {describe_command(server)}"]
        sent = [escape_invisible(name) for name in server.headers]
        if sent:
            lines.append(f"sends: the headers {', '.join(sent)}; calls and their arguments")
        else:
            lines.append("sends: calls and their arguments")
        if variables:
            lines.append(f"variables: {', '.join(variables)}")
        return lines
    lines = [f"runs: {describe_command(server)}", f"files: {_describe_files(profile)}"]
    lines.append(f"hosts: {_describe_hosts(profile)}")
    given = [escape_invisible(name) for name in server.variables]
    own = ", ".join(given) if given else "none of its own"
    lines.append(f"variables: {own}, and those of commands; none of goose-like's keys")
    if variables:
        lines.append(f"takes from you: {', '.join(variables)}")
    return lines


def advise_install(server: ServerConfig) -> str:
    """Advise to install a program that a downloader would fetch anew in each session; empty for other programs."""
    if not server.command:
        return ""
    program = os.path.basename(server.command[0])
    if program not in _INSTALLERS:
        return ""
    words = [word for word in server.command[1:] if not word.startswith("-") and word != "run"]
    package = escape_invisible(words[0]) if words else "PACKAGE"
    return (
        f"{program} keeps nothing in the sandbox, so each session downloads {package} again; for a quick start: "
        f"{_INSTALLERS[program]} {package}, and add the program that this installs"
    )


def _list_hosts(server: ServerConfig) -> list[str]:
    """List the hosts in the texts of a server."""
    found: dict[str, None] = {}
    for text in (*server.command, *server.variables.values(), server.url):
        found.update(dict.fromkeys(_HOST.findall(text)))
    if server.url:
        found[urlsplit(server.url).hostname or server.url] = None
    return list(found)


def _describe_files(profile: Profile) -> str:
    match effective_sandbox(profile.sandbox, profile.approval):
        case "full":
            return "all of yours: this profile has no sandbox"
        case "read-only":
            reads = "reads this folder and the system, writes nothing"
        case _:
            reads = "reads this folder and the system, writes in this folder"
    if profile.paths.read:
        reads = f"{reads}; also reads {', '.join(profile.paths.read)}"
    return f"{reads} (sandbox `{profile.sandbox}`)"


def _describe_hosts(profile: Profile) -> str:
    mode = effective_sandbox(profile.sandbox, profile.approval)
    if mode in ("workspace+network", "full"):
        return "all"
    allowed = ", ".join(profile.network.allow)
    if allowed:
        return f"{allowed}; goose-like asks about each other one"
    return "goose-like asks about each one"
