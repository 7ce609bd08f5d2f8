"""The command `mcp test`."""

import sys

from goose_like.core.errors import GooseLikeError
from goose_like.terminal.escape import escape_invisible
from goose_like.terminal.interaction import confirm

from ..definitions import Definitions, DefinitionStore
from ..drift import find_drift
from ..server import ServerConfig
from .report import print_lines, print_offer
from .setting import ask_server, load_setting


def try_server(name: str, profile_name: str | None, *, is_accepted: bool) -> None:
    """Start a server, print what it offers, and keep that. The person decides about what changed.

    Raises:
        GooseLikeError: it does not start, or the person does not accept what changed.
    """
    setting = load_setting(profile_name)
    server = setting.find(name)
    print("starting it ..." if server.transport == "stdio" else "asking it ...", file=sys.stderr)
    definitions = ask_server(server, setting)
    print_offer(server, definitions)
    known = DefinitionStore().load(server)
    if known is not None and not is_accepted:
        _check_drift(server, known, definitions)
    DefinitionStore().save(server, definitions)


def _check_drift(server: ServerConfig, known: Definitions, definitions: Definitions) -> None:
    """Show what changed, and ask about it.

    Raises:
        GooseLikeError: the person does not accept it, or nobody is there.
    """
    drift = find_drift(known, definitions)
    if not drift:
        return
    print(f"it changed since you accepted it ({drift.describe()}):")
    print_lines([escape_invisible(line) for line in drift.lines])
    advice = f"what changed is not used; to accept it: goose-like mcp test {server.name} --accept"
    if not confirm("Use it as it is now?"):
        raise GooseLikeError(advice)
