"""Values that a storage writes and reads again: each comes back as it was."""

import json
import sys
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from concopilot.framework.asset import Asset, AssetRef
from concopilot.framework.cerebrum import InteractParameter, InteractResponse
from concopilot.framework.identity import Identity
from concopilot.framework.message import Message
from concopilot.framework.resource.category import LLM
from concopilot.util import ClassDict
from goose_like_toolkits.components.worker.stored_values import decode, encode
from hypothesis import given
from hypothesis import strategies as st


class Point(NamedTuple):
    x: Any
    y: Any


class Colour(Enum):
    RED = "r"


class Level(IntEnum):
    LOW = 1


class Own(ClassDict):
    pass


@dataclass(frozen=True)
class Order:
    number: int
    lines: tuple[str, ...] = ()


USER = Identity(role="user", id=UUID(int=7), name="Ada")
MESSAGE = Message(sender=USER, receiver="cerebrum", content_type="command", content={"command": "count", "param": {}})

VALUES = [
    *(None, True, 3, 2.5, "text", "\ud800", [1, [2]], {"a": {"b": 1}}, {"$type": "tuple", "value": [1]}),
    *((1, (2, 3)), {1, 2}, frozenset({1}), deque([1]), range(1, 9, 2), b"\0\xff", bytearray(b"a")),
    *({1: "one", (2, 3): None}, OrderedDict(a=1), ClassDict(a=ClassDict(b=1)), Own(a=1)),
    *(Decimal("1.10"), Fraction(1, 3), 2 + 1j, UUID(int=1), Path("a/b"), 12345678901234567890),
    *(datetime(2026, 1, 2, 3, 4, 5, 6, UTC), date(2026, 1, 2), time(3, 4), timedelta(days=1, microseconds=2)),
    *(Colour.RED, Level.LOW, Point(1, Point(2, 3)), Order(1, ("a",)), USER, MESSAGE, [MESSAGE, {"k": (MESSAGE,)}]),
    *(Asset(asset_type="t", asset_id="i", content={"rows": [(1, b"x")]}), AssetRef(asset_id="i", field_path=["a"])),
    *(
        InteractParameter(message_history=[MESSAGE]),
        InteractResponse(content="c", plugin_calls=[{"plugin_name": "p", "command": "x", "param": 1}]),
    ),
    *(LLM.LLMParameter(prompt="p"), LLM.LLMResponse(content="c")),
]


def _list_types(value: Any) -> list[Any]:
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple):
        parts = list(value)
    return [type(value), *(_list_types(part) for part in parts)]


def _store(value: Any) -> Any:
    return decode(json.loads(json.dumps(encode(value))))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    stored = _store(value)
    assert stored == value
    if not isinstance(value, OrderedDict):  # comes back as a plain mapping
        assert _list_types(stored) == _list_types(value)


def test_a_message_has_its_methods_again() -> None:
    stored = _store(MESSAGE)
    assert stored.retrieve(Message.RetrievalMode.CONTENT).command == "count"
    assert stored.sender.name == "Ada"
    assert stored.nothing is None


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
NESTED = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


@pytest.mark.hypothesis
@given(NESTED)
def test_nested_values_come_back_as_they_were(value: Any) -> None:
    assert _store(value) == value


@pytest.mark.parametrize(
    "value",
    [object(), sys.stdout, print, Order, [1, {"a": object()}]],
    ids=["object", "stream", "function", "class", "nested"],
)
def test_other_values_are_refused_with_their_type(value: Any) -> None:
    with pytest.raises(TypeError, match=r"an? \w+ can't be stored; store plain values, messages"):
        encode(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nests deeper than 120 levels or holds itself"):
        encode(endless)


@pytest.mark.parametrize(
    "name", ["subprocess:Popen", "os:system", "nowhere:Thing", "builtins:list", "x", f"{__name__}:Gone"]
)
def test_only_loaded_classes_that_hold_data_are_restored(name: str) -> None:
    with pytest.raises(ValueError, match="which is not there; store it again"):
        decode({"$type": name, "value": ["touch", "x"]})
