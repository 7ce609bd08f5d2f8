"""The content of a recipe file after its template is filled in, as goose writes it. Unknown keys are ignored."""

import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from goose_like.core.message import FrozenModel

InputType = Literal["string", "number", "boolean", "date", "file", "select", "object", "array"]
Requirement = Literal["required", "optional", "user_prompt"]
ExtensionType = Literal["builtin", "platform", "stdio", "streamable_http", "sse", "inline_python", "frontend"]


def _write_text(value: Any) -> Any:
    """Return the text of a number, a boolean or a collection: the values of parameters are texts."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


ValueText = Annotated[str, BeforeValidator(_write_text)]


class _Part(FrozenModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_keys(cls, data: Any) -> Any:
        """Leave out keys without a value: they stand for the default."""
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None}


class Parameter(_Part):
    """A parameter: a value that somebody gives when the recipe runs."""

    key: str
    description: str = ""
    input_type: InputType = "string"
    requirement: Requirement = "required"
    default: ValueText | None = None
    options: tuple[ValueText, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> "Parameter":
        if self.input_type == "file" and self.default is not None:
            raise ValueError("a file has no default, as nobody chose to send that file")
        if self.input_type == "select" and not self.options:
            raise ValueError("`select` needs `options`")
        return self


class Extension(_Part):
    """Tools that the recipe wants: a toolkit of ours by goose's name, an MCP server, or Python code that is one."""

    type: ExtensionType
    name: str
    description: str = ""
    cmd: str = ""
    args: tuple[str, ...] = ()
    uri: str = ""
    headers: dict[str, str] = {}
    envs: dict[str, str] = {}
    env_keys: tuple[str, ...] = ()
    code: str = ""
    dependencies: tuple[str, ...] = ()
    timeout: float | None = Field(default=None, gt=0)
    available_tools: tuple[str, ...] = ()


class Settings(_Part):
    """The model that the recipe wants, and its limit of steps."""

    goose_provider: str = ""
    goose_model: str = ""
    temperature: float | None = Field(default=None, ge=0)
    max_turns: int | None = Field(default=None, gt=0)


class Response(_Part):
    """The form of the answer."""

    json_schema: dict[str, Any] | None = None


class SubRecipe(_Part):
    """Another recipe that the model can run. `values` are those of its parameters that are given already."""

    name: str
    path: str
    description: str = ""
    values: dict[str, ValueText] = {}
    sequential_when_repeated: bool = False


class Check(_Part):
    """A command that succeeds when the work is done."""

    type: Literal["shell"] = "shell"
    command: str


class Retry(_Part):
    """The checks of the work, and how often the model may try again."""

    max_retries: int = Field(ge=0)
    checks: tuple[Check, ...] = Field(min_length=1)
    on_failure: str = ""
    timeout_seconds: float = Field(default=300, gt=0)
    on_failure_timeout_seconds: float = Field(default=600, gt=0)


class RecipeOutline(_Part):
    """A recipe whose parameters have no values yet: only these keys have their final type."""

    title: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    activities: tuple[str, ...] = ()


class RecipeContent(RecipeOutline):
    """A recipe. At least one of `instructions` and `prompt` is there."""

    version: str = "1.0.0"
    instructions: str = ""
    prompt: str = ""
    extensions: tuple[Extension, ...] | None = None
    settings: Settings = Settings()
    response: Response = Response()
    sub_recipes: tuple[SubRecipe, ...] = ()
    retry: Retry | None = None

    @model_validator(mode="after")
    def _check(self) -> "RecipeContent":
        if not self.instructions.strip() and not self.prompt.strip():
            raise ValueError("write `prompt` or `instructions`: there is nothing to send")
        return self


def list_unknown_keys(data: dict[str, Any]) -> list[str]:
    """List the keys of a recipe that nobody reads here."""
    return [str(key) for key in data if key not in {*RecipeContent.model_fields, "author", "name"}]
