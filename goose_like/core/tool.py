"""Tools: the `@tool` decorator, a tool's schema from signature and docstring, and the results a tool may return."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_type_hints, overload

import docstring_parser
from docstring_parser import Docstring, DocstringStyle
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model

from .errors import GooseLikeError
from .json_schema import simplify_schema
from .spelling import normalize_name

F = TypeVar("F", bound=Callable[..., Any])

current_call: ContextVar[str] = ContextVar("current_call")
"""The id of the tool call that runs the current code. Unset outside of tools."""

DEFAULT_TIME_LIMIT_S = 600.0


class ToolError(GooseLikeError):
    """An error that tells the model in one sentence what to do instead. The model sees no traceback."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The description of a tool for the model. `schema` is the JSON schema (an object) of the arguments."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """The options of `@tool(...)`."""

    parallel: bool | Literal["same tool"] = False
    remote: bool = False
    resumable: bool = False
    time_limit_s: float | None = DEFAULT_TIME_LIMIT_S
    aliases: tuple[str, ...] = ()
    needs: str = ""
    read_only: bool | tuple[str, ...] = False

    def has_alias(self, name: str) -> bool:
        """Check whether other agents know such a tool under a name, however it is spelled."""
        return normalize_name(name) in map(normalize_name, self.aliases)

    def is_read_only(self, name: str) -> bool:
        """Check whether the tool changes nothing, or nothing when another agent uses it under this name."""
        if isinstance(self.read_only, bool):
            return self.read_only or self.parallel is True
        return normalize_name(name) in map(normalize_name, self.read_only)


class AnyArguments(BaseModel):
    """The arguments of a tool that checks them itself, against a foreign schema."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True, slots=True)
class Tool:
    """A callable with its description. `parameters` validates the arguments before the call."""

    spec: ToolSpec
    function: Callable[..., Any]
    parameters: type[BaseModel]
    options: ToolOptions = ToolOptions()

    @property
    def name(self) -> str:
        """The name that the model uses."""
        return self.spec.name


@dataclass(frozen=True, slots=True)
class TransientResult:
    """A tool result whose `text` matters in this turn only. From the next turn on, `replacement` stands in for it."""

    text: str
    replacement: str


@dataclass(frozen=True, slots=True)
class FinalResult:
    """A tool result that ends the turn: no model reads it. `replacement` is explained at `TransientResult`."""

    text: str
    replacement: str | None = None


@dataclass(frozen=True, slots=True)
class ImageResult:
    """A tool result with an image: the bytes of a PNG, JPEG, GIF or WebP file, and an optional text.

    `source` tells the model and the user where the image came from. `replacement` is explained at `TransientResult`.
    """

    data: bytes = field(repr=False)
    source: str
    text: str = ""
    replacement: str | None = None


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    parallel: bool | Literal["same tool"] = False,
    remote: bool = False,
    resumable: bool = False,
    time_limit_s: float | None = DEFAULT_TIME_LIMIT_S,
    aliases: tuple[str, ...] = (),
    needs: str = "",
    read_only: bool | tuple[str, ...] = False,
) -> Callable[[F], F]: ...
def tool(function: Any = None, /, **options: Any) -> Any:
    """Turn a toolkit method into a tool. The model reads its name, type hints and docstring.

    Args:
        function: The method, when the decorator is used without options.
        options: `parallel`: the call changes nothing, so it runs beside parallel calls that are next to it. All other
            calls of a message run one after the other. With "same tool" only adjacent calls of this tool run together.
            `remote`: the client runs the tool in a later request. The method only checks the arguments: its errors go
            back to the model in the same turn, and its return value is ignored.
            `resumable`: when a turn resumes after its process was killed, run a cut-off call again under its old id.
            `time_limit_s`: stop the call after so many seconds and tell the model; None for no limit.
            `aliases`: names of such a tool in other agents. A model that uses one is told the name here.
            `needs`: settings without which `Toolkit.tools` leaves the tool out. `/toolkits` tells the person.
            `read_only`: the call changes no files and runs nothing that could, like all parallel calls; or the aliases
            under which it only reads. A kind of subagent with only such tools gets a read-only sandbox.
    """

    def mark(function: F) -> F:
        function.__tool__ = ToolOptions(**options)  # type: ignore[attr-defined]
        return function

    return mark if function is None else mark(function)


def parse_docstring(text: str) -> Docstring:
    """Parse a docstring in any style. Trying all styles for each tool would cost 10 ms at each start."""
    is_google = ":param" not in text and "---" not in text
    return docstring_parser.parse(text, DocstringStyle.GOOGLE if is_google else DocstringStyle.AUTO)


def make_tool(function: Callable[..., Any]) -> Tool:
    """Create the tool of a bound method or function. Without `@tool`, the default options apply.

    Raises:
        TypeError: a parameter has no JSON form (`*args`, or a type unknown to pydantic), or a method has no `self`.
    """
    text, is_method = inspect.getdoc(function) or "", inspect.ismethod(function)
    spec, parameters = _describe(getattr(function, "__func__", function), text, is_method)
    return Tool(spec, function, parameters, getattr(function, "__tool__", ToolOptions()))


@lru_cache(maxsize=512)  # many objects share a method: a server builds its toolkits for each request
def _describe(function: Callable[..., Any], text: str, is_method: bool) -> tuple[ToolSpec, type[BaseModel]]:
    doc = parse_docstring(text)
    parameters = list(inspect.signature(function).parameters.values())
    if is_method:
        _check_self(function, parameters[:1], doc)
    descriptions: dict[str, Any] = {
        entry.arg_name: {"description": entry.description} for entry in doc.params if entry.description
    }
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {function.__name__!r}: its type hints can't be read: {error}") from error
    fields: dict[str, Any] = {}
    for parameter in parameters[is_method:]:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"tool {function.__name__!r}: parameter {parameter} has no JSON form; name each argument")
        default = ... if parameter.default is parameter.empty else parameter.default
        # The prefix keeps names such as `schema` or `copy` from clashing with those of BaseModel.
        fields[f"arg_{name}"] = (hints.get(name, Any), Field(default, alias=name, **descriptions.get(name, {})))
    try:
        model = create_model(f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
        schema = simplify_schema(model.model_json_schema(by_alias=True))
    except PydanticUserError as error:
        raise TypeError(f"tool {function.__name__!r}: {_explain_bad_hint(hints) or error.message}") from error
    description = "\n\n".join(text for text in (doc.short_description, doc.long_description) if text)
    return ToolSpec(function.__name__, description, schema), model


def _check_self(function: Callable[..., Any], parameters: Sequence[inspect.Parameter], doc: Docstring) -> None:
    """Reject a method without `self`: its first parameter is meant for the model and would not reach it."""
    first = next(iter(parameters), None)
    is_for_model = first and (first.annotation is not first.empty or first.name in {d.arg_name for d in doc.params})
    if first is None or (is_for_model and first.name not in ("self", "cls")):
        signature = f"def {function.__name__}(self{f', {first}' if first else ''})"
        raise TypeError(f"tool {function.__name__!r}: its method has no `self`; write `{signature}`")


def _explain_bad_hint(hints: Mapping[str, Any]) -> str | None:
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
