"""Tests of tools: schemas and descriptions from signatures and docstrings."""

import json
import re
import threading
from collections.abc import Sequence
from enum import Enum
from inspect import Parameter, Signature
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, create_model, field_validator
from pydantic.json_schema import SkipJsonSchema

from goose_like.agent.tool_call import call_tool
from goose_like.core.json_schema import simplify_schema
from goose_like.core.message import FrozenModel, Utf8Text
from goose_like.core.tool import ToolOptions, make_tool, tool
from tests.fakes import call


class Colour(Enum):
    red = "red"
    blue = "blue"


class Point(BaseModel):
    x: int
    title: str = "origin"


class Node(BaseModel):
    value: int
    children: list["Node"] = []


def schema(function):
    return make_tool(function).spec.schema


def properties(function):
    return schema(function)["properties"]


async def run(function, arguments: Any = "{}"):
    made = make_tool(function)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return await call_tool({made.name: made}, call(made.name, text))


def test_plain_types():
    def f(a: int, b: float, c: bool, d: str, e: list[int], g: dict[str, int]): ...

    assert schema(f) == {
        "type": "object",
        "required": ["a", "b", "c", "d", "e", "g"],
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "number"},
            "c": {"type": "boolean"},
            "d": {"type": "string"},
            "e": {"type": "array", "items": {"type": "integer"}},
            "g": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    }


class Place(FrozenModel):
    """A place in a file, with `line` from 1."""

    path: Utf8Text
    line: int
    side: Literal["left", "right"] = "left"
    words: tuple[str, ...] = Field(default=(), description="Only these.")
    hidden: SkipJsonSchema[int] = 0


class BareModel(FrozenModel):
    name: str = Field(default="", description="A name.")
    others: list[Place]


class ModelWithLimit(FrozenModel):
    line: int = Field(ge=1)


class ModelWithAlias(FrozenModel):
    line: int = Field(alias="Line")


class ModelWithMore(FrozenModel):
    model_config = ConfigDict(extra="allow")

    line: int


class ModelWithOwnSchema(FrozenModel):
    line: int

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        return {**handler(schema), "examples": [{"line": 1}]}


class ModelWithComputed(FrozenModel):
    line: int

    @field_validator("line", mode="plain", json_schema_input_type=str)
    @classmethod
    def read(cls, value: Any) -> int:
        return int(value)


MODELS = (Place, BareModel, ModelWithLimit, ModelWithAlias, ModelWithMore, ModelWithOwnSchema, ModelWithComputed)

PLAIN_VALUES = st.one_of(
    st.sampled_from([(list[model], []) for model in MODELS]),
    st.sampled_from([(model, None) for model in MODELS]),
    st.tuples(st.just(Annotated[list[Place], BeforeValidator(len)]), st.just([])),
    st.tuples(st.just(Annotated[list[Place], BeforeValidator(len, json_schema_input_type=int)]), st.just([])),
    st.tuples(st.just(Utf8Text), st.text("ab \n")),
    st.tuples(st.just(str), st.text("ab \n")),
    st.tuples(st.just(int), st.integers(-1, 2)),
    st.tuples(st.just(float), st.one_of(st.integers(0, 1), st.floats(allow_nan=False))),
    st.tuples(st.just(bool), st.booleans()),
    st.tuples(st.just(dict[str, JsonValue]), st.one_of(st.just({}), st.just({"a": [1]}))),
    st.tuples(st.just(Literal["b", "a"]), st.sampled_from(["a", "b"])),
    st.tuples(st.just(Literal["a"]), st.just("a")),
    st.tuples(st.just(int | None), st.one_of(st.none(), st.integers(0, 1))),
    st.tuples(st.just(Optional[Literal["a", "b"]]), st.one_of(st.none(), st.just("a"))),  # noqa: UP045
    st.tuples(st.just(list[str]), st.one_of(st.just([]), st.just(["a"]))),
    st.tuples(st.just(Sequence[int]), st.one_of(st.just(()), st.just((1,)))),
    st.tuples(st.just(Sequence[str | None]), st.just(())),
    st.tuples(st.just(Annotated[str, Field(description="A name.")]), st.text("ab \n")),
    st.tuples(st.just(Annotated[int, Field(description="A number.", gt=3)]), st.just(4)),
)


