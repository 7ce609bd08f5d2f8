"""The commands `mcp add` and `mcp remove`."""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.terminal.escape import escape_invisible

from ..agent_files import find_agent_servers
from ..config import list_variables
from ..definitions import DefinitionStore
from ..login import SessionAuth, forget_login
from ..personal_file import add_entries, remove_entry
from ..reach import advise_install, describe_reach, describe_variables
from ..server import ServerConfig, parse_entry
from .report import print_lines, print_offer
from .setting import Setting, ask_server, load_setting

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_OPTIONS = ("--env", "--header", "--transport", "--client-id", "--from", "--no-start")
_NOT_ADDED = "so it is not added (to add it anyway: --no-start)"


@dataclass(frozen=True, slots=True)
class AddOptions:
    """The options of `mcp add`, as they were typed."""

    env: Sequence[str] = ()
    header: Sequence[str] = ()
    transport: str | None = None
    client_id: str = ""
    is_started: bool = True


def add_server(name: str, words: Sequence[str], options: AddOptions) -> None:
    """Show what a server may reach, start it once, and add it to the person's own if that works.

    Raises:
        UsageError: the words describe no server, or there is one of this name.
        GooseLikeError: it does not start.
    """
    entry = build_entry(name, words, options)
    setting = load_setting()
    if any(server.name == name for server in setting.servers):
        origin = setting.find(name).origin
        text = f"there is a server {name!r} already, from {origin}; take another name, or: goose-like mcp remove {name}"
        raise UsageError(text)
    server = _parse(name, entry)
    print(f"{name}:")
    print_lines(describe_reach(server, setting.profile))
    if advice := advise_install(server):
        print(f"note: {advice}", file=sys.stderr)
    missing = _list_missing(server)
    if missing or not options.is_started:
        file = add_entries({name: entry})
        print(f"added to {file}; not started yet")
        if missing:
            print(f"it needs {', '.join(missing)}; store the value: goose-like mcp login {name}", file=sys.stderr)
        return
    _start_and_add(server, entry, setting)


def _start_and_add(server: ServerConfig, entry: dict[str, Any], setting: Setting) -> None:
    """Start a server once, keep what it offers, and add it. One that only wants a login is added too."""
    name = server.name
    auths: list[SessionAuth] = []

    def find_auth(expanded: ServerConfig) -> SessionAuth:
        auth = SessionAuth(expanded)
        auths.append(auth)
        return auth

    print("starting it ..." if server.transport == "stdio" else "asking it ...", file=sys.stderr)
    try:
        definitions = ask_server(server, setting, find_auth)
    except GooseLikeError as error:
        if any(auth.wants_login for auth in auths):
            file = add_entries({name: entry})
            print(f"added to {file}; it wants a login first: goose-like mcp login {name}")
            return
        raise GooseLikeError(f"{escape_invisible(str(error))}\n{_NOT_ADDED}") from error
    file = add_entries({name: entry})
    DefinitionStore().save(server, definitions)
    print_offer(server, definitions)
    print(f"added to {file}; sessions have it from now on")


def build_entry(name: str, words: Sequence[str], options: AddOptions) -> dict[str, Any]:
    """Build the entry of the file from the words of a command line.

    Raises:
        UsageError: they describe no server; the text says how to write it.
    """
    if not name:
        raise UsageError("give a name and a command or URL: goose-like mcp add git -- mcp-server-git --repository .")
    _check_first_words(name, words)
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a server: letters, digits, `-`, `_` and `.`, at most 40")
    first = words[0]
    if "://" in first:
        return _build_url_entry(words, options)
    for option, is_given in (
        ("--header", bool(options.header)),
        ("--client-id", bool(options.client_id)),
        ("--transport", options.transport in ("http", "sse")),
    ):
        if is_given:
            raise UsageError(f"{option} is for servers at a URL, and {first!r} is none")
    _check_program(first)
    entry: dict[str, Any] = {"command": first, "args": list(words[1:])}
    variables = dict(map(_split_variable, options.env))
    if variables:
        entry["env"] = variables
    return entry


def _check_first_words(name: str, words: Sequence[str]) -> None:
    """Check for the usual mistakes: no name, no command, an unknown option."""
    if "://" in name or (name.startswith("-") and words):
        hint = "goose-like mcp add NAME URL, or goose-like mcp add NAME -- COMMAND"
        if name.startswith("-"):
            raise UsageError(f"unknown option {name!r}; {did_you_mean(name, _OPTIONS)}")
        raise UsageError(f"the name comes first: {hint}")
    if not words:
        raise UsageError(f"give the command or URL of {name!r}: goose-like mcp add {name} -- COMMAND")
    if words[0].startswith("-"):
        raise UsageError(f"unknown option {words[0]!r}; {did_you_mean(words[0], _OPTIONS)}")


