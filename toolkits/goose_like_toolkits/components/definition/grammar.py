"""The `parameter` and `response` of commands in YAML, converted to JSON schemas.

A node that accepts a reference to an asset in place of its value is `{ASSET: schema}`, see `validation`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from goose_like.config.yaml_reader import get_line
from goose_like.core.spelling import find_nearest_name

from .document import convert_node, get_entries
from .type_names import ASSET, FOREIGN, Schema, TypeNames, UnknownTypeError, join_schemas, list_parts
from .validation import find_problems

_KEYS = {"type", "description", "enum", "required", "optional", "asset_ref_acceptable", "example"}
_REFERENCE = "_type_ref"
_MAX_NODES = 5_000
_MAX_CHOICES = 1_000
_MAX_DEPTH = 60
_STR = "tag:yaml.org,2002:str"
_NULL = "tag:yaml.org,2002:null"


class Grammar:
    """A reader of the commands of one file, in their order: a `_type_ref` counts in everything that follows it.

    `problems` has the line and text of each problem, and whether it is a warning only. Nothing raises.
    """

    def __init__(self, commands: yaml.Node | None) -> None:
        self.problems: list[tuple[int, str, bool]] = []
        self._names = TypeNames({node.value: get_line(node) for node in _find_type_references(commands)})

    def read(self, node: yaml.Node | None, where: str) -> tuple[Schema | None, bool]:
        """Read a `parameter` or `response`: its schema, None where nothing is said, and whether it is required."""
        entries = self._get_field(node, where) if node is not None else None
        if node is None or not entries or _is_null(entries.get("type")):
            return None, False
        schema, is_required = self._read_field(entries, node, where)
        return (None, False) if self._is_too_large(schema, node, where) else (schema, is_required)

    def read_text(self, node: yaml.Node | None, where: str) -> str:
        """Read text as it is written, `3` and `yes` too; "" where there is none."""
        if node is None or _is_null(node):
            return ""
        if isinstance(node, yaml.ScalarNode):
            return str(node.value).strip()
        self._report(node, where, "expected text, not a list or mapping; put it in quotes")
        return ""

    def _report(self, node: yaml.Node, where: str, text: str, *, is_warning: bool = False) -> None:
        self.problems.append((get_line(node), f"{where}: {text}", is_warning))

    def _get_field(self, node: yaml.Node, where: str) -> dict[str, yaml.Node] | None:
        """Return the keys of a field. A lone type is the same as a field with this `type`."""
        if isinstance(node, yaml.MappingNode):
            return get_entries(node)
        if _is_null(node):
            return None
        if node.tag != _STR:
            self._report(node, where, "expected a mapping with `type` and `description`")
        return {"type": node}

    def _read_field(self, entries: Mapping[str, yaml.Node], node: yaml.Node, where: str) -> tuple[Schema, bool]:
        for key in entries:
            if key not in _KEYS and key not in ("name", _REFERENCE) and (near := find_nearest_name(key, _KEYS)):
                text = f"unknown key {key!r} is ignored; did you mean {near!r}?"
                self._report(entries[key], where, text, is_warning=True)
        name = self._begin(entries.get(_REFERENCE), where)
        if "type" in entries and not _is_null(entries["type"]):
            schema = self._read_type(entries["type"], where)
        else:
            schema = {"type": "null"} if "type" in entries else {}
            if not schema:
                self._report(node, where, "no `type` is said, and any value is taken", is_warning=True)
        if "enum" in entries and not _is_null(entries["enum"]):
            schema = self._read_enum(schema, entries["enum"], f"{where}.enum")
        if name:
            self._names.end(name, schema)
        is_required = self._read_bool(entries.get("required"), f"{where}.required")
        is_optional = self._read_bool(entries.get("optional"), f"{where}.optional")
        is_asset = bool(self._read_bool(entries.get("asset_ref_acceptable"), f"{where}.asset_ref_acceptable"))
        schema = self._add_example(schema, entries.get("example"), f"{where}.example")
        if is_asset:  # the items of a list may be references, too
            items = {"items": {ASSET: schema["items"]}} if schema.get("type") == "array" else {}
            schema = {ASSET: {**schema, **items}}
        if description := self.read_text(entries.get("description"), f"{where}.description"):
            schema = {**schema, "description": description}
        return schema, is_required if is_required is not None else not is_optional

    def _read_type(self, node: yaml.Node, where: str) -> Schema:
        if isinstance(node, yaml.MappingNode):
            return self._read_record(get_entries(node), where)
        if isinstance(node, yaml.SequenceNode):
            return self._read_list(node, where)
        if node.tag != _STR:
            self._report(node, f"{where}.type", f"expected the name of a type, not {node.value[:60]}")
            return {}
        try:
            schema = self._names.read(node.value, get_line(node))
        except UnknownTypeError as error:
            self._report(node, f"{where}.type", str(error))
            return {}
        if self._names.is_open(node.value):
            text = f"the type {node.value!r} holds itself: within it any value is taken in its place"
            self._report(node, f"{where}.type", text, is_warning=True)
        elif schema.get(FOREIGN) == node.value.strip() and node.value.isidentifier():
            text = f"{node.value!r} is taken for a class of Python's, and any value for one of it"
            self._report(node, f"{where}.type", text, is_warning=True)
        return schema

    def _read_record(self, entries: dict[str, yaml.Node], where: str) -> Schema:
        name = self._begin(entries.pop(_REFERENCE, None), where)
        fields = {
            key: self._read_field(self._get_field(node, f"{where}.{key}") or {}, node, f"{where}.{key}")
            for key, node in entries.items()
        }
        schema = build_record(fields)
        if name:
            self._names.end(name, schema)
        return schema

    def _read_list(self, node: yaml.SequenceNode, where: str) -> Schema:
        """Read a list of records whose fields are the items; names of types alone are alternatives."""
        if node.value and all(item.tag in (_STR, _NULL) for item in node.value):
            return join_schemas([{"type": "null"} if _is_null(i) else self._read_type(i, where) for i in node.value])
        name = ""
        fields: dict[str, tuple[Schema, bool]] = {}
        for at, item in enumerate(node.value):
            entries = get_entries(item)
            if set(entries) == {_REFERENCE}:
                name = self._begin(entries[_REFERENCE], where)
                continue
            field = self.read_text(entries.get("name"), f"{where}[{at}].name")
            if not field:
                self._report(item, f"{where}[{at}]", "expected a mapping with the `name` and `type` of a field")
            elif field in fields:
                self._report(item, f"{where}[{at}]", f"there are two fields {field!r}; remove one")
            else:
                fields[field] = self._read_field(entries, item, f"{where}[].{field}")
        schema = {"type": "array", "items": build_record(fields) if fields else {}}
        if name:
            self._names.end(name, schema)
        return schema

    def _begin(self, node: yaml.Node | None, where: str) -> str:
        name = self.read_text(node, f"{where}.{_REFERENCE}")
        if node is not None and name and (problem := self._names.begin(name, node.start_mark.index)):
            self._report(node, f"{where}.{_REFERENCE}", problem)
            return ""
        return name

    def _read_enum(self, schema: Schema, node: yaml.Node, where: str) -> Schema:
        if not isinstance(node, yaml.SequenceNode) or not node.value or len(node.value) > _MAX_CHOICES:
            self._report(node, where, f"expected a list of up to {_MAX_CHOICES:,} possible values")
            return schema
        # The values are those of a list's items, unless lists are named.
        if schema.get("type") == "array" and not any(isinstance(each, yaml.SequenceNode) for each in node.value):
            return {**schema, "items": self._read_enum(schema["items"], node, where)}
        values: list[Any] = []
        for each in node.value:
            value = _convert(schema, each)
            if problem := _find_problem(schema, value):
                self._report(each, where, problem)
            elif not any(value is known or (value == known and type(value) is type(known)) for known in values):
                values.append(value)
        return {**schema, "enum": values} if values else schema

    def _add_example(self, schema: Schema, node: yaml.Node | None, where: str) -> Schema:
        if node is None or _is_null(node):
            return schema
        value = _convert(schema, node)
        if isinstance(value, str) and value.strip().lower().startswith("asset://"):
            return schema
        if problem := _find_problem(schema, value):
            self._report(node, where, problem, is_warning=True)
            return schema
        return {**schema, "examples": [value]}

    def _read_bool(self, node: yaml.Node | None, where: str) -> bool | None:
        if node is None or _is_null(node):
            return None
        value = convert_node(node)
        if isinstance(value, bool):
            return value
        self._report(node, where, f"expected true or false, not {str(value)[:60]!r}")
        return None

    def _is_too_large(self, schema: Schema, node: yaml.Node, where: str) -> bool:
        """Limit the size: with each `_type_ref` within others, a few lines may double in memory."""
        count, waiting = 0, [(schema, 0)]
        while waiting:
            part, depth = waiting.pop()
            count += 1
            if count > _MAX_NODES or depth > _MAX_DEPTH:
                self._report(node, where, f"it has more than {_MAX_NODES:,} fields, or nests too deep; write less")
                return True
            waiting += [(inner, depth + 1) for inner in list_parts(part)]
        return False


def build_record(fields: Mapping[str, tuple[Schema, bool]]) -> Schema:
    """Build the schema of a mapping with these fields and no others."""
    return {
        "type": "object",
        "properties": {name: schema for name, (schema, _) in fields.items()},
        "required": [name for name, (_, is_required) in fields.items() if is_required],
        "additionalProperties": False,
    }


def _find_problem(schema: Schema, value: Any) -> str:
    problems = find_problems(schema, value)
    return problems[0].removeprefix("the parameter: ") if problems else ""


def _is_null(node: yaml.Node | None) -> bool:
    return node is not None and node.tag == _NULL


def _convert(schema: Schema, node: yaml.Node) -> Any:
    """Convert a node to a value of a schema: where text is wanted, `yes`, `1.10` and dates are as written."""
    if isinstance(node, yaml.ScalarNode):
        kinds = [schema, *schema.get("anyOf", ())]
        value = convert_node(node)
        is_text = any(kind.get("type") == "string" for kind in kinds)
        return node.value if is_text and (len(kinds) == 1 or _find_problem(schema, value)) else value
    if isinstance(node, yaml.SequenceNode):
        return [_convert(schema.get("items", {}), each) for each in node.value]
    fields = schema.get("properties", {})
    return {key: _convert(fields.get(key, {}), each) for key, each in get_entries(node).items()}


def _find_type_references(node: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == _REFERENCE and isinstance(value, yaml.ScalarNode):
                yield value
            else:
                yield from _find_type_references(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _find_type_references(item)
