"""What `component list`, `show` and `check` print."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text
from rich.tree import Tree

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.terminal.escape import escape_controls, to_one_line
from goose_like.terminal.report_table import print_fitted, print_table

from ..config import Config
from ..definition.check import check_file, list_included
from ..definition.config_file import Command, Definition
from ..definition.coordinates import PARTS, Coordinates
from ..definition.document import read_document
from ..definition.overrides import Layer, merge_layers
from ..definition.reader import read_definition, read_definitions
from ..definition.type_names import ASSET, Schema
from ..definition.validation import describe_type, to_standard
from ..host.registry import Registry
from ..host.repository import SHIPPED, Repositories, read_settings
from ..host.sources import list_config_files, parse_component, require_config_file

_WIDTH = 200
_SECRET = re.compile(
    r"((api|access|secret|private|auth)_?key|token|secret|passw(or)?d|pwd|passphrase|credentials?)$", re.I
)


def list_components(settings: Path | None, *, is_json: bool) -> None:
    """Print all components with their repositories."""
    repositories = Repositories.of(read_settings(settings))
    found = repositories.list_all()
    results = read_definitions(repositories.find(coordinates) for coordinates, _ in found)
    rows = []
    for coordinates, repository in found:
        result = results[repositories.find(coordinates)]
        broken = next((f"broken: {each.text}" for each in result.diagnostics if not each.is_warning), "")
        rows.append(
            {
                "group": coordinates.group_id,
                "artifact": coordinates.artifact_id,
                "version": coordinates.version,
                "type": result.value.type if result.value else broken,
                "commands": ", ".join(command.name for command in result.value.commands) if result.value else "",
                "from": "goose_like" if repository == SHIPPED else str(repository),
            }
        )
    if is_json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    cells = [[to_one_line(value, 120) for value in row.values()] for row in rows]
    print_table(("group", "artifact", "version", "type", "commands", "from"), cells, "")


def show_component(
    settings: Path | None, text: str, within: Sequence[Path], *, instance_id: str | None, is_json: bool
) -> None:
    """Print a component: its commands, and each key of its config with its origin. Raise GooseLikeError."""
    file, definition = _read(settings, text, instance_id)
    rows = _list_config(file, definition, within)
    if is_json:
        print(json.dumps(_to_json(file, definition, rows), indent=1, ensure_ascii=False))
        return
    kind = f"{definition.type}{f' ({definition.resource_type})' if definition.resource_type else ''}"
    parts: list[Any] = [Text(escape_controls(f"{definition.coordinates}  {kind}"), style="bold")]
    parts.append(Text(escape_controls(str(file))))
    if description := definition.description.strip():
        parts.append(Text(f"\n{escape_controls(description)}"))
    print_fitted(Group(*parts, *(part for command in definition.commands for part in ("", _draw(command)))))
    if rows:
        print()
        cells = [
            [
                escape_controls(key),
                to_one_line(value if isinstance(value, str) and value.strip() else json.dumps(value), 120),
                escape_controls(origin),
            ]
            for key, value, origin in rows
        ]
        print_table(("config", "value", "from"), cells, "")


def check_components(paths: Sequence[str]) -> int:
    """Print all problems, warnings dim; return the exit code."""
    files = dict.fromkeys(file for path in paths for file in list_config_files(Path(path)))
    wrong = 0
    for file in files:
        for problem in check_file(file):
            wrong += not problem.is_warning
            print_fitted(Text(escape_controls(str(problem)), style="dim" if problem.is_warning else ""))
    count = f"{len(files)} component{'s' * (len(files) != 1)}"
    print(f"{count}: {wrong} thing{'s' * (wrong != 1)} to correct" if wrong else f"{count}: nothing is wrong")
    return int(wrong > 0)


def _read(settings: Path | None, text: str, instance_id: str | None) -> tuple[Path, Definition]:
    component = parse_component(text)
    if isinstance(component, Coordinates):
        registry = Registry(Config(), Path.cwd(), Repositories.of(read_settings(settings)))
        named = {part: getattr(component, part) for part in PARTS} | {"instance_id": instance_id}
        file = registry.read_member(named, "the command line").file
    else:
        file = require_config_file(component)
    result = read_definition(file)
    if result.value is None:
        raise GooseLikeError(
            escape_controls("\n".join(str(each) for each in result.diagnostics if not each.is_warning))
        )
    return file, result.value


def _list_config(file: Path, definition: Definition, within: Sequence[Path]) -> list[tuple[str, Any, str]]:
    """Return each key of the effective config, dotted, with value and origin; secrets are hidden."""
    own = Layer(definition.config, str(file), read_document(file).value, ("config",))
    value, origins = merge_layers(own, *(_read_layer(path, definition.coordinates) for path in within))
    rows = []
    for path, origin in origins.items():
        leaf: Any = value
        for step in path:
            leaf = leaf[step]
        rows.append((".".join(path), _hide_secrets(leaf, path[-1]), origin))
    return rows


def _read_layer(path: Path, coordinates: Coordinates) -> Layer:
    """Read what a config.yaml says of a component that it includes. Raise UsageError if it includes none."""
    file = require_config_file(path)
    result = read_document(file)
    if result.value is None:
        raise UsageError(escape_controls("\n".join(map(str, result.diagnostics))))
    for at, included in list_included(result.value.data.get("config"), ("config",)):
        named = [str(included.get(part)).lower() for part in PARTS]
        if ":".join(named) == str(coordinates).lower():
            config = included.get("config")
            return Layer(config if isinstance(config, Mapping) else {}, str(file), result.value, (*at, "config"))
    raise UsageError(f"{file} does not include {coordinates}; name a config.yaml that does")


def _hide_secrets(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _hide_secrets(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_hide_secrets(item, key) for item in value]
    return "(not shown)" if isinstance(value, str) and value and _SECRET.search(key) else value


def _to_json(file: Path, definition: Definition, rows: Sequence[tuple[str, Any, str]]) -> dict[str, Any]:
    return {
        "group": definition.group_id,
        "artifact": definition.artifact_id,
        "version": definition.version,
        "type": definition.type,
        "file": str(file),
        "description": definition.description,
        "commands": [
            {
                "name": each.name,
                "description": each.description,
                "parameter": each.arguments,
                "response": to_standard(each.response) if each.response is not None else None,
            }
            for each in definition.commands
        ],
        "config": [{"key": key, "value": value, "from": origin} for key, value, origin in rows],
    }


def _draw(command: Command) -> Tree:
    """Draw a command with its parameter and response, down to the last field."""
    tree = Tree(_format_line(command.name, "", command.description, style="bold"))
    for verb, schema in (("takes", command.parameter), ("gives", command.response)):
        if schema is not None:
            branch = tree.add(_format_line(verb, _format_type(schema), schema.get("description", ""), style="italic"))
            _add_fields(branch, schema)
    return tree


def _add_fields(tree: Tree, schema: Schema) -> None:
    for inner in _list_records(schema):
        for name, field in inner["properties"].items():
            optional = "" if name in inner.get("required", ()) else ", optional"
            text = f"{_format_type(field)}{optional}"
            _add_fields(tree.add(_format_line(name, text, field.get("description", ""))), field)


def _list_records(schema: Schema) -> Iterator[Schema]:
    if schema.get("properties"):
        yield schema
    inner = [schema[key] for key in (ASSET, "items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for each in [*inner, *schema.get("anyOf", ())]:
        yield from _list_records(each)


def _format_type(schema: Schema) -> str:
    """Describe a schema in a few words, without the fields of records."""
    if ASSET in schema:
        return f"{_format_type(schema[ASSET])}, or an asset"
    examples = (
        f", e.g. {to_one_line(json.dumps(schema['examples'][0], ensure_ascii=False), 60)}"
        if "examples" in schema
        else ""
    )
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_format_type(schema['items']).removesuffix(', or an asset')}{examples}"
    if schema.get("additionalProperties"):
        return f"mapping to {_format_type(schema['additionalProperties'])}{examples}"
    return f"{describe_type(schema).removeprefix('a ')}{examples}"


def _format_line(name: str, kind: str, description: str, style: str = "") -> Text:
    line = Text(to_one_line(name), style=style, end="")
    line.append(f" ({to_one_line(kind, _WIDTH)})" if kind else "", style="not bold")
    return line.append(f"  {to_one_line(description, _WIDTH)}" if description else "", style="not bold")
