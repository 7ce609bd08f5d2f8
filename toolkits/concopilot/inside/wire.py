"""The calls that the stage makes to its host."""

from collections.abc import Callable
from typing import Any

Caller = Callable[..., Any]
_caller: list[Caller] = []


def connect(caller: Caller) -> None:
    """Says what takes calls from now on: `caller(method, **params)`, which blocks until there is an answer."""
    _caller[:] = [caller]


def call(method: str, **params: Any) -> Any:
    """What the host answers.

    Raises:
        ConnectionError: when this process has no host.
    """
    if not _caller:
        raise ConnectionError(f"not connected: {method!r} needs the program that runs the components")
    return _caller[0](method, **params)
