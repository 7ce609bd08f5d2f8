"""The counts of tokens and searches in the wire format of Anthropic's messages."""

from collections.abc import Mapping

from goose_like.core.message import Usage

from .wire import read_count, read_object

_COUNT_KEYS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")

_LONG_WRITES = "ephemeral_1h_input_tokens"

_SEARCHES = "web_search_requests"


def read_counts(usage: object) -> dict[str, int]:
    """Read the counts that are in the `usage` of an answer or an event."""
    counts = read_object(usage)
    found = {}
    for key in _COUNT_KEYS:
        if counts.get(key) is not None:
            found[key] = read_count(counts[key])
    written = counts.get("cache_creation")
    if isinstance(written, Mapping):
        found[_LONG_WRITES] = read_count(written.get(_LONG_WRITES))
    server_tools = counts.get("server_tool_use")
    if isinstance(server_tools, Mapping):
        found[_SEARCHES] = read_count(server_tools.get(_SEARCHES))
    return found


def read_usage(usage: object) -> Usage:
    """Read the `usage` of an answer or an event. Unreadable counts are zero."""
    return build_usage(read_counts(usage))


def build_usage(counts: Mapping[str, int]) -> Usage:
    """Build the usage from counts by their names in the API."""
    read = counts.get("cache_read_input_tokens", 0)
    written = counts.get("cache_creation_input_tokens", 0)
    return Usage(
        input_tokens=counts.get("input_tokens", 0) + read + written,
        output_tokens=counts.get("output_tokens", 0),
        cache_read_tokens=read,
        cache_write_tokens=written,
        cache_write_long_tokens=min(counts.get(_LONG_WRITES, 0), written),
        web_searches=counts.get(_SEARCHES, 0),
    )
