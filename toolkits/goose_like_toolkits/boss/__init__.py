"""The boss flow: work that outlasts one conversation, by a planner, a controller, executors and memory in files."""

from importlib import import_module
from typing import Any

_FLOWS = (
    "AbstractBossFlow",
    "AtomicFlow",
    "CircularFlow",
    "CtrlExMemFlow",
    "FlowLauncher",
    "SequentialFlow",
)


def __getattr__(name: str) -> Any:
    """The names of the Python API, imported when they are first asked for: commands need none of them."""
    if name not in _FLOWS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".flows", __name__), name)
