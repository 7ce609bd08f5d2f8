"""`@tool`: a schema from signature and docstring, and a call whose every failure is an answer to the model."""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, TypeVar, get_type_hints, overload

import docstring_parser
from docstring_parser import Docstring, DocstringStyle
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic_core import PydanticSerializationError, to_json

from .entry_points import nearest
from .errors import GooseLikeError
from .frames import frames
from .images import check_image
from .message import ToolCall
from .threads import run_in_daemon_thread

F = TypeVar("F", bound=Callable[..., Any])

current_call: ContextVar[str] = ContextVar("current_call")
"""The id of the tool call in which this code runs; set by the exchange, unset elsewhere."""

DEFAULT_TIME_LIMIT_S = 600.0


class ToolError(GooseLikeError):
    """Raise it in a tool to tell the model, in one sentence and without a traceback, what to do instead."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool: `schema` is the JSON schema (an object) of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """What `@tool(...)` says of a method."""

    alone: bool = False
    remote: bool = False
    resumes: bool = False
    time_limit_s: float | None = DEFAULT_TIME_LIMIT_S


class AnyArguments(BaseModel):
    """For a tool that checks its arguments itself, by a schema that is not of our making."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True, slots=True)
class Tool:
    """A callable with its schema. `parameters` checks the arguments before the call."""

    spec: ToolSpec
    function: Callable[..., Any]
    parameters: type[BaseModel]
    marks: ToolOptions = ToolOptions()

    @property
    def name(self) -> str:
        return self.spec.name


@dataclass(frozen=True, slots=True)
class Picture:
    """What a tool returns to show the model an image: a PNG, JPEG, GIF or WebP file's bytes, and words beside it.

    `source` tells the model and the person where it came from, as a path or in words. `later` is as for `Passing`.
    """

    data: bytes = field(repr=False)
    source: str
    text: str = ""
    later: str | None = None


@dataclass(frozen=True, slots=True)
class Passing:
    """What a tool returns whose `text` matters in this turn only: from the next one on `later` stands in its place."""

    text: str
    later: str


@dataclass(frozen=True, slots=True)
class Final:
    """What a tool returns with which the turn is done: no model reads it any more. `later` is as for `Passing`."""

    text: str
    later: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call gave, in full length, before it is cut to what a model can read."""

    output: str
    is_error: bool = False
    picture: Picture | None = None
    later: str | None = None
    is_final: bool = False


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    alone: bool = False,
    remote: bool = False,
    resumes: bool = False,
    time_limit_s: float | None = DEFAULT_TIME_LIMIT_S,
) -> Callable[[F], F]: ...
def tool(function: Any = None, /, **marks: Any) -> Any:
    """Makes a toolkit's method a tool: its name, type hints and docstring are what the model is told.

    `alone`: not run beside other calls. `remote`: run by the client, in a later request; what runs here is the check of
    a call: what it raises goes back to the model in the same turn, what it returns is not used. `resumes`: where a turn
    goes on that a killed process left, a call that was cut off is run again, under its id, and goes on by itself.
    `time_limit_s`: after it the call is given up and the model told; None for no limit.
    """

    def mark(function: F) -> F:
        function.__tool__ = ToolOptions(**marks)  # type: ignore[attr-defined]
        return function

    return mark if function is None else mark(function)


_STYLES = {
    ":param": DocstringStyle.REST,
    "Args:": DocstringStyle.GOOGLE,
    "Arguments:": DocstringStyle.GOOGLE,
    "---": DocstringStyle.NUMPYDOC,
}


def documented(text: str) -> Docstring:
    """Read in the style that its marks tell of; to try all of them would cost each start 10 ms."""
    found = {style for mark, style in _STYLES.items() if mark in text} or {DocstringStyle.GOOGLE}
    return docstring_parser.parse(text, found.pop() if len(found) == 1 else DocstringStyle.AUTO)


def make_tool(function: Callable[..., Any]) -> Tool:
    """The tool of a bound method or function; without a `@tool` mark the defaults hold.

    Raises:
        TypeError: when a parameter can't be described as JSON (`*args`, a type that pydantic doesn't know), or a
            method has no `self`.
    """
    text = inspect.getdoc(function) or ""
    spec, parameters = _drawn_once(function.__func__, text) if inspect.ismethod(function) else _drawn(function, text)
    return Tool(spec, function, parameters, getattr(function, "__tool__", ToolOptions()))


@lru_cache(maxsize=512)
def _drawn_once(method: Callable[..., Any], text: str) -> tuple[ToolSpec, type[BaseModel]]:
    """A method's, which many objects share: a server builds its toolkits anew for each request."""
    return _drawn(method, text, is_method=True)


