"""The boss flow for long goals: a planner, a controller, executors, and memory in files."""

from importlib import import_module
from typing import Any

__all__ = ["AbstractBossFlow", "AtomicFlow", "CircularFlow", "CtrlExMemFlow", "FlowLauncher", "SequentialFlow"]


def __getattr__(name: str) -> Any:
    # The command imports this package at every start and needs none of these classes, so import them on first use.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".aiflows.api", __name__), name)


def __dir__() -> list[str]:
    return __all__
