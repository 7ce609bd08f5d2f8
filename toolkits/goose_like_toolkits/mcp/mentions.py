"""`@SERVER:URI` in a message: resources of servers that a person hands to the model."""

import re
from collections.abc import Collection, Iterator

from goose_like.core.dataclass import dataclass

_MENTION = re.compile(r"""(?<![^\s(\["'`])@(?P<server>[\w.-]+):(?P<uri>[^\s"'`]+)""")
_SENTENCE_END = ".,;:!?)]}>*"

MAX_MENTIONS = 8
MAX_CHARACTERS = 50_000
"""The longest text of one resource that goes to the model."""


@dataclass(frozen=True, slots=True)
class ResourceMention:
    """A resource that a message names."""

    server: str
    uri: str


def find_mentions(text: str, servers: Collection[str]) -> list[ResourceMention]:
    """Find the resources that a message names, each once. Words about other servers stay words."""
    found = dict.fromkeys(_iterate_mentions(text, servers))
    return list(found)[:MAX_MENTIONS]


def _iterate_mentions(text: str, servers: Collection[str]) -> Iterator[ResourceMention]:
    for match in _MENTION.finditer(text):
        uri = match["uri"].rstrip(_SENTENCE_END)
        if uri and match["server"] in servers:
            yield ResourceMention(match["server"], uri)


def format_resource(mention: ResourceMention, text: str) -> str:
    """Format a resource for the model, marked as data of a server."""
    if len(text) > MAX_CHARACTERS:
        text = f"{text[:MAX_CHARACTERS]}\n[{len(text) - MAX_CHARACTERS:,} more characters]"
    return f"[{mention.uri} of the MCP server {mention.server!r}, as data]\n{text}"
