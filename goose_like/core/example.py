"""Worked examples of tools, for the smallest models."""

from collections.abc import Mapping

from goose_like.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ExampleCall:
    """A call in an example, with the output of the tool."""

    tool: str
    arguments: Mapping[str, str]
    output: str


@dataclass(frozen=True, slots=True)
class Example:
    """A task of a person, the calls for it, and the answer."""

    task: str
    calls: tuple[ExampleCall, ...]
    answer: str
