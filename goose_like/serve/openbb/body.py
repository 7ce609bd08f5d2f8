"""The wire, as far as we read it: the fields of both dialects, as loosely as they come; what is unknown is ignored."""

import json
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError, from_json

from .query import Dialect

LISTED = "listed"
"""The place of widgets that come as a bare list; it is no field of the wire."""

_ARGUMENTS = {"input_arguments", "copilot_function_call_arguments"}


def words(value: object) -> str:
    """The value as text: what is no text as its JSON, nothing as none."""
    match value:
        case str():
            return value
        case None:
            return ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def mapping(value: object) -> dict[str, Any]:
    """An object, or the one that a JSON text holds; an empty one in the place of anything else."""
    found = _decoded(value) if isinstance(value, str) else value
    return found if isinstance(found, dict) else {}


def _decoded(text: str) -> object:
    """What a JSON text holds, which may have been encoded twice; None when it is none."""
    try:
        value = from_json(text)
        return from_json(value) if isinstance(value, str) else value
    except ValueError:
        return None


def finite(value: Any) -> Any:
    """The value with null for the numbers that JSON has not: neither a session nor a call's arguments hold them."""
    if isinstance(value, dict):
        return {key: inner if type(inner) is str else finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [inner if type(inner) is str else finite(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _object(value: object) -> object:
    found = _decoded(value) if isinstance(value, str) else value
    return {} if found is None else finite(found)


def _content(value: object) -> dict[str, Any] | str:
    """The call that an `ai` message may be, as an object or as its JSON text; else its words."""
    found = _decoded(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", '"') else value
    if isinstance(found, dict) and isinstance(found.get("function"), str) and _ARGUMENTS & found.keys():
        return found
    return words(value)


def _contexts(value: object) -> object:
    listed = [value] if isinstance(value, str) else value or []
    if not isinstance(listed, list):
        return value
    return [{"data": one} if isinstance(one, str) else one for one in listed if one not in ("", None)]


def _tiers(value: object) -> object:
    return {LISTED: value} if isinstance(value, list) else value


_Text = Annotated[str, BeforeValidator(words)]
_Object = Annotated[dict[str, Any], BeforeValidator(_object)]
_Finite = Annotated[Any, BeforeValidator(finite)]


class _Wire(BaseModel):
    model_config = ConfigDict(defer_build=True)


class HumanMessage(_Wire):
    role: Literal["human"]
    content: str


class AiMessage(_Wire):
    role: Literal["ai"]
    content: Annotated[dict[str, Any] | str, BeforeValidator(_content)] = ""
    agent_id: _Text = ""

    @property
    def is_new(self) -> bool:
        call = self.content if isinstance(self.content, dict) else {}
        has_sources = "data_sources" in mapping(call.get("input_arguments"))
        return "agent_id" in self.model_fields_set or "extra_state" in call or has_sources


class ToolMessage(_Wire):
    role: Literal["tool"]
    function: _Text = ""
    input_arguments: _Object = {}
    copilot_function_call_arguments: _Object = {}
    data: Any = None
    content: Any = None
    extra_state: Any = None

    @property
    def is_new(self) -> bool:
        return isinstance(self.data, list) or bool({"input_arguments", "extra_state"} & self.model_fields_set)


class ParamEntry(_Wire):
    name: _Text
    type: _Text = "string"
    description: _Text = ""
    default_value: _Finite = None
    current_value: _Finite = None
    options: list[_Finite] | None = None
    get_options: bool | None = None
    multi_select: bool | None = None


class WidgetEntry(_Wire):
    uuid: _Text = ""
    origin: _Text = ""
    widget_id: _Text = ""
    name: _Text = ""
    description: _Text = ""
    params: list[ParamEntry] | None = None
    metadata: _Object = {}


class WidgetTiers(_Wire):
    listed: list[WidgetEntry] | None = None
    primary: list[WidgetEntry] | None = None
    secondary: list[WidgetEntry] | None = None
    extra: list[WidgetEntry] | None = None


class ContextEntry(_Wire):
    uuid: _Text = ""
    name: _Text = ""
    description: _Text = ""
    data: Any = None
    metadata: _Object = {}


class ToolEntry(_Wire):
    name: _Text
    server_id: _Text = ""
    url: _Text = ""
    endpoint: _Text = ""
    description: _Text = ""
    input_schema: _Object = {}


class Body(_Wire):
    """A request's body. Fields that nothing is made of are there because only one dialect has them."""

    messages: list[Annotated[HumanMessage | AiMessage | ToolMessage, Field(discriminator="role")]]
    context: Annotated[list[ContextEntry], BeforeValidator(_contexts)] = []
    widgets: Annotated[WidgetTiers | None, BeforeValidator(_tiers)] = None
    urls: list[_Text] | None = None
    tools: list[ToolEntry] | None = None
    timezone: _Text = ""
    workspace_state: _Object = {}
    workspace_options: _Object = {}
    api_keys: Any = None
    force_web_search: Any = None
    skills_catalog: Any = None
    selected_skills: Any = None

    @field_validator("messages", mode="before")
    @classmethod
    def _some(cls, messages: object) -> object:
        if not messages:
            raise PydanticCustomError("too_short", "messages list cannot be empty")
        return messages

    @property
    def dialect(self) -> Dialect:
        """Whose client sent it. The shape of the widgets tells: one that lists them knows them by their uuid only.

        Where nothing tells, it is the one with the smaller vocabulary.
        """
        if self.widgets is not None:
            return "copilot" if LISTED in self.widgets.model_fields_set else "workspace"
        is_new = (
            self.model_fields_set - {"messages", "context", "widgets"}
            or any(message.is_new for message in self.messages if not isinstance(message, HumanMessage))
            or any("items" in mapping(context.data) for context in self.context)
        )
        return "workspace" if is_new else "copilot"
