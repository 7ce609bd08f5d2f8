"""Descriptions of components as tests write them."""

from pathlib import Path
from textwrap import dedent, indent

from goose_like_toolkits.components.described.definition import Command, Definition, read_definition

HEAD = """\
group_id: org.example.shop
artifact_id: stock
version: 0.1.0
type: plugin
as_plugin: true
info:
  title: Stock
  description: Knows what is in store.
setup:
  package: example.stock
"""


def component(folder: Path, body: str = "", head: str = HEAD, name: str = "config.yaml") -> Path:
    """A config.yaml with that text after its head."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(head + dedent(body))
    return file


def commands(folder: Path, text: str) -> Path:
    """A config.yaml with these commands, each an item of the list."""
    return component(folder, "commands:\n" + indent(dedent(text), "  "))


def defined(file: Path) -> Definition:
    """The definition in a file without faults."""
    reading = read_definition(file)
    assert reading.value is not None, "\n".join(map(str, reading.diagnostics))
    return reading.value


def parameter_of(folder: Path, text: str) -> Command:
    """A command with that parameter."""
    body = "- command_name: do\n  description: Does it.\n  parameter:\n" + indent(dedent(text), "    ")
    return defined(commands(folder, body)).commands[0]


def told(file: Path) -> list[tuple[int | None, str, bool]]:
    """The faults in a file: line, text, whether it is a remark."""
    return [(fault.line, fault.text, fault.is_warning) for fault in read_definition(file).diagnostics]
