"""What went wrong in a component, for the host: in words, with the places in the component's own code."""

import importlib
import traceback
from pathlib import Path
from typing import Any

_OURS = str(Path(__file__).parent)
_IMPORTING = str(Path(importlib.__file__).parent)
_FRAMES = 5


def told(error: BaseException) -> dict[str, Any]:
    """Its type, its words and where it came up, innermost last."""
    try:
        words, notes = str(error) or type(error).__name__, [str(note) for note in getattr(error, "__notes__", ())]
    except BaseException:  # its own `__str__` is broken
        words, notes = "(it can't say what)", []
    frames = [
        f"{frame.filename}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_OURS, _IMPORTING, "<frozen"))
    ]
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] != "concopilot":
        words += "; if pip brings it, name it in `setup.pip` of config.yaml"
    return {"type": type(error).__name__, "message": "\n".join([words, *notes]), "frames": frames[-_FRAMES:]}
