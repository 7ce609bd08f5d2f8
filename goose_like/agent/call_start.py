"""The start of a tool call, as people see it: its kind, a title in one line, and the paths that it names."""

import os.path
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from goose_like.core.events import ToolStarted
from goose_like.core.history import History
from goose_like.core.masking import mask_text
from goose_like.core.message import ToolCall
from goose_like.core.tool import Tool, ToolOptions

MAX_TITLE_CHARS = 100


def start_call(call: ToolCall, tools: Mapping[str, Tool], history: History) -> ToolStarted:
    """Create the event for the start of a call, also of a tool that does not exist."""
    options = tools[call.name].options if call.name in tools else ToolOptions()
    arguments = call.parse_arguments()
    folder = history.header.cwd if history.header else ""
    paths = _list_paths(options.paths, arguments, folder)
    title = options.fill_title(call.name, arguments)
    return ToolStarted(
        call=call,
        kind=options.find_kind(),
        title=_shorten(title),
        paths=tuple(dict.fromkeys(paths)),
    )


def _list_paths(names: Sequence[str], arguments: Mapping[str, Any], folder: str) -> Iterator[str]:
    """Yield the absolute paths in these arguments, which are texts or lists of texts."""
    for name in names:
        value = arguments.get(name)
        paths = value if isinstance(value, list) else [value]
        for path in paths:
            if isinstance(path, str) and path.strip():
                absolute = os.path.join(folder, os.path.expanduser(path))
                yield os.path.normpath(absolute)


def _shorten(title: str) -> str:
    """Join the lines of a title and cut it."""
    masked = mask_text(title)  # before the cut: a part of a secret would not be recognized
    text = " ".join(masked.split())
    if len(text) <= MAX_TITLE_CHARS:
        return text
    return f"{text[: MAX_TITLE_CHARS - 1]}…"
