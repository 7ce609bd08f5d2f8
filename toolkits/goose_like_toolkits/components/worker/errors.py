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
NO_NETWORK = "there is no network here: set `network: true` in the profile, or give --sandbox workspace+network"


def describe_error(error: BaseException, has_network: bool = True) -> dict[str, Any]:
    """Encode an error. Never raise, whatever the methods of the error do."""
    try:
        text, notes = str(error) or type(error).__name__, [str(note) for note in getattr(error, "__notes__", ())]
    except BaseException:
        text, notes = "(its text can't be read)", []
    frames = [
        f"{frame.filename}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_HIDDEN)
    ]
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] not in sys.modules:
        notes.append("if pip brings it, name it in `setup.pip` of config.yaml")
    if not has_network and _needs_network(error):
        notes.append(NO_NETWORK)
    if len(text) > 10_000:
        text = f"{text[:10_000]}..."
    return {"type": type(error).__name__, "message": "\n".join([text, *notes]), "frames": frames[-_MAX_FRAMES:]}


def _needs_network(error: BaseException | None) -> bool:
    """Check whether an error or one of its causes is a failed connection."""
    for _ in range(20):
        if error is None:
            return False
        about = f"{type(error).__name__} {error}"
        if isinstance(error, socket.gaierror | ConnectionError) or re.search("Connect|DNS|unreachable", about):
            return True
        error = error.__cause__ or error.__context__
    return False
