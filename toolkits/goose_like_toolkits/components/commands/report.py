"""What `component list`, `show` and `check` print."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.text import Text

from goose_like.core.errors import GooseLikeError
from goose_like.core.spelling import format_count
from goose_like.sdk.diagnostics import Diagnostic, ParseResult
from goose_like.terminal.escape import escape_controls, to_one_line
from goose_like.terminal.report_table import print_fitted, print_table

from ..config import Config
from ..definition.check import check_file
from ..definition.config_file import Definition
from ..definition.coordinates import PARTS, Coordinates
from ..definition.reader import read_definition, read_definitions
from ..host.registry import Registry
from ..host.repository import SHIPPED, Repositories, read_settings
from ..host.sources import list_config_files, parse_component, require_config_file

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
        rows.append(_build_row(coordinates, repository, result))
    if is_json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    cells = [[to_one_line(value, 120) for value in row.values()] for row in rows]
    print_table(("group", "artifact", "version", "type", "commands", "from"), cells, "")


def _build_row(coordinates: Coordinates, repository: Path, result: ParseResult[Definition]) -> dict[str, str]:
    kind = ""
    commands = ""
    errors = _list_errors(result)
    if result.value:
        kind = result.value.kind
        commands = ", ".join(command.name for command in result.value.commands)
    elif errors:
        kind = f"broken: {errors[0].text}"
    return {
        "group": coordinates.group_id,
        "artifact": coordinates.artifact_id,
        "version": coordinates.version,
        "type": kind,
        "commands": commands,
        "from": "goose_like" if repository == SHIPPED else str(repository),
    }


def show_component(settings: Path | None, text: str, instance_id: str | None) -> None:
    """Print a component: its file, its commands and its config, without secrets. Raise GooseLikeError."""
    file, definition = _read(settings, text, instance_id)
    config = _hide_secrets(definition.config, "")
    kind = definition.kind
    if definition.resource_type:
        kind += f" ({definition.resource_type})"
    about = f"{definition.coordinates}  {kind}\n{file}\n{definition.description}"
    print(escape_controls(about.rstrip()))
    parts = {"commands": definition.data.get("commands"), "config": config}
    shown = {key: value for key, value in parts.items() if value}
    if shown:
        text = yaml.safe_dump(shown, allow_unicode=True, sort_keys=False, width=120)
        print(f"\n{escape_controls(text)}", end="")


def check_components(paths: Sequence[str]) -> int:
    """Print all problems, warnings dim; return the exit code."""
    files: dict[Path, None] = {}
    for path in paths:
        files |= dict.fromkeys(list_config_files(Path(path)))
    wrong = 0
    for file in files:
        for problem in check_file(file):
            style = "dim" if problem.is_warning else ""
            print_fitted(Text(escape_controls(str(problem)), style=style))
            if not problem.is_warning:
                wrong += 1
    count = format_count(len(files), "component")
    if not wrong:
        print(f"{count}: nothing is wrong")
        return 0
    print(f"{count}: {format_count(wrong, 'thing')} to correct")
    return 1


def _read(settings: Path | None, text: str, instance_id: str | None) -> tuple[Path, Definition]:
    component = parse_component(text)
    if isinstance(component, Coordinates):
        registry = Registry(Config(), Path.cwd(), Repositories.of(read_settings(settings)))
        named = {part: getattr(component, part) for part in PARTS}
        named["instance_id"] = instance_id
        file = registry.read_member(named, "the command line").file
    else:
        file = require_config_file(component)
    result = read_definition(file)
    if result.value is None:
        problems = "\n".join(map(str, _list_errors(result)))
        raise GooseLikeError(escape_controls(problems))
    return file, result.value


def _list_errors(result: ParseResult[Definition]) -> list[Diagnostic]:
    return [each for each in result.diagnostics if not each.is_warning]


def _hide_secrets(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return {name: _hide_secrets(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_hide_secrets(item, key) for item in value]
    is_secret = isinstance(value, str) and value and _SECRET.search(key)
    return "(not shown)" if is_secret else value
