"""Arguments: values held against kinds, each fault in a sentence that names its place."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from goose_like.core.spelling import did_you_mean

from .kinds import (
    WRAPPED,
    Anything,
    Choice,
    Field,
    Foreign,
    Kind,
    ListOf,
    MapOf,
    Nothing,
    Number,
    OneOf,
    Parameter,
    Record,
    Response,
    Text,
    Truth,
    Whole,
    levels,
    named,
    takes_mapping,
)
from .references import read_reference

Path: TypeAlias = tuple[str | int, ...]

_LIMIT_FAULTS = 20
_SIMPLE = re.compile(r"[^\W\d][\w-]*")


@dataclass(frozen=True, slots=True)
class Checked:
    """A value as it goes to a command. `references` are the places in it where a reference stands for what it means.

    1.0 has become 1 where a whole number is wanted, and null that stands for an optional value is gone.
    """

    value: Any
    faults: tuple[str, ...] = ()
    references: tuple[Path, ...] = ()


def given(parameter: Parameter | None, arguments: Mapping[str, Any]) -> Any:
    """The value of a parameter in the arguments of a tool's call; None where it is absent.

    One that is to be given as `param` may also stand there without it, if it is a mapping.
    """
    if parameter is None:
        return None
    if not parameter.is_wrapped:
        return dict(arguments)
    if WRAPPED in arguments and len(arguments) == 1:
        return arguments[WRAPPED]
    return dict(arguments) or None


def check(parameter: Parameter | None, value: Any) -> Checked:
    """Whether a command can be called with a value; never raises.

    This takes what `schema` takes, and more: null for what is optional; references between `<|` and `|>`, in blanks,
    with numbers or null in `field_path`, or as mappings in place of items. It takes less in one thing: a reference is
    refused where none is accepted, though it is text or a mapping.
    """
    if parameter is None:
        is_empty = value is None or value == {}
        return Checked(None, () if is_empty else ("the command takes no parameter; leave it out",))
    if value is None and not parameter.is_required:
        return Checked(None)
    if value is None and not _takes_null(parameter.kind):
        return Checked(None, (f"the parameter is missing; expected {named(parameter.kind)}",))
    comparison = _Comparison()
    taken = comparison.take(parameter.kind, value, (), levels(parameter.accepts_asset))
    return Checked(taken, tuple(comparison.faults), tuple(comparison.references))


def check_response(response: Response | None, value: Any) -> tuple[str, ...]:
    """What a command's answer lacks, or has that was not promised; nothing where nothing was promised.

    A reference may stand anywhere in it.
    """
    if response is None:
        return ()
    comparison = _Comparison(is_response=True)
    comparison.take(response.kind, value, ())
    return tuple(comparison.faults)


def fitting(kind: Kind, value: Any, levels_left: int = 0) -> Checked:
    """A value held against a kind alone, as an example or one of a choice; references as `levels` counts them."""
    comparison = _Comparison()
    return Checked(comparison.take(kind, value, (), levels_left), tuple(comparison.faults))


class _Comparison:
    """One value held against one kind: what is wrong, and where references stand."""

    def __init__(self, is_response: bool = False) -> None:
        self.faults: list[str] = []
        self.references: list[Path] = []
        self._is_response = is_response
        self._whole = "the response" if is_response else "the parameter"

    def take(self, kind: Kind, value: Any, path: Path, levels_left: int = 0) -> Any:
        """The value as the kind has it, or as it is where there is a fault."""
        if len(self.faults) > _LIMIT_FAULTS:
            return value
        is_accepted = levels_left > 0 or self._is_response
        if _refers(kind, value, is_accepted):
            if is_accepted:
                self.references.append(path)
            else:
                self._wrong(path, "a reference to an asset is not accepted here; give the value itself")
            return value
        return self._take_value(kind, value, path, levels_left)

    def _take_value(self, kind: Kind, value: Any, path: Path, levels_left: int) -> Any:
        """As `take`, where the value itself is no reference."""
        match kind:
            case Anything() | Foreign():
                return value
            case Choice(inner, values):
                return self._choice(inner, values, value, path, levels_left)
            case OneOf(kinds):
                return self._one_of(kinds, value, path, levels_left)
            case ListOf(item) if isinstance(value, list):
                return [self.take(item, each, (*path, at), levels_left - 1) for at, each in enumerate(value)]
            case MapOf(inner) if isinstance(value, Mapping):
                return {key: self.take(inner, each, (*path, key)) for key, each in value.items()}
            case Record(fields) if isinstance(value, Mapping):
                return self._record(fields, value, path)
        return self._scalar(kind, value, path)

    def _scalar(self, kind: Kind, value: Any, path: Path) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        match kind:
            case Text() if isinstance(value, str):
                return value
            case Truth() if isinstance(value, bool):
                return value
            case Nothing() if value is None:
                return value
            case Whole() if is_number and value == value // 1 and math.isfinite(value):
                return int(value)
            case Number() if is_number and (self._is_response or isinstance(value, int) or math.isfinite(value)):
                return value
        return self._wrong(path, f"expected {named(kind)}, not {_said(value)}", value)

    def _choice(self, kind: Kind, values: tuple[Any, ...], value: Any, path: Path, levels_left: int) -> Any:
        before = len(self.faults)
        taken = self._take_value(kind, value, path, levels_left)
        if len(self.faults) > before or any(_same(taken, each) for each in values):
            return taken
        known = [each if isinstance(each, str) else _said(each) for each in values]
        near = did_you_mean(value if isinstance(value, str) else "", known)
        return self._wrong(path, f"{_said(value)} is none of its values; {near}", value)

    def _one_of(self, kinds: tuple[Kind, ...], value: Any, path: Path, levels_left: int) -> Any:
        tried = []
        for kind in kinds:
            comparison = _Comparison(self._is_response)
            taken = comparison._take_value(kind, value, path, levels_left)
            if not comparison.faults:
                self.references += comparison.references
                return taken
            tried.append((kind, comparison.faults))
        # Where only one could be meant, its own faults say more.
        inner = [faults for kind, faults in tried if _is_shaped(kind, value)]
        if len(inner) == 1:
            self.faults += inner[0]
            return value
        return self._wrong(path, f"expected {named(OneOf(kinds))}, not {_said(value)}", value)

    def _record(self, fields: tuple[Field, ...], value: Mapping[str, Any], path: Path) -> dict[str, Any]:
        known = {field.name: field for field in fields}
        for key in value:
            if key not in known and len(self.faults) <= _LIMIT_FAULTS:
                self._wrong((*path, key), f"there is no such key; {did_you_mean(str(key), known)}")
        taken: dict[str, Any] = {}
        for field in fields:
            at = (*path, field.name)
            if value.get(field.name) is None and not field.is_required and not _takes_null(field.kind):
                continue
            if field.name in value:
                taken[field.name] = self.take(field.kind, value[field.name], at, levels(field.accepts_asset))
            elif field.is_required:
                self._wrong(at, f"this is missing; expected {named(field.kind)}")
        return taken

    def _wrong(self, path: Path, text: str, value: Any = None) -> Any:
        if len(self.faults) < _LIMIT_FAULTS:
            self.faults.append(f"{_place(path) or self._whole}: {text}")
        elif len(self.faults) == _LIMIT_FAULTS:
            self.faults.append("and more of that kind")
        return value


def _refers(kind: Kind, value: Any, is_accepted: bool) -> bool:
    """Whether a value is meant as a reference. Where none is accepted, a mapping is one only if it can't be else."""
    if isinstance(value, str):
        return read_reference(value) is not None
    if not isinstance(value, Mapping) or "asset_id" not in value or takes_mapping(kind, {"asset_id"}):
        return False
    return (is_accepted or "field_path" in value) and read_reference(value) is not None


def _takes_null(kind: Kind) -> bool:
    return not fitting(kind, None).faults


def _is_shaped(kind: Kind, value: Any) -> bool:
    match kind:
        case Choice(inner, _):
            return _is_shaped(inner, value)
        case ListOf():
            return isinstance(value, list)
        case MapOf() | Record():
            return isinstance(value, Mapping)
        case OneOf(kinds):
            return any(_is_shaped(each, value) for each in kinds)
    return False


def _same(one: Any, other: Any) -> bool:
    """Equality as JSON has it: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _place(path: Sequence[str | int]) -> str:
    said = ""
    for step in path:
        if isinstance(step, str) and _SIMPLE.fullmatch(step):
            said += f".{step}" if said else step
        else:
            said += f"[{_said(step)}]"
    return said


def _said(value: Any) -> str:
    """A value in a sentence: JSON's words, and not all of a long text."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return repr(value if len(value) <= 60 else value[:57] + "...")
        case int() if abs(value) > 10**30:
            return "a huge number"
        case int() | float():
            return repr(value)
        case list():
            return "a list"
        case Mapping():
            return "a mapping"
    return f"a {type(value).__name__}"