@given(values=st.lists(PLAIN_VALUES, min_size=1), required_count=st.integers(0, 3), is_described=st.booleans())
def test_plain_types_have_the_schema_that_pydantic_makes(values, required_count, is_described):
    parameters = []
    fields = {}
    for index, (kind, default) in enumerate(values):
        name = f"argument_{index}"
        is_required = index < required_count
        parameters.append(
            Parameter(
                name,
                Parameter.POSITIONAL_OR_KEYWORD,
                annotation=kind,
                default=Parameter.empty if is_required else default,
            )
        )
        description = {"description": f"Number {index}."} if is_described else {}
        fields[name] = (kind, Field(... if is_required else default, **description))

    def f(): ...

    f.__signature__ = Signature(parameters)
    f.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    if is_described:
        f.__doc__ = "Text.\n\nArgs:\n" + "\n".join(f"    {name}: Number {i}." for i, name in enumerate(fields))
    expected = simplify_schema(create_model("f", **fields).model_json_schema())
    # The order of the keys is part of the prompt, which is cached.
    assert json.dumps(schema(f)) == json.dumps(expected)


def test_choices_and_defaults():
    def f(a: Optional[int] = None, b: Literal["x", "y"] = "x", c: Colour = Colour.red, d: str | None = None): ...  # noqa: UP045

    assert schema(f) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"enum": ["x", "y"], "type": "string", "default": "x"},
            "c": {"enum": ["red", "blue"], "type": "string", "default": "red"},
            "d": {"type": "string"},
        },
    }


def test_nested_models_are_inlined_and_keep_a_field_called_title():
    def f(points: list[Point]): ...

    (points,) = properties(f).values()
    assert points["items"]["properties"] == {
        "x": {"type": "integer"},
        "title": {"type": "string", "default": "origin"},
    }
    assert "$ref" not in json.dumps(schema(f))


def test_defaults_are_data_not_schemas():
    def f(properties: dict[str, str] = {"title": "kept"}): ...  # noqa: B006

    assert properties(f) == {
        "properties": {"type": "object", "additionalProperties": {"type": "string"}, "default": {"title": "kept"}}
    }


