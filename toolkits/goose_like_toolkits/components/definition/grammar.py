"""The `commands` of a config.yaml, with their parameters and responses as JSON schemas."""

from collections.abc import Callable, Mapping
from typing import Any

from goose_like.core.spelling import find_nearest_name

from .config_file import Command
from .document import Place
from .type_names import ASSET, FOREIGN, Schema, TypeNames, UnknownTypeError, join_schemas, list_parts
from .validation import build_arguments, find_problems

_KEYS = {"type", "description", "enum", "required", "optional", "asset_ref_acceptable", "example"}
_REFERENCE = "_type_ref"
_MAX_PARTS = 5_000
_MAX_DEPTH = 60


class CommandReader:
    """A reader of the commands of one file, in their order: a `_type_ref` counts in everything that follows it."""

    def __init__(self, report: Callable[..., None], get_text: Callable[[Place, Any], str]) -> None:
        """Read nothing yet.

        Args:
            report: takes the place of a problem, its text, and perhaps `is_warning`.
            get_text: returns a single value at a place as it is written.
        """
        self._report = report
        self._get_text = get_text
        self._names = TypeNames()

    def read(self, value: Any, place: Place = ("commands",)) -> tuple[Command, ...]:
        """Read a list of commands. Report what is wrong and leave it out."""
        commands: dict[str, Command] = {}
        if not isinstance(value, list | None):
            self._report(place, f"expected a list, not {str(value)[:60]!r}")
            return ()
        for at, item in enumerate(value or ()):
            given = item.get("command_name") if isinstance(item, Mapping) else None
            name = given.strip() if isinstance(given, str) else ""
            if not name:
                self._report((*place, at), "it has no text as `command_name`")
            elif name in commands:
                self._report((*place, at, "command_name"), f"there are two commands {given!r}; rename one")
            else:
                commands[name] = self._read_command(name, item, (*place, at))
        return tuple(commands.values())

    def _read_command(self, name: str, item: Mapping[str, Any], place: Place) -> Command:
        description = self._read_text(item.get("description"), (*place, "description"))
        if not description:
            self._report((*place, "description"), "there is none, and a model chooses by it", is_warning=True)
        parameter, is_required = self._read_whole(item.get("parameter"), (*place, "parameter"))
        response, _ = self._read_whole(item.get("response"), (*place, "response"))
        return Command(
            name=name,
            description=description,
            parameter=parameter,
            is_required=is_required,
            response=response,
            arguments=build_arguments(parameter, is_required),
        )

    def _read_whole(self, field: Any, place: Place) -> tuple[Schema | None, bool]:
        """Read a `parameter` or `response`: its schema, None where nothing is said, and whether it is required."""
        entries = _to_entries(field)
        if entries.get("type") is None:
            return None, False
        schema, is_required = self._read_field(entries, place)
        # With each `_type_ref` within others, a few lines may double in memory.
        waiting = [(schema, 0)]
        for count, (part, depth) in enumerate(waiting):
            if count > _MAX_PARTS or depth > _MAX_DEPTH:
                self._report(place, f"it has more than {_MAX_PARTS:,} fields, or nests too deep; write less")
                return None, False
            waiting += [(inner, depth + 1) for inner in list_parts(part)]
        return schema, is_required

    def _read_field(self, entries: Mapping[str, Any], place: Place) -> tuple[Schema, bool]:
        """Read what is said of a value: its schema, and whether it is required."""
        for key in entries.keys() - {*_KEYS, "name", _REFERENCE}:
            near = find_nearest_name(key, _KEYS)
            if near:
                self._report((*place, key), f"this key is ignored; did you mean {near!r}?", is_warning=True)
        name = self._begin_type(entries, place)
        schema = self._read_type(entries.get("type"), (*place, "type"))
        if "type" not in entries:
            self._report(place, "no `type` is said, and any value is taken", is_warning=True)
        if entries.get("enum") is not None:
            schema = self._read_enum(schema, entries["enum"], (*place, "enum"))
        self._end_type(name, schema)
        schema = self._add_example(schema, entries.get("example"), (*place, "example"))
        is_required = self._read_bool(entries, "required", place)
        is_optional = self._read_bool(entries, "optional", place)
        if self._read_bool(entries, "asset_ref_acceptable", place):
            schema = {**schema, ASSET: True}
            if schema.get("type") == "array":  # its items may be references, too
                schema["items"] = {**schema["items"], ASSET: True}
        description = self._read_text(entries.get("description"), (*place, "description"))
        if description:
            schema = {**schema, "description": description}
        if is_required is None:
            is_required = not is_optional
        return schema, is_required

    def _read_type(self, value: Any, place: Place) -> Schema:
        if isinstance(value, Mapping):
            return self._read_record(value, place)
        if isinstance(value, list):
            return self._read_list(value, place)
        if value is None:
            return {}
        if not isinstance(value, str):
            self._report(place, f"expected the name of a type, not {str(value)[:60]!r}")
            return {}
        try:
            schema = self._names.read(value)
        except UnknownTypeError as error:
            self._report(place, str(error))
            return {}
        if schema.get(FOREIGN) == value.strip() and value.isidentifier():
            self._report(place, f"{value!r} is taken for a class of Python's, and any value for it", is_warning=True)
        return schema

    def _read_record(self, entries: Mapping[str, Any], place: Place) -> Schema:
        name = self._begin_type(entries, place)
        fields = {}
        for key, field in entries.items():
            if key != _REFERENCE:
                fields[key] = self._read_field(_to_entries(field), (*place, key))
        return self._end_type(name, build_record(fields))

    def _read_list(self, items: list[Any], place: Place) -> Schema:
        """Read a list of records whose fields are the items; names of types alone are alternatives."""
        if items and all(isinstance(item, str | None) for item in items):
            return self._read_alternatives(items, place)
        name = ""
        fields: dict[str, tuple[Schema, bool]] = {}
        for at, item in enumerate(items):
            entries = item if isinstance(item, Mapping) else {}
            field = self._read_text(entries.get("name"), (*place, at, "name"))
            if entries.keys() == {_REFERENCE}:
                name = self._begin_type(entries, (*place, at))
            elif not field or field in fields:
                self._report((*place, at), "expected a mapping with `type` and a `name` of its own")
            else:
                fields[field] = self._read_field(entries, (*place, at))
        record = build_record(fields) if fields else {}
        return self._end_type(name, {"type": "array", "items": record})

    def _read_alternatives(self, names: list[str | None], place: Place) -> Schema:
        schemas: list[Schema] = []
        for name in names:
            if name:
                schemas.append(self._read_type(name, place))
            else:
                schemas.append({"type": "null"})
        return join_schemas(schemas)

    def _begin_type(self, entries: Mapping[str, Any], place: Place) -> str:
        """Begin the definition of a type. Within it any value is taken in its place."""
        name = self._read_text(entries.get(_REFERENCE), (*place, _REFERENCE))
        if name and self._names.is_built_in(name):
            self._report((*place, _REFERENCE), f"{name!r} is the name of a type already; choose another")
            return ""
        if name:
            self._names.defined.setdefault(name, {})
        return name

    def _end_type(self, name: str, schema: Schema) -> Schema:
        if name:
            self._names.defined[name] = schema
        return schema

    def _read_enum(self, schema: Schema, values: Any, place: Place) -> Schema:
        if not isinstance(values, list) or not values:
            self._report(place, "expected a list of possible values")
            return schema
        # The values are those of a list's items, unless lists are named.
        names_lists = any(isinstance(value, list) for value in values)
        if schema.get("type") == "array" and not names_lists:
            return {**schema, "items": self._read_enum(schema["items"], values, place)}
        known = [self._convert(schema, value, (*place, at)) for at, value in enumerate(values)]
        for at, value in enumerate(known):
            for problem in find_problems(schema, value):
                self._report((*place, at), problem)
        return {**schema, "enum": known}

    def _add_example(self, schema: Schema, value: Any, place: Place) -> Schema:
        value = self._convert(schema, value, place)
        is_reference = isinstance(value, str) and value.strip().lower().startswith("asset://")
        if value is None or is_reference:
            return schema
        problems = find_problems(schema, value)
        if problems:
            self._report(place, problems[0], is_warning=True)
            return schema
        return {**schema, "examples": [value]}

    def _convert(self, schema: Schema, value: Any, place: Place) -> Any:
        """Convert a value to that of a schema: where text is wanted, `yes` and `1.10` are as written."""
        if isinstance(value, list):
            inner = schema.get("items", {})
            return [self._convert(inner, each, (*place, at)) for at, each in enumerate(value)]
        if isinstance(value, Mapping):
            fields = schema.get("properties", {})
            converted = {}
            for key, each in value.items():
                converted[key] = self._convert(fields.get(key, {}), each, (*place, key))
            return converted
        if schema.get("type") == "string" and not isinstance(value, str | None):
            return self._get_text(place, value)
        return value

    def _read_bool(self, entries: Mapping[str, Any], key: str, place: Place) -> bool | None:
        value = entries.get(key)
        if isinstance(value, bool | None):
            return value
        self._report((*place, key), f"expected true or false, not {str(value)[:60]!r}")
        return None

    def _read_text(self, value: Any, place: Place) -> str:
        if isinstance(value, Mapping | list):
            self._report(place, "expected text, not a list or mapping; put it in quotes")
            return ""
        return "" if value is None else self._get_text(place, value).strip()


def build_record(fields: Mapping[str, tuple[Schema, bool]]) -> Schema:
    """Build the schema of a mapping with these fields and no others."""
    return {
        "type": "object",
        "properties": {name: schema for name, (schema, _) in fields.items()},
        "required": [name for name, (_, is_required) in fields.items() if is_required],
        "additionalProperties": False,
    }


def _to_entries(field: Any) -> Mapping[str, Any]:
    """Return the keys of a field; a lone type is the same as a field with this `type`."""
    if field is None:
        return {}
    return field if isinstance(field, Mapping) else {"type": field}
