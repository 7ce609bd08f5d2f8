"""Grammar: what `parameter` and `response` of a command say in YAML, read as kinds."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from goose_like.config.yaml_reader import get_line
from goose_like.core.spelling import find_nearest_name

from .arguments import fitting
from .document import entries, plain
from .kinds import (
    Anything,
    Choice,
    Field,
    Kind,
    ListOf,
    MapOf,
    Nothing,
    OneOf,
    Parameter,
    Record,
    Response,
    Text,
    levels,
    parts,
)
from .type_names import TypeNames

_KEYS = {"type", "description", "enum", "required", "optional", "asset_ref_acceptable", "example"}
_REFERENCE = "_type_ref"
_LIMIT_KINDS = 5_000
_LIMIT_CHOICES = 1_000
_LIMIT_DEPTH = 60
_STR = "tag:yaml.org,2002:str"
_NULL = "tag:yaml.org,2002:null"


class Grammar:
    """Reads the commands of one file in their order: a name given by `_type_ref` counts in all that follows.

    `faults` are the lines and sentences of what is wrong, and whether each is a remark only. Nothing raises.

    A type that holds itself is not followed: within its own definition its name stands for any value.
    """

    def __init__(self, commands: yaml.Node | None) -> None:
        self.faults: list[tuple[int, str, bool]] = []
        self._names = TypeNames(_defined(commands) if commands else {})

    def parameter(self, node: yaml.Node, where: str) -> Parameter | None:
        """What `parameter:` says; None where a command takes nothing: nothing is written, or `type: null`."""
        said = self._said(node, where)
        if not said or _is_null(said.get("type")):
            return None
        field = self._field("", said, node, where)
        if self._is_too_large(field.kind, node, where):
            return None
        return Parameter(field.kind, field.description, field.is_required, field.accepts_asset, field.example)

    def response(self, node: yaml.Node, where: str) -> Response | None:
        """What `response:` says; None where nothing is promised."""
        said = self._said(node, where)
        if not said or _is_null(said.get("type")):
            return None
        field = self._field("", said, node, where)
        return None if self._is_too_large(field.kind, node, where) else Response(field.kind, field.description)

    def words(self, node: yaml.Node | None, where: str) -> str:
        """Text as it is written, without blanks around it, `3` and `yes` too; "" where there is none."""
        if node is None or node.tag == _NULL:
            return ""
        if isinstance(node, yaml.ScalarNode):
            return str(node.value).strip()
        self._fault(node, where, "expected text, not a list or mapping; put it in quotes")
        return ""

    def _fault(self, node: yaml.Node, where: str, text: str, *, is_remark: bool = False) -> None:
        self.faults.append((get_line(node), f"{where}: {text}", is_remark))

    def _said(self, node: yaml.Node, where: str) -> dict[str, yaml.Node] | None:
        """The keys of a parameter, response or field; a type alone is taken as its `type`."""
        if isinstance(node, yaml.MappingNode):
            return entries(node)
        if node.tag == _NULL:
            return None
        if node.tag != _STR:
            self._fault(node, where, "expected a mapping with `type` and `description`")
        return {"type": node}

    def _field(self, name: str, said: Mapping[str, yaml.Node], node: yaml.Node, where: str) -> Field:
        for key in said:
            if key not in _KEYS and key not in ("name", _REFERENCE) and (near := find_nearest_name(key, _KEYS)):
                self._fault(said[key], where, f"unknown key {key!r} is ignored; did you mean {near!r}?", is_remark=True)
        opened = self._open(said.get(_REFERENCE), where)
        kind = self._kind(said["type"], where) if "type" in said else None
        if kind is None:
            self._fault(node, where, "no `type` is said, and any value is taken", is_remark=True)
            kind = Anything()
        if "enum" in said:
            kind = self._choice(kind, said["enum"], f"{where}.enum")
        self._close(opened, kind)
        is_required = self._truth(said.get("required"), f"{where}.required")
        is_optional = self._truth(said.get("optional"), f"{where}.optional")
        accepts_asset = bool(self._truth(said.get("asset_ref_acceptable"), f"{where}.asset_ref_acceptable"))
        return Field(
            name,
            kind,
            self.words(said.get("description"), f"{where}.description"),
            is_required if is_required is not None else not is_optional,
            accepts_asset,
            self._example(kind, said.get("example"), accepts_asset, f"{where}.example"),
        )

    def _kind(self, node: yaml.Node, where: str) -> Kind | None:
        if isinstance(node, yaml.MappingNode):
            return self._record(node, where)
        if isinstance(node, yaml.SequenceNode):
            return self._list(node, where)
        if _is_null(node):
            return None
        if node.tag != _STR:
            self._fault(node, f"{where}.type", f"expected the name of a type, not {node.value[:60]}")
            return Anything()
        kind, fault, is_remark = self._names.kind(node.value, get_line(node))
        if fault:
            self._fault(node, f"{where}.type", fault, is_remark=is_remark)
        return kind

    def _record(self, node: yaml.MappingNode, where: str) -> Kind:
        said = entries(node)
        opened = self._open(said.pop(_REFERENCE, None), where)
        record = Record(tuple(self._named_field(name, inner, f"{where}.{name}") for name, inner in said.items()))
        self._close(opened, record)
        return record

    def _named_field(self, name: str, node: yaml.Node, where: str) -> Field:
        return self._field(name, self._said(node, where) or {}, node, where)

    def _list(self, node: yaml.SequenceNode, where: str) -> Kind:
        """A list of records, whose fields the items are; names of types alone are alternatives."""
        items = node.value
        if items and all(item.tag in (_STR, _NULL) for item in items):
            return OneOf(tuple(self._kind(item, where) or Nothing() for item in items))
        opened = None
        fields: dict[str, Field] = {}
        for at, item in enumerate(items):
            said = entries(item)
            if set(said) == {_REFERENCE}:
                opened = self._open(said[_REFERENCE], where)
                continue
            name = self.words(said.get("name"), f"{where}[{at}].name")
            if not name:
                self._fault(item, f"{where}[{at}]", "expected a mapping with the `name` and `type` of a field")
            elif name in fields:
                self._fault(item, f"{where}[{at}]", f"there are two fields {name!r}; remove one")
            else:
                fields[name] = self._field(name, said, item, f"{where}[].{name}")
        made = ListOf(Record(tuple(fields.values())) if fields else Anything())
        self._close(opened, made)
        return made

    def _open(self, node: yaml.Node | None, where: str) -> str:
        """The name that `_type_ref` gives to the type around it; it counts once that is read."""
        name = self.words(node, f"{where}.{_REFERENCE}")
        if node is not None and name and (fault := self._names.open(name, node.start_mark.index)):
            self._fault(node, f"{where}.{_REFERENCE}", fault)
            return ""
        return name

    def _close(self, name: str | None, kind: Kind) -> None:
        if name:
            self._names.close(name, kind)

    def _choice(self, kind: Kind, node: yaml.Node, where: str) -> Kind:
        if _is_null(node):
            return kind
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self._fault(node, where, "expected a list of the possible values")
            return kind
        if len(node.value) > _LIMIT_CHOICES:
            self._fault(node, where, f"it has more than {_LIMIT_CHOICES:,} values; leave it out")
            return kind
        # That of a list says what its items can be, unless lists are named.
        if isinstance(kind, ListOf) and not any(isinstance(each, yaml.SequenceNode) for each in node.value):
            return ListOf(self._choice(kind.item, node, where))
        values = []
        for each in node.value:
            checked = fitting(kind, _valued(kind, each))
            if checked.faults:
                self._fault(each, where, checked.faults[0].removeprefix("the parameter: "))
            elif checked.value not in values or isinstance(checked.value, bool):
                values.append(checked.value)
        return Choice(kind, tuple(values)) if values else kind

    def _example(self, kind: Kind, node: yaml.Node | None, accepts_asset: bool, where: str) -> Any:
        if node is None or _is_null(node):
            return None
        checked = fitting(kind, _valued(kind, node), levels(accepts_asset))
        if checked.faults:
            self._fault(node, where, checked.faults[0].removeprefix("the parameter: "), is_remark=True)
            return None
        return checked.value

    def _truth(self, node: yaml.Node | None, where: str) -> bool | None:
        if node is None or _is_null(node):
            return None
        value = plain(node)
        if isinstance(value, bool):
            return value
        self._fault(node, where, f"expected true or false, not {str(value)[:60]!r}")
        return None

    def _is_too_large(self, kind: Kind, node: yaml.Node, where: str) -> bool:
        """Types named within types double with each: what fills a line may stand for more than memory holds."""
        count, waiting = 0, [(kind, 0)]
        while waiting:
            within, depth = waiting.pop()
            count += 1
            if count > _LIMIT_KINDS or depth > _LIMIT_DEPTH:
                self._fault(node, where, f"it has more than {_LIMIT_KINDS:,} fields, or nests too deep; write less")
                return True
            waiting += [(part, depth + 1) for part in parts(within)]
        return False


def _is_null(node: yaml.Node | None) -> bool:
    return node is not None and node.tag == _NULL


def _valued(kind: Kind, node: yaml.Node) -> Any:
    """A node as a value of the kind: where text is wanted, `yes`, `1.10` and dates are as they are written."""
    match kind:
        case Text() if isinstance(node, yaml.ScalarNode):
            return node.value
        case Choice(inner, _):
            return _valued(inner, node)
        case OneOf(kinds):
            value = plain(node)
            others = [each for each in kinds if not isinstance(each, Text)]
            is_text = Text() in kinds and all(fitting(each, value).faults for each in others)
            return _valued(Text(), node) if is_text else value
        case ListOf(item) if isinstance(node, yaml.SequenceNode):
            return [_valued(item, each) for each in node.value]
        case MapOf(inner) if isinstance(node, yaml.MappingNode):
            return {key: _valued(inner, each) for key, each in entries(node).items()}
        case Record(fields) if isinstance(node, yaml.MappingNode):
            known = {field.name: field.kind for field in fields}
            return {key: _valued(known.get(key, Anything()), each) for key, each in entries(node).items()}
    return plain(node)


def _defined(node: yaml.Node) -> dict[str, int]:
    """Every name that `_type_ref` gives below a node, and its line."""
    return {inner.value: get_line(inner) for inner in _type_references(node)}


def _type_references(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == _REFERENCE and isinstance(value, yaml.ScalarNode):
                yield value
            else:
                yield from _type_references(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _type_references(item)
