"""What the model gets of MCP servers."""

from collections.abc import Sequence
from hashlib import sha256

from goose_like.core.message import ToolSpec
from goose_like.core.pattern import compile_later

DEFAULT_TOKENS = 2_000
"""What all servers together add to the first request at most."""

ALL_TOOLS = ("*",)
"""The patterns of a profile that picks no tools."""


MAX_NAME_CHARACTERS = 64
"""The longest name of a tool that all vendors take."""

_OTHER_CHARACTER = compile_later(r"[^A-Za-z0-9_-]")
_HASH_DIGITS = 6


class OfferedTool:
    """A tool whose definition the model gets. `name` is the server's own, and `spec` has the one for the model."""

    def __init__(self, server: str, name: str, spec: ToolSpec) -> None:
        self.server = server
        self.name = name
        self.spec = spec


class Offer:
    """What the model gets: the tools that are sent, and the text for the prompt. With `has_search`, two more tools.

    The model's own server may search the `deferred` ones. It then does so in place of these two tools, unless other
    tools may come later (`has_later`). With `has_unknown`, a server has no stored definitions. With `has_resources` the
    model gets the tool that reads them.
    """

    def __init__(
        self,
        prompt: str = "",
        sent: Sequence[OfferedTool] = (),
        deferred: Sequence[OfferedTool] = (),
        *,
        has_search: bool = False,
        has_later: bool = False,
        has_unknown: bool = False,
        has_resources: bool = False,
    ) -> None:
        self.prompt = prompt
        self.sent = sent
        self.deferred = deferred
        self.has_search = has_search
        self.has_later = has_later
        self.has_unknown = has_unknown
        self.has_resources = has_resources


def name_tool(server: str, tool: str) -> str:
    """Return the name of a tool for the model: `mcp__SERVER__TOOL`.

    A name that had to be changed or cut ends with a hash of the original, so that no other tool ever has it, whatever
    the servers list later.
    """
    plain = f"mcp__{server}__{tool}"
    is_ambiguous = "__" in server or server.endswith("_")
    is_clean = plain.isascii() and plain.replace("-", "_").isidentifier()
    is_unchanged = is_clean and len(plain) <= MAX_NAME_CHARACTERS
    if is_unchanged and not is_ambiguous:
        return plain
    digest = sha256(f"{server}\0{tool}".encode(errors="replace")).hexdigest()[:_HASH_DIGITS]
    clean = _OTHER_CHARACTER.sub("_", plain)
    return f"{clean[: MAX_NAME_CHARACTERS - _HASH_DIGITS - 1]}_{digest}"
