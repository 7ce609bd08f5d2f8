"""The commands `mcp list` and `mcp show`, and the text about what a server offers."""

import sys

from goose_like.config.bundles import list_broken_bundles
from goose_like.core.spelling import format_count
from goose_like.terminal.escape import escape_invisible, to_one_line
from goose_like.terminal.report_table import print_table

from ..agent_files import find_agent_servers
from ..definitions import Definitions, DefinitionStore
from ..login import load_login
from ..offer_plan import list_tools
from ..places import PROJECT_FILE
from ..reach import describe_command, describe_reach, describe_variables
from ..server import ServerConfig
from .setting import TRUST_ADVICE, Setting, load_setting

_SHOWN_CHARACTERS = 100
_MAX_SHOWN = 40


def print_servers(profile_name: str | None) -> None:
    """Print the servers of this folder in a table, and below it what is left out."""
    setting = load_setting(profile_name)
    store = DefinitionStore()
    rows = []
    for server in setting.servers:
        state = _describe_state(server, store.load(server))
        rows.append((escape_invisible(server.name), describe_command(server), state, server.origin))
    nothing = "no servers; add one: goose-like mcp add NAME -- COMMAND (or a URL)"
    print_table(("name", "runs or asks", "offers", "from"), rows, nothing)
    for note in _list_notes(setting):
        print(f"goose-like: {note}", file=sys.stderr)


def _describe_state(server: ServerConfig, definitions: Definitions | None) -> str:
    missing = [text for text in describe_variables(server) if "(not set)" in text or ", not set)" in text]
    if missing:
        return f"needs {', '.join(missing)}"
    if definitions is None:
        return "unknown until it has started"
    return describe_offer(server, definitions)


def describe_offer(server: ServerConfig, definitions: Definitions) -> str:
    """Describe what a server offers in a few words: `12 tools (3,400 tokens), 1 prompt`."""
    tools = list_tools(server, definitions)
    tokens = sum(tool.tokens for tool in tools)
    parts = [f"{format_count(len(tools), 'tool')} ({tokens:,} tokens)"]
    if definitions.prompts:
        parts.append(format_count(len(definitions.prompts), "prompt"))
    if definitions.resources:
        parts.append(format_count(len(definitions.resources), "resource"))
    return ", ".join(parts)


def _list_notes(setting: Setting) -> list[str]:
    notes = [*setting.problems, *list_broken_bundles()]
    if setting.has_untrusted_file:
        notes.append(f"this project brings {PROJECT_FILE}, which nobody trusts yet: {TRUST_ADVICE}")
    own = {server.fingerprint for server in setting.servers}
    for found in find_agent_servers(setting.folder):
        others = [server.name for server in found.servers if server.fingerprint not in own]
        if others:
            names = escape_invisible(", ".join(others))
            notes.append(f"{found.origin} has more: {names}; take over: goose-like mcp add --from {found.agent}")
    return notes


def print_server(name: str, profile_name: str | None) -> None:
    """Print what a server may reach, and what it offered last."""
    setting = load_setting(profile_name)
    server = setting.find(name)
    print(f"{escape_invisible(server.name)} (from {server.origin})")
    print_lines(describe_reach(server, setting.profile))
    if server.transport != "stdio":
        login = load_login(server)
        if login:
            print(f"  logged in at: {escape_invisible(login.issuer or server.url)}")
    if server.tools != ("*",):
        print(f"  only the tools: {', '.join(server.tools)}")
    definitions = DefinitionStore().load(server)
    if definitions is None:
        print(f"it has not started yet; start it: goose-like mcp test {server.name}")
        return
    print_offer(server, definitions)


def print_lines(lines: list[str]) -> None:
    """Print indented lines."""
    for line in lines:
        print(f"  {line}")


def print_offer(server: ServerConfig, definitions: Definitions) -> None:
    """Print the tools, prompts and resources of a server."""
    print(f"offers {describe_offer(server, definitions)}, protocol {definitions.era or 'unknown'}")
    rows = []
    for tool in list_tools(server, definitions):
        rows.append((tool.definition.name, tool.spec.description))
    for prompt in definitions.prompts:
        rows.append((f"/{server.name}:{prompt.name}", prompt.description or prompt.title))
    for resource in definitions.resources:
        rows.append((f"@{server.name}:{resource.uri}", resource.description or resource.name))
    for name, description in rows[:_MAX_SHOWN]:
        about = to_one_line(escape_invisible(description), _SHOWN_CHARACTERS)
        print(f"  {escape_invisible(name)}  {about}".rstrip())
    if len(rows) > _MAX_SHOWN:
        print(f"  and {len(rows) - _MAX_SHOWN} more")
