"""What the model gets of MCP servers."""

from collections.abc import Sequence

from goose_like.core.message import ToolSpec

DEFAULT_TOKENS = 2_000
"""What all servers together add to the first request at most."""

ALL_TOOLS = ("*",)
"""The patterns of a profile that picks no tools."""


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
