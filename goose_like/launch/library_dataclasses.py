"""Dataclasses of the libraries that each start imports, made by our decorator: that spares a twentieth of a start."""

import dataclasses
from typing import Any

from goose_like.core.dataclass import dataclass

_PACKAGES = ("annotated_types", "anyio", "h11", "httpx2", "pydantic")
_OPTIONS = frozenset(["frozen", "slots"])


def hasten_dataclasses() -> None:
    """Let our decorator make the dataclasses of these packages. Call this before they are imported.

    All other classes, and those with an option that ours does not have, are made by the standard library. This is for
    processes of the command: a program that imports goose_like keeps the decorator as it is.
    """
    make_with_library = dataclasses.dataclass

    def make(cls: type | None = None, /, **options: Any) -> Any:
        if cls is None:
            return lambda cls: make(cls, **options)
        package, _, _ = cls.__module__.partition(".")
        if package in _PACKAGES and options.keys() <= _OPTIONS:
            return dataclass(cls, **options)
        return make_with_library(cls, **options)

    setattr(dataclasses, "dataclass", make)  # noqa: B010