def _drawn(function: Callable[..., Any], text: str, *, is_method: bool = False) -> tuple[ToolSpec, type[BaseModel]]:
    """What a model is told of a function with this docstring, and what checks its arguments."""
    doc = documented(text)
    taken = list(inspect.signature(function).parameters.values())
    if is_method:
        _check_self(function, taken[:1], doc)
    described: dict[str, Any] = {
        entry.arg_name: {"description": entry.description} for entry in doc.params if entry.description
    }
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {function.__name__!r}: its type hints can't be read: {error}") from error
    fields: dict[str, Any] = {}
    for parameter in taken[is_method:]:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"tool {function.__name__!r}: parameter {parameter} has no JSON form; name each argument")
        default = ... if parameter.default is parameter.empty else parameter.default
        # The prefix keeps names such as `schema` or `copy` from clashing with BaseModel's own.
        fields[f"arg_{name}"] = (hints.get(name, Any), Field(default, alias=name, **described.get(name, {})))
    try:
        parameters = create_model(f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
        schema = _plain_schema(parameters.model_json_schema(by_alias=True))
    except PydanticUserError as error:
        raise TypeError(f"tool {function.__name__!r}: {_without_form(hints) or error.message}") from error
    description = "\n\n".join(text for text in (doc.short_description, doc.long_description) if text)
    return ToolSpec(function.__name__, description, schema), parameters


def _check_self(function: Callable[..., Any], taken: Sequence[inspect.Parameter], doc: Docstring) -> None:
    """A method whose first parameter is meant for the model would be called without it."""
    first = next(iter(taken), None)
    is_for_model = first and (first.annotation is not first.empty or first.name in {d.arg_name for d in doc.params})
    if first is None or (is_for_model and first.name not in ("self", "cls")):
        written = f"def {function.__name__}(self{f', {first}' if first else ''})"
        raise TypeError(f"tool {function.__name__!r}: its method has no `self`; write `{written}`")


def _without_form(hints: Mapping[str, Any]) -> str | None:
    """Which of the arguments no JSON can hold, and what it may be instead."""
    for name, hint in hints.items():
        try:
            TypeAdapter(hint).json_schema()
        except PydanticUserError as error:
            if error.code not in ("schema-for-unknown-type", "invalid-for-json-schema"):
                return f"argument {name!r}: {error.message.splitlines()[0]}"
            return (
                f"argument {name!r}: {inspect.formatannotation(hint)} has no JSON form; use str, int, float, bool, "
                "list, dict, Literal, an enum, a dataclass or a pydantic model"
            )
    return None


def _plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with references written out where that ends, and without the titles that only cost tokens."""
    definitions: Mapping[str, Any] = schema.pop("$defs", {})
    values = ("default", "const", "enum", "examples")  # not schemas: a key `title` within is somebody's data

    def plain(node: Any, within: tuple[str, ...], is_properties: bool = False) -> Any:
        if isinstance(node, list):
            return [plain(entry, within) for entry in node]
        if not isinstance(node, dict):
            return node
        name = str(node.get("$ref", "")).removeprefix("#/$defs/")
        if name in definitions and name not in within:
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return plain({**definitions[name], **beside}, (*within, name))
        return {
            key: value
            if key in values and not is_properties
            else plain(value, within, key == "properties" and not is_properties)
            for key, value in node.items()
            if is_properties or not (key == "title" and isinstance(value, str))
        }

    result: dict[str, Any] = plain(schema, ())
    if "$ref" in json.dumps(result):  # a model that holds itself keeps its definitions
        result["$defs"] = {name: plain(body, tuple(definitions)) for name, body in definitions.items()}
    result.setdefault("properties", {})
    result.pop("additionalProperties", None)
    return result


async def call_tool(tools: Mapping[str, Tool], call: ToolCall) -> Outcome:
    """Runs the call and gives its outcome; whatever goes wrong is an outcome too, in words for the model.

    Only cancellation passes.
    """
    if call.name not in tools:
        near = f"did you mean {name!r}? " if (name := nearest(call.name, tools)) else ""
        return Outcome(f"no tool {call.name!r}; {near}the tools are: {', '.join(tools) or 'none'}", True)
    wanted = tools[call.name]
    limit = asyncio.timeout(wanted.marks.time_limit_s)
    try:
        arguments = _read_arguments(wanted, call.arguments)
        async with limit:
            value = await invoke(wanted.function, arguments)
        if isinstance(value, Picture):
            check_image(value.data, value.source)
            return Outcome(value.text or f"[image {value.source}]", picture=value, later=value.later)
        if isinstance(value, Passing):
            return Outcome(value.text, later=value.later)
        if isinstance(value, Final):
            return Outcome(value.text, later=value.later, is_final=True)
        return Outcome(_as_text(value))
    except GooseLikeError as error:
        return Outcome(str(error), True)
    # The one place where any error is caught: it belongs to the model. So do a tool's own `sys.exit` and the
    # cancellation of something within the tool; that of the call itself passes.
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            raise
        if isinstance(error, TimeoutError) and limit.expired():
            return Outcome(
                f"{call.name} was given up after its time limit of {wanted.marks.time_limit_s:g} s; "
                "ask for less at once or try another way",
                True,
            )
        return Outcome(_explain(error, wanted.function), True)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _read_arguments(wanted: Tool, text: str) -> dict[str, Any]:
    """The arguments by name, checked.

    Raises:
        ToolError: in words that say which field is wrong and what was expected.
    """
    expected = f"send one JSON object with {_signature(wanted)}"
    try:
        data = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise ToolError(f"more than one JSON value was sent as arguments; {expected}, once a call") from error
        around = text[max(0, error.pos - 30) : error.pos + 30]
        raise ToolError(
            f"the arguments are no valid JSON: {error.msg} at character {error.pos} of {len(text)}, near {around!r}; "
            f"{expected}"
        ) from error
    except RecursionError as error:
        raise ToolError(f"the arguments are nested too deeply; {expected}") from error
    if not isinstance(data, dict):
        kind = "null" if data is None else type(data).__name__
        raise ToolError(f"the arguments are {kind}, not an object; {expected}")
    try:
        checked = wanted.parameters.model_validate(data)
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors()[:5])
        raise ToolError(f"wrong arguments for {wanted.name}: {faults}; {expected}") from error
    given = {
        field.alias or name: getattr(checked, name)
        for name, field in wanted.parameters.model_fields.items()
        if name in checked.model_fields_set
    }
    return given | (checked.model_extra or {})


def _signature(wanted: Tool) -> str:
    properties, required = wanted.spec.schema["properties"], wanted.spec.schema.get("required", [])
    if not properties:
        return "no fields"
    return ", ".join(f"{name!r}{'' if name in required else ' (optional)'}" for name in properties)


def _fault(fault: Any) -> str:
    where = ".".join(str(step) for step in fault["loc"])
    if fault["type"] == "missing":
        return f"field {where!r} is missing"
    if fault["type"] == "extra_forbidden":
        return f"there is no field {where!r}"
    given = repr(fault["input"])
    clipped = given if len(given) <= 80 else given[:77] + "..."
    return f"field {where!r}: {fault['msg'][0].lower()}{fault['msg'][1:]}, not {clipped}"


async def invoke(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Awaits an `async def`; runs a plain `def` in a thread of its own, which nobody has to wait for."""
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    value = await run_in_daemon_thread(partial(function, **arguments), f"tool {function.__name__}")
    return await value if inspect.isawaitable(value) else value


def _as_text(value: Any) -> str:
    """What the model reads of a tool's return value.

    Raises:
        ToolError: when it has no text form.
    """
    if value is None:
        return "done"
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        raise ToolError(f"the tool gave {len(value)} bytes, which are no text; write them to a file and name the file")
    try:
        return to_json(value, indent=2).decode()
    except (PydanticSerializationError, UnicodeDecodeError, ValueError) as error:
        raise ToolError(f"the tool gave a {type(value).__name__}, which has no text form ({error})") from error


def _explain(error: BaseException, function: Callable[..., Any]) -> str:
    """The error and the frames that lie in the tool's own top-level package, newest last."""
    lines = [f"  {frame}" for frame in frames(error, function.__module__)]
    try:
        words = str(error)
    except Exception:  # its own `__str__` is broken
        words = "(it can't say what)"
    return "\n".join([f"{type(error).__name__}: {words}", *lines[-5:]])
