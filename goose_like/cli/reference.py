"""Reference pages that are written from the code: the commands, the keys of a profile, and the events."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

from typer import Typer
from typer.main import get_command

_WIDTH = 100


def write_commands(app: Typer) -> str:
    """Write the page of all commands: the help of each."""
    sections = ["# Commands", "Each command, as `goose-like help COMMAND` shows it."]
    root = get_command(app).make_context("goose-like", [], resilient_parsing=True, terminal_width=_WIDTH)
    for context in _list_contexts(root):
        sections.append(f"## {context.command_path}")
        sections.append(f"```text\n{context.get_help()}\n```")
    return "\n\n".join(sections) + "\n"


def _list_contexts(context: Any) -> Iterator[Any]:
    """Yield Typer's context of a command, and of all commands below that are shown."""
    yield context
    commands: Mapping[str, Any] = getattr(context.command, "commands", {})
    for name, command in commands.items():
        if not command.hidden:
            below = command.make_context(name, [], parent=context, resilient_parsing=True, terminal_width=_WIDTH)
            yield from _list_contexts(below)


def write_profile_keys(app: Typer) -> str:
    """Write the page of the keys of profiles.yaml, from their JSON schema."""
    from goose_like.config.profile import build_profiles_schema

    definitions = build_profiles_schema()["$defs"]
    intro = "The keys of a profile in profiles.yaml, then those of the mappings in it."
    others = sorted(definitions.keys() - {"Profile"})
    return _write_page("Profile keys", intro, definitions, ["Profile", *others])


def write_events(app: Typer) -> str:
    """Write the page of the events, which `--output-format stream-json` prints and session files hold."""
    from pydantic import TypeAdapter

    from goose_like.core.events import Event

    definitions = TypeAdapter(Event).json_schema()["$defs"]
    kinds = [kind.__name__ for kind in get_args(Event)]
    intro = "The events of a session: one JSON object per line. After them come the values that events carry."
    others = sorted(definitions.keys() - set(kinds))
    return _write_page("Events", intro, definitions, [*kinds, *others])


def _write_page(title: str, intro: str, definitions: Mapping[str, Any], names: Sequence[str]) -> str:
    sections = [f"# {title}", intro]
    for name in names:
        definition = definitions[name]
        sections += [f"## {name}", _escape(definition.get("description", ""))]
        properties = definition.get("properties", {})
        rows = [_describe_key(key, schema) for key, schema in properties.items()]
        if rows:
            sections.append(_write_table(("key", "value", "default", "meaning"), rows))
        elif "enum" in definition:
            sections.append(_describe_type(definition))
    return "\n\n".join(filter(None, sections)) + "\n"


def _describe_key(key: str, schema: Mapping[str, Any]) -> Sequence[str]:
    default = ""
    if "default" in schema and "const" not in schema:
        value = schema["default"]
        if not isinstance(value, dict):  # the section of a mapping has its defaults
            default = f"`{json.dumps(value)}`"
    return f"`{key}`", _describe_type(schema), default, _escape(schema.get("description", ""))


def _describe_type(schema: Mapping[str, Any]) -> str:
    """Describe the type of a value in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives:
        return " or ".join(_describe_type(each) for each in alternatives)
    if "items" in schema:
        return f"list of {_describe_type(schema['items'])}"
    return str(schema.get("type", "any"))


def _escape(text: str) -> str:
    """Return a text for a cell of a table: one line, in which nothing is a tag or the end of a cell."""
    line = " ".join(text.split())
    return line.replace("|", "\\|").replace("<", "&lt;")


def _write_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table without its empty columns."""
    columns = []
    for name, *cells in zip(head, *rows, strict=True):
        if any(cells):
            columns.append((name, "---", *cells))
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*columns, strict=True))


REFERENCE_PAGES: Mapping[str, Callable[[Typer], str]] = {
    "all-commands": write_commands,
    "profile-keys": write_profile_keys,
    "events": write_events,
}
"""The pages by name. Each function takes the app of the command line and returns Markdown."""
