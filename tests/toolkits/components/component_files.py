"""Components as tests write and install them."""

import shutil
from pathlib import Path
from textwrap import dedent, indent

from goose_like_toolkits.components.definition.config_file import Command, Definition
from goose_like_toolkits.components.definition.reader import read_definition
from goose_like_toolkits.components.host.repository import read_settings
from goose_like_toolkits.components.host.sources import find_code, list_config_files, save_known_code

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
    """Write a config.yaml with this text after its head."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(head + dedent(body))
    return file


def commands(folder: Path, text: str) -> Path:
    """Write a config.yaml with these commands, each an item of the list."""
    return component(folder, "commands:\n" + indent(dedent(text), "  "))


def defined(file: Path) -> Definition:
    """Read a definition that has no problems."""
    result = read_definition(file)
    assert result.value is not None, "\n".join(map(str, result.diagnostics))
    return result.value


def parameter_of(folder: Path, text: str) -> Command:
    """Read a command with this parameter."""
    body = "- command_name: do\n  description: Does it.\n  parameter:\n" + indent(dedent(text), "    ")
    return defined(commands(folder, body)).commands[0]


def told(file: Path) -> list[tuple[int | None, str, bool]]:
    """Return the problems of a file: line, text, and whether it is a warning."""
    return [(each.line, each.text, each.is_warning) for each in read_definition(file).diagnostics]


def put_into_repository(*folders: Path) -> None:
    """Put the components below these folders into the local repository, as `component install` does."""
    for file in [each for folder in folders for each in list_config_files(folder)]:
        definition = defined(file)
        coordinates = definition.coordinates
        target = read_settings().local / coordinates.folder
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for each in file.parent.iterdir():
            shutil.copyfile(each, target / f"{coordinates.prefix}{each.name}")
        (target / "__COMPLETED").touch()
        save_known_code({str(coordinates): find_code(file, definition.setup.package)})
