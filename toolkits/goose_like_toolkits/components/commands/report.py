"""What `component list`, `show` and `check` print."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.terminal.escape import escape_controls, to_one_line
from goose_like.terminal.report_table import print_fitted, print_table
from goose_like_toolkits.components.described.checking import check_file
from goose_like_toolkits.components.described.coordinates import PARTS, Coordinates
from goose_like_toolkits.components.described.definition import Definition, read_definition
from goose_like_toolkits.components.described.document import read_document
from goose_like_toolkits.components.described.kinds import schema
from goose_like_toolkits.components.described.overriding import Layer, overlaid
from goose_like_toolkits.components.repositories.layout import config_file_in
from goose_like_toolkits.components.repositories.repository import Repositories, Shelf
from goose_like_toolkits.components.repositories.runtime import Instance, Runtime
from goose_like_toolkits.components.repositories.sources import config_files, meant, the_config_file

from .drawing import drawn

_WIDTH = 120
_WIDTHS = {"type": 60, "commands": 120}
_ENDLESS = 10_000
_SECRET = re.compile(
    r"((api|access|secret|private|auth)_?key|token|secret|passw(or)?d|pwd|passphrase|credentials?)$", re.I
)


def list_components(repositories: Repositories, *, is_json: bool) -> None:
    """Every component that is at hand, and which repository it is of; of equal ones the first is used."""
    found: dict[Coordinates, Shelf] = {}
    for shelf in repositories.at_hand:
        for coordinates in shelf.all():
            found.setdefault(coordinates, shelf)
    entries = [_entry(coordinates, found[coordinates]) for coordinates in sorted(found)]
    if is_json:
        print(json.dumps(entries, indent=1))
        return
    columns = ("group", "artifact", "version", "type", "commands", "from")
    rows = [[to_one_line(entry[column], _WIDTHS.get(column, _ENDLESS)) for column in columns] for entry in entries]
    print_table(
        columns,
        rows,
        f"there are no components in {repositories.local.name}; `goose-like component new plugin` writes one, "
        "`goose-like component install FOLDER` installs it",
    )


def _entry(coordinates: Coordinates, shelf: Shelf) -> dict[str, str]:
    file = config_file_in(shelf.folder_of(coordinates), coordinates)
    reading = read_definition(file) if file else None
    definition = reading.value if reading else None
    broken = (
        next((f"broken: {fault.text}" for fault in reading.diagnostics if not fault.is_warning), "") if reading else ""
    )
    return {
        "group": coordinates.group_id,
        "artifact": coordinates.artifact_id,
        "version": coordinates.version,
        "type": definition.type if definition else broken,
        "commands": ", ".join(command.name for command in definition.commands) if definition else "",
        "from": shelf.name,
    }


def show_component(
    repositories: Repositories, wanted: str, within: Sequence[Path], *, instance_id: str | None, is_json: bool
) -> None:
    """A component by its coordinates or its path: what it is, its commands, its config and where each key is from.

    Of an instance that has a copy in the current folder it is that of the copy.

    Raises:
        GooseLikeError: there is no such component, or its config.yaml is faulty.
    """
    definition = _found(repositories, wanted, instance_id)
    rows = _effective(definition, within)
    if is_json:
        print(json.dumps(_described(definition, rows), indent=1, ensure_ascii=False))
        return
    kind = f"{definition.type}{f' ({definition.resource_type})' if definition.resource_type else ''}"
    heading = [
        Text(escape_controls(f"{definition.coordinates}  {kind}"), style="bold"),
        Text(escape_controls(str(definition.file))),
    ]
    about = [Text(f"\n{escape_controls(definition.description.strip())}")] if definition.description.strip() else []
    commands = [part for command in definition.commands for part in ("", drawn(command))]
    print_fitted(Group(*heading, *about, *commands))
    if rows:
        print()
        shown = [
            [escape_controls(key), to_one_line(_said(value), _WIDTH), escape_controls(origin)]
            for key, value, origin in rows
        ]
        print_table(("config", "value", "from"), shown, "")


def _found(repositories: Repositories, wanted: str, instance_id: str | None) -> Definition:
    file = meant(wanted)
    if isinstance(file, Coordinates):
        file = Runtime(Path.cwd(), repositories).source(Instance(file, instance_id))
    reading = read_definition(file)
    if reading.value is None:
        raise GooseLikeError(
            escape_controls("\n".join(str(fault) for fault in reading.diagnostics if not fault.is_warning))
        )
    return reading.value


def _effective(definition: Definition, within: Sequence[Path]) -> list[tuple[str, Any, str]]:
    """Each key of the configuration, dotted, with its value and where that is from; secrets are not shown."""
    own = Layer(definition.config, str(definition.file), definition.document, ("config",))
    effective = overlaid(own, *(_outer(path, definition.coordinates) for path in within))
    rows = []
    for path, origin in effective.origins.items():
        value: Any = effective.value
        for step in path:
            value = value[step]
        rows.append((".".join(path), _shown(value, path[-1]), origin))
    return rows


def _outer(path: Path, coordinates: Coordinates) -> Layer:
    """What another component says of the `config` of one that it includes.

    Raises:
        UsageError: it does not include it, or can't be read.
    """
    file = the_config_file(path)
    document = read_document(file).value
    if document is None:
        raise UsageError(escape_controls("\n".join(str(fault) for fault in read_document(file).diagnostics)))
    for at, included in _mappings(document.data):
        named = [included.get(part) for part in PARTS]
        if ":".join(map(str, named)).lower() == str(coordinates).lower() and at:
            config = included.get("config")
            return Layer(config if isinstance(config, Mapping) else {}, str(file), document, (*at, "config"))
    raise UsageError(f"{file} does not include {coordinates}; name a config.yaml that does")


def _mappings(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Every mapping at a path and below."""
    if isinstance(value, Mapping):
        yield at, value
        for key, item in value.items():
            yield from _mappings(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _mappings(item, (*at, index))


def _shown(value: Any, key: str) -> Any:
    """The value without what is secret by its key."""
    if isinstance(value, Mapping):
        return {name: _shown(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_shown(item, key) for item in value]
    return "(not shown)" if isinstance(value, str) and value and _SECRET.search(key) else value


def _said(value: Any) -> str:
    is_plain = isinstance(value, str) and value and value == value.strip()
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _described(definition: Definition, rows: Sequence[tuple[str, Any, str]]) -> dict[str, Any]:
    coordinates = definition.coordinates
    return {
        "group": coordinates.group_id,
        "artifact": coordinates.artifact_id,
        "version": coordinates.version,
        "type": definition.type,
        "file": str(definition.file),
        "description": definition.description,
        "commands": [
            {
                "name": command.name,
                "description": command.description,
                "parameter": schema(command.parameter),
                "response": schema(command.response.kind) if command.response else None,
            }
            for command in definition.commands
        ],
        "config": [{"key": key, "value": value, "from": origin} for key, value, origin in rows],
    }


def check_components(paths: Sequence[Path]) -> int:
    """Prints every fault and remark, remarks dim; gives the exit code."""
    files = dict.fromkeys(file for path in paths for file in config_files(path))
    wrong = 0
    for file in files:
        for fault in check_file(file):
            wrong += not fault.is_warning
            print_fitted(Text(escape_controls(str(fault)), style="dim" if fault.is_warning else ""))
    count = f"{len(files)} component{'s' * (len(files) != 1)}"
    print(f"{count}: {wrong} thing{'s' * (wrong != 1)} to mend" if wrong else f"{count}: nothing is wrong")
    return int(wrong > 0)
