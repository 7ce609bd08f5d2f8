"""Tools: the `@tool` decorator, a tool's schema from signature and docstring, and the results a tool may return."""

import inspect
import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field, replace
from functools import cache, lru_cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PydanticUserError,
    TypeAdapter,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import SkipJsonSchema

from goose_like.core.dataclass import dataclass

from .docstring import read_docstring
from .errors import GooseLikeError
from .events import CallDisplay, ToolKind
from .json_schema import simplify_schema
from .message import FrozenModel, Utf8Text
from .message import ToolSpec as ToolSpec
from .spelling import normalize_name

F = TypeVar("F", bound=Callable[..., Any])

current_call: ContextVar[str] = ContextVar("current_call")
"""The id of the tool call that runs the current code. Unset outside of tools."""

DEFAULT_TIME_LIMIT_S = 600.0
_TITLE_FIELD = re.compile(r"\{(\w+)\}")

_PLAIN_NODES: tuple[tuple[Any, dict[str, Any]], ...] = (
    (str, {"type": "string"}),
    (Utf8Text, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (dict[str, JsonValue], {"type": "object", "additionalProperties": {}}),
)
"""The schemas that pydantic makes of type hints. Those of choices, lists and models follow from them."""

_MODEL_SETTINGS = ("model_config", "__pydantic_decorators__", "__pydantic_fields_complete__")
_SCHEMA_METHODS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__")
"""The parts of a model class beside its fields that decide about its schema. Models of ours seldom change them."""

_SKIPPED: Any = SkipJsonSchema  # type checkers see no class
_CONFIG = ConfigDict(extra="forbid")
_PLAIN_DEFAULTS = (str, int, float, bool, type(None))


class ToolError(GooseLikeError):
    """An error that tells the model in one sentence what to do instead. The model sees no traceback."""


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
    accompanies_answer: bool = False
    reads_only_with: Callable[[Mapping[str, Any]], bool] | None = None
    edits: bool = False
    has_long_arguments: bool = False
    native: str = ""
    when_cut: str = ""
    rule_topic: Literal["", "command", "path"] = ""
    kind: ToolKind | Literal[""] = ""
    title: str = ""
    paths: tuple[str, ...] = ()
    display: CallDisplay = "whole"
    calls_another: bool = False
    output_bytes: int = 0
    needs_permission: bool = False
    get_version: Callable[[], str] = str

    def find_kind(self) -> ToolKind:
        """Return the kind of the tool. Without a given one, it follows from the other options."""
        if self.kind:
            return self.kind
        if self.edits:
            return "edit"
        return "read" if self.parallel is True or self.read_only is True else "other"

    def fill_title(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return the title of a call with its arguments. Without a title, take the name and the first argument."""
        if self.title:

            def fill(found: re.Match[str]) -> str:
                return _format_argument(arguments.get(found[1]))

            title = _TITLE_FIELD.sub(fill, self.title)
        else:
            first = next(iter(arguments.values()), None)
            title = f"{name} {_format_argument(first)}"
        return title.strip() or name

    def has_alias(self, name: str) -> bool:
        """Check whether other agents know such a tool under a name, however it is spelled."""
        return normalize_name(name) in map(normalize_name, self.aliases)

    def is_read_only(self, name: str) -> bool:
        """Check whether the tool changes nothing, or nothing when another agent uses it under this name."""
        if isinstance(self.read_only, bool):
            return self.read_only or self.parallel is True
        return normalize_name(name) in map(normalize_name, self.read_only)


class _AnyArguments(BaseModel):
    model_config = ConfigDict(extra="allow", defer_build=True)


def accept_any() -> type[BaseModel]:
    """Return the model of arguments that a tool checks itself, against a foreign schema."""
    return _AnyArguments


@dataclass(frozen=True, slots=True)
class Tool:
    """A callable with its description. `make_parameters` makes the model of its arguments, at the first call."""

    spec: ToolSpec
    function: Callable[..., Any]
    make_parameters: Callable[[], type[BaseModel]]
    options: ToolOptions = ToolOptions()

    @property
    def name(self) -> str:
        """The name that the model uses."""
        return self.spec.name

    @property
    def parameters(self) -> type[BaseModel]:
        """The model that validates the arguments before a call. Most tools are never called and need none."""
        return self.make_parameters()

    def without(self, argument: str) -> "Tool":
        """Return the tool without an optional argument in its schema, where it would change nothing."""
        properties = dict(self.spec.schema["properties"])
        properties.pop(argument, None)
        schema = {**self.spec.schema, "properties": properties}
        return replace(self, spec=replace(self.spec, schema=schema))


@dataclass(frozen=True, slots=True)
class InnerCall:
    """The call of another tool, which a tool with `calls_another` or `Toolkit.resource_call` returns.

    Rules and hooks judge it by its own name.
    """

    tool: Tool
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TransientResult:
    """A tool result whose `text` matters in this turn only.

    After the turn, `replacement` stands in for it as soon as the conversation is shortened. Earlier, the change would
    cost the vendor's cache and the model's reasoning.
    """

    text: str
    replacement: str


@dataclass(frozen=True, slots=True)
class FinalResult:
    """A tool result that ends the turn: no model reads it. `replacement` is explained at `TransientResult`."""

    text: str
    replacement: str | None = None


@dataclass(frozen=True, slots=True)
class ImageResult:
    """A tool result with an image: the bytes of a PNG, JPEG, GIF, WebP or PDF file, and an optional text.

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
    accompanies_answer: bool = False,
    reads_only_with: Callable[[Mapping[str, Any]], bool] | None = None,
    edits: bool = False,
    has_long_arguments: bool = False,
    native: str = "",
    when_cut: str = "",
    rule_topic: Literal["", "command", "path"] = "",
    kind: ToolKind | Literal[""] = "",
    title: str = "",
    paths: tuple[str, ...] = (),
    display: CallDisplay = "whole",
    calls_another: bool = False,
    output_bytes: int = 0,
    needs_permission: bool = False,
    get_version: Callable[[], str] = str,
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
            `accompanies_answer`: a text beside only such calls ends the turn, unless a task of the plan is open.
            `reads_only_with`: checks from the arguments of a call that this call changes nothing.
            `edits`: the call changes a file. If it fails, later calls of the message run only if they change nothing.
            `has_long_arguments`: an argument may be as long as a file, so the server sends it piece by piece.
            `native`: the vendor's own tool that models with it get in place of the schema. A call of `apply_patch`
            arrives as a `path`, and as `patches` a text: `*** Update File: PATH` (or `Add`, `Delete`), then a V4A diff.
            `tool_search` finds deferred tools (`ToolSpec.deferred_group`), and stands for this tool if there are any.
            `when_cut`: what the model does in place of a call that is longer than its output limit.
            `rule_topic`: the pattern in rules of other agents about the tool: `Bash(git log:*)` names commands,
            `Edit(src/*)` names paths.
            `kind`: what a call does, for front-ends; see `ToolKind`. By default `edit` with `edits`, `read` with
            `parallel` or `read_only`, else `other`.
            `title`: one short line for people, such as `Read {path}`; an argument takes the place of its name.
            `paths`: the arguments that name files or folders, each a text or a list of texts.
            `display`: how much of a call screens show; see `CallDisplay`.
            `calls_another`: the method returns an `InnerCall`, which then runs. Hooks judge only that call.
            `output_bytes`: the model reads so much of a result, even if the profile cuts results at fewer bytes.
            `needs_permission`: in approval mode `ask` the person is asked about each call.
            `get_version`: returns the version of a tool that can become another one. Earlier answers of the person
            about calls hold for the same version only.
    """

    def mark(function: F) -> F:
        function.__tool__ = ToolOptions(**options)  # type: ignore[attr-defined]
        return function

    return mark if function is None else mark(function)


def make_tool(function: Callable[..., Any], read_texts: Callable[[str], dict[str, str]] = read_docstring) -> Tool:
    """Create the tool of a bound method or function. Without `@tool`, the default options apply.

    `read_texts` returns what `read_docstring` returns.

    Raises:
        TypeError: a parameter has no JSON form (`*args`, or a type unknown to pydantic), a method has no `self`, or
            `title` or `paths` names no parameter.
    """
    text = inspect.getdoc(function) or ""
    is_method = inspect.ismethod(function)
    # All objects of a class share the function of a method.
    shared = getattr(function, "__func__", function)
    spec, make_parameters = _describe(shared, text, is_method, read_texts)
    options = getattr(function, "__tool__", ToolOptions())
    if options.has_long_arguments or options.native:
        spec = replace(spec, has_long_arguments=options.has_long_arguments, native=options.native)
    for argument in (*options.paths, *_TITLE_FIELD.findall(options.title)):
        if argument not in spec.schema["properties"]:
            raise TypeError(f"tool {spec.name!r}: `title` or `paths` names {argument!r}, which is no argument")
    return Tool(spec, function, make_parameters, options)


def _format_argument(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


@lru_cache(maxsize=512)  # many objects share a method: a server builds its toolkits for each request
def _describe(
    function: Callable[..., Any],
    text: str,
    is_method: bool,
    read_texts: Callable[[str], dict[str, str]],
) -> tuple[ToolSpec, Callable[[], type[BaseModel]]]:
    texts = read_texts(text)
    parameters = list(inspect.signature(function).parameters.values())
    if is_method:
        _check_self(function, parameters[:1], texts)
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {function.__name__!r}: its type hints can't be read: {error}") from error
    fields: dict[str, Any] = {}
    for parameter in parameters[is_method:]:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"tool {function.__name__!r}: parameter {parameter} has no JSON form; name each argument")
        hint = hints.get(name, Any)
        default = ... if parameter.default is parameter.empty else parameter.default
        description: dict[str, Any] = {}
        if texts.get(name):  # else the hint may bring one
            description["description"] = texts[name]
        # The prefix keeps names such as `schema` or `copy` from clashing with those of BaseModel.
        fields[f"arg_{name}"] = (hint, Field(default, alias=name, **description))
    name = f"{function.__name__}_arguments"
    make_parameters: Callable[[], type[BaseModel]] = cache(partial(create_model, name, __config__=_CONFIG, **fields))
    schema = _describe_plain_fields(fields)
    if schema is None:
        try:
            schema = make_parameters().model_json_schema(by_alias=True)
        except PydanticUserError as error:
            reason = _explain_bad_hint(hints) or error.message
            raise TypeError(f"tool {function.__name__!r}: {reason}") from error
    spec = ToolSpec(function.__name__, texts[""], simplify_schema(schema))
    return spec, make_parameters


def _describe_plain_fields(
    fields: Mapping[str, tuple[Any, FieldInfo]], parents: tuple[Any, ...] = ()
) -> dict[str, Any] | None:
    """Return the schema that pydantic makes of fields with plain types; None if one has another type or default.

    Most tools have no others, and a start describes each tool: with pydantic that takes four times as long, and the
    first model that it builds much longer. `parents` are the models around the fields.
    """
    properties = {}
    required = []
    for hint, info in fields.values():
        node = _find_plain_node(hint, parents)
        if node is None:
            return None
        name = str(info.alias)
        if info.is_required():
            required.append(name)
        elif type(info.default) in _PLAIN_DEFAULTS or info.default == {}:
            node["default"] = info.default
        elif info.default == ():
            node["default"] = []
        else:
            return None
        if info.description is not None:
            node["description"] = info.description
        properties[name] = dict(sorted(node.items()))
    schema: dict[str, Any] = {"properties": properties}
    if required:
        schema["required"] = required
    schema["type"] = "object"
    return schema


def _find_plain_node(hint: Any, parents: tuple[Any, ...] = ()) -> dict[str, Any] | None:
    for plain, node in _PLAIN_NODES:
        if hint == plain:
            return dict(node)
    kind = get_origin(hint)
    parts = get_args(hint)
    if kind is Annotated and len(parts) == 2:
        return _find_annotated_node(*parts, parents)
    if kind is Literal and len(parts) > 1 and all(isinstance(part, str) for part in parts):
        return {"enum": list(parts), "type": "string"}
    if kind in (list, Sequence):
        items = _find_plain_node(parts[0], parents)
        return items and {"items": items, "type": "array"}
    if kind in (Union, UnionType) and len(parts) == 2 and parts[1] is NoneType:
        given = _find_plain_node(parts[0], parents)
        return given and {"anyOf": [given, {"type": "null"}]}
    if isinstance(hint, type) and issubclass(hint, FrozenModel) and hint not in parents:
        return _find_model_node(hint, (*parents, hint))
    return None


def _find_annotated_node(hint: Any, info: Any, parents: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return the schema of a type with a `Field` that holds nothing but a description, or with a validator before."""
    node = _find_plain_node(hint, parents)
    if isinstance(info, BeforeValidator) and repr(info) == repr(BeforeValidator(info.func)):
        return node
    if not isinstance(info, FieldInfo) or repr(info) != repr(FieldInfo(description=info.description)):
        return None
    return node and {**node, "description": info.description}


def _find_model_node(model: type[FrozenModel], parents: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return the schema of a model that has nothing but plain fields and a docstring."""
    if not _is_plain_model(model):
        return None
    fields: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if any(isinstance(each, _SKIPPED) for each in info.metadata):
            continue
        plain = FieldInfo(annotation=info.annotation, default=info.default, description=info.description)
        plain.metadata = info.metadata
        if repr(plain) != repr(info):  # it holds more than that
            return None
        hint: Any = info.annotation
        for each in info.metadata:
            hint = Annotated[hint, each]
        fields[name] = (hint, Field(info.default, alias=name, description=info.description))
    schema = _describe_plain_fields(fields, parents)
    if schema is not None and model.__doc__:
        return {"description": inspect.cleandoc(model.__doc__), **schema}
    return schema


def _is_plain_model(model: type[FrozenModel]) -> bool:
    """Check that nothing but its fields and its docstring decides about the schema of a model."""
    has_own_settings = any(getattr(model, name) != getattr(FrozenModel, name) for name in _MODEL_SETTINGS)
    if has_own_settings:
        return False
    return all(getattr(model, name).__func__ is getattr(FrozenModel, name).__func__ for name in _SCHEMA_METHODS)


def _check_self(
    function: Callable[..., Any],
    parameters: Sequence[inspect.Parameter],
    described: Container[str],
) -> None:
    """Reject a method without `self`: its first parameter is meant for the model and would not reach it."""
    arguments = "self"
    if parameters:
        first = parameters[0]
        is_for_model = first.annotation is not first.empty or first.name in described
        if not is_for_model or first.name in ("self", "cls"):
            return
        arguments += f", {first}"
    name = function.__name__
    raise TypeError(f"tool {name!r}: its method has no `self`; write `def {name}({arguments})`")


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
