"""Our decorator `dataclass` beside the one of the standard library."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, field, fields, replace
from dataclasses import dataclass as library_dataclass
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.dataclass import dataclass

T = TypeVar("T")
OPTIONS = [{}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True}]


class Plain:
    """A class with every kind of field that is in use."""

    count: int
    text: str = "none"
    names: list[str] = field(default_factory=list)
    secret: bytes = field(default=b"", repr=False)
    note: str = field(default="", compare=False)
    kind: ClassVar[str] = "plain"


class Empty:
    """A class without fields."""


def make_both(kind: type, options: dict[str, bool]) -> tuple[Any, Any]:
    """Return a copy of a class with our decorator, and one with the library's."""
    content = dict(vars(kind))
    del content["__dict__"], content["__weakref__"]
    ours = type(kind.__name__, (), content)
    theirs = type(kind.__name__, (), content)
    return dataclass(**options)(ours), library_dataclass(**options)(theirs)


@pytest.mark.parametrize("options", OPTIONS)
@given(count=st.integers(0, 2), text=st.sampled_from(["a", "b"]), other=st.integers(0, 2), note=st.text(max_size=2))
def test_values_behave_as_those_of_the_library(options, count, text, other, note):
    ours, theirs = make_both(Plain, options)
    mine = ours(count, text=text, names=["x"], note=note)
    same = theirs(count, text=text, names=["x"], note=note)
    assert repr(mine) == repr(same)
    assert (mine == ours(other, text, ["x"])) == (same == theirs(other, text, ["x"]))
    assert mine != same
    assert ours(count) == ours(count)
    assert ours(count).names is not ours(count).names
    assert dataclasses.asdict(mine) == dataclasses.asdict(same)
    assert replace(mine, text="new").text == "new"
    assert copy.deepcopy(mine) == mine == copy.copy(mine)


@pytest.mark.parametrize("kind", [Plain, Empty])
@pytest.mark.parametrize("options", OPTIONS)
def test_classes_have_the_same_form(kind, options):
    ours, theirs = make_both(kind, options)
    assert [each.name for each in fields(ours)] == [each.name for each in fields(theirs)]
    assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)
    assert ours.__match_args__ == theirs.__match_args__
    assert getattr(ours, "__slots__", None) == getattr(theirs, "__slots__", None)
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    arguments = [1] * (kind is Plain)
    assert repr(ours(*arguments)) == repr(theirs(*arguments))
    assert ours(*arguments) == ours(*arguments)


@pytest.mark.parametrize("slots", [True, False])
def test_a_frozen_value_refuses_changes_and_can_be_a_key(slots):
    @dataclass(frozen=True, slots=slots)
    class Point:
        x: int
        y: int = 0
        details: dict[str, int] = field(default_factory=dict, hash=False)

    point = Point(1)
    assert point != Point(1, details={"z": 2})
    for change in (lambda: setattr(point, "x", 2), lambda: setattr(point, "z", 2), lambda: delattr(point, "x")):
        with pytest.raises(FrozenInstanceError):
            change()
    assert {point: "first"}[Point(1, 0)] == "first"
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Point()  # type: ignore[call-arg]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_first_instances_are_made_as_the_later_ones(options):
    ours, theirs = make_both(Plain, options)
    for number in range(20):
        mine = ours(number, "a", secret=b"x")
        assert dataclasses.astuple(mine) == dataclasses.astuple(theirs(number, "a", secret=b"x"))
        assert dataclasses.astuple(ours(count=number)) == dataclasses.astuple(theirs(number))


@pytest.mark.parametrize(
    ("args", "named"),
    [((), {}), ((1, "a", [], b"", "", "more"), {}), ((1,), {"other": 2}), ((1,), {"count": 2}), ((), {"text": "a"})],
)
def test_wrong_arguments_are_the_errors_of_python(args, named):
    ours, theirs = make_both(Plain, {})
    with pytest.raises(TypeError) as expected:
        theirs(*args, **named)
    words = str(expected.value).rpartition(".")[2]
    for _ in range(2):
        with pytest.raises(TypeError) as raised:
            ours(*args, **named)
        assert str(raised.value) == words


def test_a_class_keeps_its_own_methods():
    @dataclass(frozen=True)
    class Name:
        text: str
        size: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "size", len(self.text))

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Name)

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return self.text

    name = Name("two")
    assert name.size == 3
    assert name == Name("other")
    assert hash(name) == 7
    assert repr(name) == "two"


def test_classes_can_be_derived_from_and_be_generic():
    @dataclass(frozen=True)
    class Base(Generic[T]):
        value: T

    @library_dataclass(frozen=True)
    class Derived(Base[int]):
        more: int = 0

    assert Derived(1, 2) == Derived(1, 2)
    assert repr(Base[str]("x")).endswith("Base(value='x')")
    with pytest.raises(TypeError, match="frozen"):
        library_dataclass(type("Open", (Base,), {}))


def test_a_recursive_value_can_be_shown():
    @dataclass(slots=True)
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")


@dataclass(frozen=True, slots=True)
class Sent:
    """A value that another process receives."""

    text: str


def test_a_frozen_value_can_be_pickled():
    assert pickle.loads(pickle.dumps(Sent("x"))) == Sent("x")


def test_a_start_makes_no_dataclasses_with_the_library():
    modules = "goose_like.cli.run, goose_like_toolkits.developer.toolkit, goose_like_toolkits.delegate.toolkit"
    code = f"""
import dataclasses, sys, {modules}
for name, module in sorted(sys.modules.items()):
    if name.startswith("goose_like") and getattr(module, "dataclass", None) is dataclasses.dataclass:
        print(name)
"""
    command = [sys.executable, "-c", code]
    names = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    # Options that the decorator does not have, and a program that runs alone.
    exempt = {"goose_like.agent.hook_runner", "goose_like.workspace.permissions.policy"}
    assert set(names) - exempt == set()
