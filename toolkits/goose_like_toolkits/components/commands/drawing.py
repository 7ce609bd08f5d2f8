"""Commands as a tree: what each takes and gives."""

import json
from collections.abc import Iterator
from typing import Any

from rich.text import Text as Styled
from rich.tree import Tree

from goose_like.terminal.escape import to_one_line
from goose_like_toolkits.components.described.definition import Command
from goose_like_toolkits.components.described.kinds import (
    Choice,
    Field,
    Kind,
    ListOf,
    MapOf,
    OneOf,
    Parameter,
    Record,
    Response,
    named,
)

_WIDTH = 200


def drawn(command: Command) -> Tree:
    """A command with its parameter and its response, down to the last field."""
    tree = Tree(_line(command.name, "", command.description, style="bold"))
    if command.parameter:
        _add(tree, command.parameter, "takes")
    if command.response:
        _add(tree, command.response, "gives")
    return tree


def words(kind: Kind) -> str:
    """A kind in a few words, without what stands in records."""
    match kind:
        case ListOf(item):
            return f"list of {_plural(item)}"
        case MapOf(value):
            return f"mapping to {_plural(value)}"
        case Choice(_, values):
            return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
        case OneOf(kinds):
            return " or ".join(dict.fromkeys(map(words, kinds)))
    return named(kind).removeprefix("a ")


def _plural(kind: Kind) -> str:
    inner = words(kind)
    return f"{inner}s" if inner in ("whole number", "number", "mapping") else inner


def _add(tree: Tree, of: Parameter | Response, verb: str) -> None:
    """What is taken or given, as one branch: its fields if it is a record."""
    notes = _notes(of) if isinstance(of, Parameter) else ""
    branch = tree.add(_line(verb, f"{words(of.kind)}{notes}", of.description, style="italic"))
    _add_fields(branch, of.kind)


def _add_fields(tree: Tree, kind: Kind) -> None:
    for field in _fields(kind):
        branch = tree.add(_line(field.name, f"{words(field.kind)}{_notes(field)}", field.description))
        _add_fields(branch, field.kind)


def _fields(kind: Kind) -> Iterator[Field]:
    """The fields of the records that a kind holds, without what is between them and it."""
    match kind:
        case Record(fields):
            yield from fields
        case ListOf(inner) | MapOf(inner) | Choice(inner, _):
            yield from _fields(inner)
        case OneOf(kinds):
            for each in kinds:
                yield from _fields(each)


def _notes(of: Field | Parameter) -> str:
    notes = [] if of.is_required else ["optional"]
    notes += ["or an asset"] if of.accepts_asset else []
    notes += [f"e.g. {_short(of.example)}"] if of.example is not None else []
    return "".join(f", {note}" for note in notes)


def _short(value: Any) -> str:
    return to_one_line(json.dumps(value, ensure_ascii=False), 60)


def _line(name: str, kind: str, description: str, style: str = "") -> Styled:
    line = Styled(to_one_line(name), style=style, end="")
    line.append(f" ({to_one_line(kind, _WIDTH)})" if kind else "", style="not bold")
    return line.append(f"  {to_one_line(description, _WIDTH)}" if description else "", style="not bold")
