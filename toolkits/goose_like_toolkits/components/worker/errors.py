"""Errors of components, encoded for goose_like: type, text, and the places in the component's own code."""

import importlib
import re
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

_HIDDEN = (str(Path(__file__).parent), str(Path(importlib.__file__).parent), "<frozen")
_MAX_FRAMES = 5
_MAX_CHARACTERS = 10_000
NO_NETWORK = "there is no network here: set `network: true` in the profile, or give --sandbox workspace+network"


def describe_error(error: BaseException, has_network: bool = True) -> dict[str, Any]:
    """Encode an error. Never raise, whatever the methods of the error do."""
    kind = type(error).__name__
    try:
        text = str(error) or kind
        notes = list(map(str, getattr(error, "__notes__", ())))
    except BaseException:
        text = "(its text can't be read)"
        notes = []
    if isinstance(error, ModuleNotFoundError) and _is_package_missing(error):
        notes.append("if pip brings it, name it in `setup.pip` of config.yaml")
    if not has_network and _needs_network(error):
        notes.append(NO_NETWORK)
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}..."
    frames = []
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.filename.startswith(_HIDDEN):
            frames.append(f"{frame.filename}:{frame.lineno} in {frame.name}")
    return {"type": kind, "message": "\n".join([text, *notes]), "frames": frames[-_MAX_FRAMES:]}


def _is_package_missing(error: ModuleNotFoundError) -> bool:
    """Check whether the whole package is missing, and not only a module of it."""
    if not error.name:
        return False
    package = error.name.partition(".")[0]
    return package not in sys.modules


def _needs_network(error: BaseException | None) -> bool:
    """Check whether an error or one of its causes is a failed connection."""
    for _ in range(20):
        if error is None:
            return False
        if isinstance(error, socket.gaierror | ConnectionError):
            return True
        about = f"{type(error).__name__} {error}"
        if re.search("Connect|DNS|unreachable", about):
            return True
        error = error.__cause__ or error.__context__
    return False
