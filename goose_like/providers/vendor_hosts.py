"""The hosts that the server of a vendor reached with its own tools within an answer."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from goose_like.config.profile import WEB_SEARCH_HOST
from goose_like.core.message import Message

from .wire import read_list, read_object

_BY = "(by the model's server)"


def list_vendor_hosts(message: Message) -> Iterator[str]:
    """Yield the hosts that receipts list. A search has no host: nobody is told which ones it reached."""
    items = message.verbatim.items if message.verbatim else ()
    for item in map(read_object, items):
        match item.get("type"):
            case "web_search_tool_result":
                if read_list(item.get("content")):
                    yield f"{WEB_SEARCH_HOST} {_BY}"
            case "web_fetch_tool_result":
                yield from _read_host(read_object(item.get("content")).get("url"))
            case "web_search_call":
                action = read_object(item.get("action"))
                if action.get("type") == "search":
                    yield f"{WEB_SEARCH_HOST} {_BY}"
                yield from _read_host(action.get("url"))


def _read_host(url: object) -> Iterator[str]:
    try:
        host = urlsplit(str(url or "")).hostname
    except ValueError:  # "http://[::1"
        return
    if host and host.isprintable():
        yield f"{host} {_BY}"