def _build_url_entry(words: Sequence[str], options: AddOptions) -> dict[str, Any]:
    url, *more = words
    if more:
        raise UsageError(f"{more[0]!r} behind the URL means nothing; {did_you_mean(more[0], _OPTIONS)}")
    if options.env:
        raise UsageError("a server at a URL gets no variables; its keys go into --header 'NAME: ${VARIABLE}'")
    if options.transport == "stdio":
        raise UsageError(f"{url} is a URL, and --transport stdio is for commands")
    entry: dict[str, Any] = {"type": options.transport or "http", "url": url}
    if options.transport is None and url.partition("?")[0].endswith("/sse"):
        entry["type"] = "sse"
    headers = dict(map(_split_header, options.header))
    if headers:
        entry["headers"] = headers
    if options.client_id:
        entry["oauth"] = {"clientId": options.client_id}
    return entry


def _split_variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise UsageError(f"--env {text!r}: expected NAME=VALUE, or NAME alone for a variable of yours")
    if not equals:
        return name, f"${{{name}}}"
    return name, value


def _split_header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z0-9-]+", name.strip()):
        raise UsageError(f"--header {name!r}: expected 'NAME: VALUE', such as 'Authorization: Bearer ${{TOKEN}}'")
    return name.strip(), value.strip()


def _check_program(program: str) -> None:
    """Check that a program is there: the most common mistake is one that is not installed."""
    if "${" in program or shutil.which(os.path.expanduser(program)):
        return
    if re.fullmatch(r"[\w-]+(\.[\w-]+)+(/.*)?", program) and "/" in program:
        raise UsageError(f"there is no program {program!r}; if it is an address, begin it with https://")
    if " " in program:
        raise UsageError(f"there is no program {program!r}; write the command without quotes, behind `--`")
    raise UsageError(f"there is no program {program!r} on the PATH; install it, or give its path")


def _parse(name: str, entry: dict[str, Any]) -> ServerConfig:
    try:
        server = parse_entry(name, entry, "you")
    except ValueError as error:
        raise UsageError(str(error)) from None
    if server is None:  # an entry of ours is never switched off
        raise UsageError(f"the server {name!r} is switched off")
    return server


def _list_missing(server: ServerConfig) -> list[str]:
    """List the variables that have no value and no default."""
    described = dict(zip(list_variables(server), describe_variables(server), strict=True))
    return [name for name, text in described.items() if text.endswith("not set)")]


def import_servers(agent: str, names: Sequence[str]) -> None:
    """Copy servers from the files of another agent to the person's own, and show what each may reach.

    Raises:
        UsageError: the agent is unknown, has none, or none of these names.
    """
    setting = load_setting()
    wanted = [name for name in names if name]
    entries: dict[str, Any] = {}
    servers: list[ServerConfig] = []
    known = {server.name for server in setting.servers}
    for found in find_agent_servers(setting.folder, agent):
        for problem in found.problems:
            print(f"goose-like: {escape_invisible(problem)}", file=sys.stderr)
        for server in found.servers:
            if wanted and server.name not in wanted:
                continue
            if server.name in known:
                print(f"{escape_invisible(server.name)}: there already, so it stays as it is")
                continue
            known.add(server.name)
            servers.append(server)
            entries[server.name] = found.entries[server.name]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise UsageError(f"{agent} has no server {unknown[0]!r}")
    if not entries:
        print(f"there is no server to take over from {agent}")
        return
    for server in servers:
        print(f"{escape_invisible(server.name)}:")
        print_lines(describe_reach(server, setting.profile))
    file = add_entries(entries)
    print(f"added {len(entries)} to {file}; nothing was started: goose-like mcp test NAME")


def remove_server(name: str) -> None:
    """Remove one of the person's servers with all that is kept about it.

    Raises:
        UsageError: it is not in the person's file.
    """
    setting = load_setting()
    servers = [server for server in setting.servers if server.name == name]
    if not remove_entry(name):
        where = f"it is from {servers[0].origin}; remove it there" if servers else "see goose-like mcp list"
        raise UsageError(f"you have no server {name!r} of your own; {where}")
    for server in servers:
        DefinitionStore().forget(server)
        if server.transport != "stdio":
            forget_login(server)
    print(f"removed {name}")