async def test_recursive_model():
    def f(tree: Node) -> int:
        return sum(child.value for child in tree.children)

    made = schema(f)
    assert made["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert (await run(f, {"tree": {"value": 1, "children": [{"value": 2}, {"value": 3}]}})).output == "5"


def test_annotated_keeps_constraint_and_description():
    def f(count: Annotated[int, Field(ge=3, description="how many")] = 4):
        """Counts."""

    assert properties(f) == {"count": {"type": "integer", "minimum": 3, "default": 4, "description": "how many"}}


GOOGLE = """Adds.

More about it.

Args:
    a (int): the first
    b: the second
"""
NUMPY = """Adds.

More about it.

Parameters
----------
a : int
    the first
b
    the second
"""
SPHINX = """Adds.

More about it.

:param a: the first
:param b: the second
"""


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_docstring_styles(text):
    def f(a: int, b: int): ...

    f.__doc__ = text
    spec = make_tool(f).spec
    assert spec.description == "Adds.\n\nMore about it."
    assert {name: value["description"] for name, value in spec.schema["properties"].items()} == {
        "a": "the first",
        "b": "the second",
    }


def test_docstring_that_lacks_an_argument_or_is_not_there():
    def f(a: int, b: int):
        """Adds.

        Args:
            b: the second
            c: not a parameter
        """

    assert properties(f) == {"a": {"type": "integer"}, "b": {"type": "integer", "description": "the second"}}

    def g(a): ...

    spec = make_tool(g).spec
    assert (spec.description, spec.schema["properties"]) == ("", {"a": {}})


async def test_parameters_with_names_of_pydantic_itself():
    def f(schema: str, copy: int, json: bool, model_config: str = "", _private: int = 0, self_: int = 1):
        return [schema, copy, json, model_config, _private, self_]

    given = {"schema": "s", "copy": 1, "json": True, "model_config": "m", "_private": 5}
    assert list(properties(f)) == ["schema", "copy", "json", "model_config", "_private", "self_"]
    assert json.loads((await run(f, given)).output) == ["s", 1, True, "m", 5, 1]


async def test_defaults_are_the_functions_own():
    marker = object()

    def f(a: Any = marker) -> bool:
        return a is marker

    with pytest.warns(UserWarning, match="not JSON serializable"):
        made = make_tool(f)
    assert (await call_tool({"f": made}, call("f"))).output == "true"


@pytest.mark.parametrize(
    "function",
    [
        lambda *rest: None,
        lambda **rest: None,
        lambda a, /: None,
    ],
)
def test_parameters_without_a_json_form(function):
    with pytest.raises(TypeError, match="no JSON form; name each argument"):
        make_tool(function)


def test_types_that_json_does_not_know():
    def f(lock: threading.Lock): ...

    def g(lock: "Unknown"): ...  # noqa: F821

    with pytest.raises(TypeError, match="tool 'f'"):
        make_tool(f)
    with pytest.raises(TypeError, match="tool 'g': its type hints can't be read"):
        make_tool(g)


class Values:
    pass


@pytest.mark.parametrize(
    ("hint", "written"), [(Values, "Values"), (list[Values], r"list\[.*Values\]"), (range, "range")]
)
def test_an_argument_without_a_json_form_is_named(hint, written):
    def f(count: int, values: hint):
        pass

    with pytest.raises(TypeError) as caught:
        make_tool(f)
    assert re.fullmatch(
        rf"tool 'f': argument 'values': (\w+\.)*{written} has no JSON form; use str, int, float, bool, list, dict, "
        "Literal, an enum, a dataclass or a pydantic model",
        str(caught.value),
    )


def test_a_method_without_self():
    class Kind:
        def nothing():
            """Does."""

        def with_hint(sides: int):
            """Does."""

        def with_description(sides):
            """Does.

            Args:
                sides: how many
            """

        def usual(this, sides: int):
            """Does."""

    for name, written in {
        "nothing": "self",
        "with_hint": "self, sides: int",
        "with_description": "self, sides",
    }.items():
        with pytest.raises(TypeError, match=rf"tool '{name}': its .* no `self`; write `def {name}\({written}\)`"):
            make_tool(getattr(Kind(), name))
    assert list(make_tool(Kind().usual).spec.schema["properties"]) == ["sides"]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (ToolOptions(), []),
        (ToolOptions(parallel="same tool", aliases=("find",)), []),
        (ToolOptions(parallel=True), ["find", "ListDir", "run"]),
        (ToolOptions(read_only=True), ["find", "ListDir", "run"]),
        (ToolOptions(read_only=("find", "list_dir")), ["find", "ListDir"]),
    ],
)
def test_names_under_which_a_tool_only_reads(options, names):
    assert [name for name in ("find", "ListDir", "run") if options.is_read_only(name)] == names


def test_aliases_are_found_however_they_are_spelled():
    options = ToolOptions(aliases=("todo_write", "ls"))
    names = ("TodoWrite", "todo-write", "LS", "todo", "write", "")
    assert [name for name in names if options.has_alias(name)] == ["TodoWrite", "todo-write", "LS"]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "other"),
        ({"edits": True}, "edit"),
        ({"parallel": True}, "read"),
        ({"parallel": "same tool"}, "other"),
        ({"read_only": True}, "read"),
        ({"read_only": ("grep",)}, "other"),
        ({"parallel": True, "kind": "fetch"}, "fetch"),
        ({"edits": True, "kind": "execute"}, "execute"),
    ],
)
def test_the_kind_follows_from_the_other_options(options, kind):
    assert ToolOptions(**options).find_kind() == kind


@pytest.mark.parametrize(
    ("title", "arguments", "text"),
    [
        ("", {}, "draw"),
        ("", {"shape": "circle", "size": 3}, "draw circle"),
        ("", {"sizes": [1, {"é": None}]}, 'draw [1, {"é": null}]'),
        ("", {"": "no JSON"}, "draw no JSON"),
        ("Draw {shape}", {"shape": "a {size} circle"}, "Draw a {size} circle"),
        ("Draw {shape} of {size}", {"size": 3}, "Draw  of 3"),
        ("{shape}", {"shape": None}, "draw"),
    ],
)
def test_a_title_has_the_arguments(title, arguments, text):
    assert ToolOptions(title=title).fill_title("draw", arguments) == text


@pytest.mark.parametrize("options", [{"title": "Draw {shapes}"}, {"paths": ("shapes",)}])
def test_a_title_and_paths_name_arguments(options):
    @tool(**options)
    def draw(shape: str) -> None:
        """Draw a shape."""

    with pytest.raises(TypeError, match="tool 'draw': `title` or `paths` names 'shapes', which is no argument"):
        make_tool(draw)
