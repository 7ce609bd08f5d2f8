"""The decorator `dataclass` of the standard library, for a fifth of its time: a start makes a hundred such classes.

The library writes and compiles the source of each method. Here the classes share all methods but `__init__`. That is
compiled for a class with more than a few instances: a start makes only one or two of most classes.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cached_property, partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, *, frozen: bool = False, slots: bool = False) -> Any:
        """Make a class a dataclass, as `dataclasses.dataclass` does with the same options."""
        if cls is None:
            return lambda cls: _process_class(cls, frozen=frozen, slots=slots)
        return _process_class(cls, frozen=frozen, slots=slots)


def _process_class(cls: type, *, frozen: bool, slots: bool) -> Any:
    """Let the library find the fields, and add the methods."""
    has_own_hash = "__hash__" in vars(cls)
    made: Any = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots)
    made.__dataclass_params__.frozen = frozen  # the library looks there when somebody derives from the class
    fields = dataclasses.fields(made)
    methods: dict[str, Any] = {
        "__init__": _LaterInit(made, fields, frozen=frozen),
        "__repr__": _make_repr(fields),
        "__eq__": _make_eq(fields),
        "__hash__": None,
    }
    if frozen:
        methods["__hash__"] = _make_hash(fields)
        methods["__getstate__"] = _get_state
        methods["__setstate__"] = _set_state
        made.__setattr__ = _refuse_to_set
        made.__delattr__ = _refuse_to_delete
    for name, method in methods.items():
        is_defined = name in vars(made)
        if name == "__hash__":
            is_defined = has_own_hash
        if not is_defined:
            setattr(made, name, method)
    return made


_FEW_INSTANCES = 40
"""Compiling an `__init__` takes as long as setting the fields of this many instances one by one, or longer."""


class _FieldPlan:
    """What an instance gets for the fields that its maker does not give."""

    def __init__(self, fields: tuple[Field[Any], ...]) -> None:
        self.defaults: dict[str, Any] = {field.name: field.default for field in fields}
        """All fields in their order. `MISSING` stands for no default."""
        self.names: list[str] = []
        """Those that the maker may give."""
        self.required: set[str] = set()
        self.factories: dict[str, Callable[[], Any]] = {}
        for field in fields:
            if field.init:
                self.names.append(field.name)
            if field.default_factory is not MISSING:
                self.factories[field.name] = field.default_factory
            elif _is_required(field):
                self.required.add(field.name)
        self.known: set[str] = set(self.names)


class _LaterInit:
    """A placeholder for the `__init__` of a class. It sets the fields of the first instances, and is then replaced."""

    def __init__(self, made: type, fields: tuple[Field[Any], ...], *, frozen: bool) -> None:
        self._made: Any = made
        self._fields = fields
        self._frozen = frozen
        self._instance_count = 0

    def __get__(self, instance: object, owner: type) -> Any:
        """Return the method for an instance. Compile it for the class itself, whose signature may be wanted."""
        self._instance_count += 1
        # Python 3.13 passes the class in place of an instance when it looks for the signature.
        if isinstance(instance, self._made) and self._instance_count <= _FEW_INSTANCES:
            return partial(self._set_fields, instance)
        return self._compile().__get__(instance, owner)

    @cached_property
    def _plan(self) -> _FieldPlan:
        return _FieldPlan(self._fields)

    def _compile(self) -> Any:
        has_post_init = hasattr(self._made, "__post_init__")
        init = _make_init(self._fields, has_post_init=has_post_init, frozen=self._frozen)
        self._made.__init__ = init
        return init

    def _set_fields(self, instance: Any, *args: Any, **named: Any) -> None:
        plan = self._plan
        given = dict(zip(plan.names, args, strict=False)) | named
        has_each_once = len(given) == len(args) + len(named)
        if not has_each_once or not plan.required <= given.keys() <= plan.known:
            self._compile()(instance, *args, **named)  # raises the error in the words of Python
            return
        values = plan.defaults | given
        for name, make in plan.factories.items():
            if name not in given:
                values[name] = make()
        set_field = object.__setattr__ if self._frozen else setattr
        for name, value in values.items():
            if value is not MISSING:  # else `__post_init__` sets it
                set_field(instance, name, value)
        if hasattr(instance, "__post_init__"):
            instance.__post_init__()


def _is_required(field: Field[Any]) -> bool:
    return field.init and field.default is MISSING and field.default_factory is MISSING


def _make_init(fields: tuple[Field[Any], ...], *, has_post_init: bool, frozen: bool) -> Any:
    """Compile the method that takes the values of the fields. Each default is a name of its own in the source."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": MISSING}
    parameters = ["self"]
    lines = []
    for field in fields:
        value = field.name
        if field.default is not MISSING:
            names[f"_{field.name}"] = field.default
            parameters.append(f"{field.name}=_{field.name}")
        elif field.default_factory is not MISSING:
            names[f"_{field.name}"] = field.default_factory
            value = f"_{field.name}()"
            if field.init:
                parameters.append(f"{field.name}=_MISSING")
                value = f"{value} if {field.name} is _MISSING else {field.name}"
        elif field.init:
            parameters.append(field.name)
        else:
            continue  # `__post_init__` sets it
        line = f"self.{field.name} = {value}"
        if frozen:
            line = f"_set(self, {field.name!r}, {value})"
        lines.append(line)
    if has_post_init:
        lines.append("self.__post_init__()")
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n    {body}", names)
    return names["__init__"]


def _make_getter(names: list[str]) -> Callable[[Any], Any]:
    """Return a function that gets the values of these fields, by which instances are compared or hashed."""
    if not names:
        return lambda _: ()
    return attrgetter(*names)


def _make_eq(fields: tuple[Field[Any], ...]) -> Any:
    get = _make_getter([field.name for field in fields if field.compare])

    def compare(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return get(self) == get(other)

    return compare


def _make_hash(fields: tuple[Field[Any], ...]) -> Any:
    get = _make_getter([field.name for field in fields if field.compare and field.hash is not False])
    return lambda self: hash(get(self))


def _make_repr(fields: tuple[Field[Any], ...]) -> Any:
    names = [field.name for field in fields if field.repr]

    @recursive_repr()
    def describe(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return describe


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
