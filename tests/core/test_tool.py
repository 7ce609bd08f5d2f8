"""Schemas are what a model needs to know; every failure of a call is a sentence that tells it what to do."""

import asyncio
import functools
import json
import re
import subprocess
import sys
import threading
from contextvars import ContextVar
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from goose_like.agent.tool_call import call_tool
from goose_like.core.errors import GooseLikeError
from goose_like.core.tool import ToolError, make_tool, tool
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


# --- schemas


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


def test_choices_and_defaults():
    def f(a: Optional[int] = None, b: Literal["x", "y"] = "x", c: Colour = Colour.red, d: str | None = None): ...  # noqa: UP045

    assert schema(f) == {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "b": {"enum": ["x", "y"], "type": "string", "default": "x"},
            "c": {"enum": ["red", "blue"], "type": "string", "default": "red"},
            "d": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
    }


def test_nested_models_are_written_out_and_keep_a_field_called_title():
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


def test_a_method_without_self_is_told():
    class Kind:
        def nothing():
            """Does."""

        def hinted(sides: int):
            """Does."""

        def described(sides):
            """Does.

            Args:
                sides: how many
            """

        def usual(this, sides: int):
            """Does."""

    for name, written in {"nothing": "self", "hinted": "self, sides: int", "described": "self, sides"}.items():
        with pytest.raises(TypeError, match=rf"tool '{name}': its .* no `self`; write `def {name}\({written}\)`"):
            make_tool(getattr(Kind(), name))
    assert list(make_tool(Kind().usual).spec.schema["properties"]) == ["sides"]


# --- calls


async def test_arguments_are_converted():
    async def f(point: Point, colour: Colour, n: int = 2) -> str:
        return f"{point.x + 1} {colour.name} {n}"

    assert (await run(f, {"point": {"x": 1}, "colour": "blue"})).output == "2 blue 2"


async def test_empty_arguments_are_no_arguments():
    def f() -> None: ...

    assert (await run(f, "  ")).output == "done"


async def test_unknown_tool_has_near_name_and_list():
    tools = {name: make_tool(lambda: None) for name in ("shell", "read_file")}
    outcome = await call_tool(tools, call("shel"))
    assert outcome.is_error
    assert outcome.output == "no tool 'shel'; did you mean 'shell'? the tools are: shell, read_file"
    assert (await call_tool(tools, call("zzz"))).output == "no tool 'zzz'; the tools are: shell, read_file"
    assert (await call_tool({}, call("zzz"))).output == "no tool 'zzz'; the tools are: none"


BAD = {
    '{"a": 1': "no valid JSON: Expecting ',' delimiter at character 7 of 7",
    "a=1": "no valid JSON",
    '{"a": 1}{"a": 2}': "more than one JSON value",
    "null": "the arguments are null, not an object",
    "[1]": "the arguments are list, not an object",
    '{"a": "x"}': "field 'a': input should be a valid integer",
    '{"a": 1, "z": 2}': "there is no field 'z'",
    "{}": "field 'a' is missing",
    '{"a": 1, "p": {"x": "w"}}': "field 'p.x': input should be a valid integer",
    "[" * 100_000: "nested too deeply",
}


@pytest.mark.parametrize("arguments", BAD)
async def test_arguments_of_the_wrong_form(arguments):
    def f(a: int, p: Point = Point(x=1)):  # noqa: B008
        raise AssertionError("must not run")

    outcome = await run(f, arguments)
    assert outcome.is_error
    assert BAD[arguments] in outcome.output
    assert "send one JSON object with 'a', 'p' (optional)" in outcome.output
    assert len(outcome.output) < 400


async def test_exception_shows_frames_of_the_toolkit_only():
    def f():
        json.loads("{")

    outcome = await run(f)
    assert outcome.is_error
    first, *frames = outcome.output.splitlines()
    assert first.startswith("JSONDecodeError: Expecting property name")
    assert [frame.partition(" in ")[2] for frame in frames] == ['f: json.loads("{")']


async def test_our_own_errors_have_no_traceback():
    def f():
        raise ToolError("take another one")

    async def g():
        raise GooseLikeError("and another")

    assert (await run(f)).output == "take another one"
    outcome = await run(g)
    assert (outcome.output, outcome.is_error) == ("and another", True)


async def test_time_limit():
    @tool(time_limit_s=0.01)
    async def slow():
        await asyncio.Event().wait()

    release = threading.Event()

    @tool(time_limit_s=0.01)
    def blocking():
        release.wait(20)

    for function in (slow, blocking):
        outcome = await run(function)
        assert outcome.is_error
        assert "stopped after its time limit of 0.01 s; ask for less" in outcome.output
    release.set()


async def test_a_timeout_of_the_tools_own_is_told_as_such():
    async def f():
        raise TimeoutError("the server is slow")

    assert (await run(f)).output.startswith("TimeoutError: the server is slow")


async def test_exit_and_inner_cancellation_stay_within_the_call():
    def leave():
        sys.exit(3)

    async def leave_async():
        sys.exit(3)

    async def cancelled_inside():
        task = asyncio.ensure_future(asyncio.sleep(10))
        task.cancel()
        await task

    def stop():
        raise StopIteration("end")

    for function, words in ((leave, "SystemExit: 3"), (leave_async, "SystemExit: 3"), (stop, "StopIteration: end")):
        outcome = await run(function)
        assert outcome.is_error
        assert words in outcome.output
    assert (await run(cancelled_inside)).is_error


async def test_cancellation_of_the_call_passes():
    started = asyncio.Event()

    async def f():
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(run(f))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_output_forms():
    def give(value):
        def f():
            return value

        return f

    assert (await run(give(Point(x=1)))).output == '{\n  "x": 1,\n  "title": "origin"\n}'
    assert (await run(give("as it is"))).output == "as it is"
    assert (await run(give(b"\xff\x00"))).output.startswith("the tool gave 2 bytes, which are no text; write them to")
    assert (await run(give(object()))).output.startswith("the tool gave a object, which has no text form")
    circle: list[Any] = []
    circle.append(circle)
    for value in (b"", object(), circle):
        assert (await run(give(value))).is_error


variable: ContextVar[str] = ContextVar("variable")


async def test_threads_see_the_context_of_the_call():
    variable.set("seen")
    names = []

    def f():
        names.append(threading.current_thread().name)
        return variable.get()

    assert (await run(f)).output == "seen"
    assert names == ["tool f"]


async def test_plain_functions_that_give_awaitables():
    async def inner(a: int) -> int:
        return a + 1

    @functools.wraps(inner)
    def outer(*args, **kwargs):
        return inner(*args, **kwargs)

    assert (await run(outer, {"a": 1})).output == "2"


def test_a_cancelled_plain_tool_does_not_hold_up_the_end_of_the_process():
    program = """
import asyncio, threading
from goose_like.core.message import ToolCall
from goose_like.core.tool import make_tool
from goose_like.agent.tool_call import call_tool
started = threading.Event()
def f():
    started.set()
    threading.Event().wait()
async def main():
    task = asyncio.create_task(call_tool({"f": make_tool(f)}, ToolCall(id="1", name="f", arguments="{}")))
    await asyncio.to_thread(started.wait)
    task.cancel()
    await asyncio.wait([task])
    print(task.cancelled())
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("True\n", "", 0)
