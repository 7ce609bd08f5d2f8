"""Presets of servers that speak OpenAI's chat completions: `presets.yaml` here, and the user's `providers.yaml`."""

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from goose_like.config.entry_points import list_names
from goose_like.config.paths import config_folder
from goose_like.config.secrets import is_secret_variable
from goose_like.config.yaml_source import USER_MESSAGE, YamlSource, read_yaml, validate
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel
from goose_like.core.pattern import compile_later

from .base import STALL_S, ProviderInfo
from .server_facts import FactsKind
from .wire import MAX_ID_LENGTH

_VARIABLE = compile_later(r"\$\{(\w+)(?::-((?:\$\{[^{}]*\}|[^{}])*))?\}")
_Bodies = dict[str, dict[str, Any]]
_GOOSE09_AZURE = "AZURE_CHAT_COMPLETIONS_HOST_NAME"


class Preset(FrozenModel):
    """A server or a vendor's service: its address, its key, and its differences from OpenAI's API."""

    name: str
    summary: str = ""
    base_url: str = Field(
        description="`${NAME}` is an environment variable, `${NAME:-else}` has a default, also a variable"
    )
    key_variable: str | None = Field(default=None, description="the environment variable of the API key")
    key_is_optional: bool = False
    key_header: str | None = Field(default=None, description="the header for the key, instead of Authorization")
    token_scope: str | None = Field(
        default=None, description="without a key: the scope of tokens of Microsoft Entra ID (extra `azure`)"
    )
    query: dict[str, str] = Field(default={}, description="query parameters of every URL")
    processor: str | None = None
    accelerator: str | None = None
    embedding_model: str | None = Field(default=None, description="the model that computes embeddings")
    takes_images: bool = Field(default=False, description="the models accept images")
    takes_json_schema: bool = Field(
        default=False, description="the server constrains answers to a JSON schema (`response_format`)"
    )
    is_free: bool = Field(default=False, description="tokens cost nothing: the server runs on the user's machine")
    wire: Literal["chat", "responses"] = Field(
        default="chat", description="the API: chat completions, or responses (Open Responses)"
    )
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    effort_path: str = Field(
        default="reasoning_effort", description="the key of the effort in chat completions; a dot leads inside"
    )
    efforts: dict[str, dict[str, Any]] = Field(
        default={}, description="keys of chat completions for levels of effort that have other keys"
    )
    session_key: str | None = Field(
        default=None, description="the key that names the session, so that a request finds the machine with its cache"
    )
    stall_s: float = Field(
        default=STALL_S, gt=0, description="longest silence within a stream, if the profile has none"
    )
    body: dict[str, Any] = Field(default={}, description="replaces keys of every request; null removes a key")
    bodies: _Bodies = Field(default={}, description="as `body`, for models whose names begin with a pattern")
    call: dict[str, Any] = Field(default={}, description="added to tool calls in the history that came without more")
    with_calls: dict[str, Any] = Field(
        default={}, description="added to messages with tool calls in the history that lack these keys"
    )
    markup: Literal["none", "thinking", "calls"] = Field(
        default="calls", description="read from the text of answers: nothing, `<think>`, or also `<tool_call>`"
    )
    id_length: int = Field(
        default=MAX_ID_LENGTH, gt=0, le=MAX_ID_LENGTH, description="ids of calls have exactly so many letters or digits"
    )
    system_role: Literal["system", "user"] = Field(
        default="system", description="the role of the system prompt; `user` puts it into the first message"
    )
    strict_roles: bool = Field(default=False, description="user messages must follow messages of the model")
    facts: FactsKind | None = Field(default=None, description="the kind of server that tells its context window")
    models_path: str = Field(default="/models", description="the path of the list of models")
    key_path: str | None = Field(default="/models", description="a path that only answers a valid key")

    @field_validator("key_variable")
    @classmethod
    def _is_secret_variable(cls, value: str | None) -> str | None:
        # Commands see variables whose names do not look secret. The message must not quote a key pasted by mistake.
        if value is None:
            return None
        is_variable = re.fullmatch(r"[A-Z_][A-Z0-9_]*", value) is not None
        if is_variable and is_secret_variable(value):
            return value
        raise PydanticCustomError(
            USER_MESSAGE,
            "this is the name of the variable of the key, never the key; it ends with _API_KEY or _TOKEN",
        )

    @field_validator("bodies")
    @classmethod
    def _has_patterns(cls, bodies: _Bodies) -> _Bodies:
        for pattern in bodies:
            try:
                re.compile(pattern)
            except re.error as error:
                raise PydanticCustomError(USER_MESSAGE, f"{pattern!r} is no pattern: {error}") from error
        return bodies

    def build_body(self, model: str) -> dict[str, Any]:
        """Build the keys that this server wants in a request to a model."""
        body = dict(self.body)
        for pattern, keys in self.bodies.items():
            if re.match(pattern, model):
                body |= keys
        return body

    @property
    def info(self) -> ProviderInfo:
        """The facts about this provider."""
        return ProviderInfo(self.summary, self.key_variable, self.processor, self.accelerator, self.takes_images)


def expand_variables(url: str) -> str:
    """Replace the environment variables in a URL of a preset.

    Raises:
        ProfileError: A variable is not set.
    """
    # `https://${HOST}` must work for a HOST with or without a scheme.
    return re.sub(r"^https?://(?=https?://)", "", _VARIABLE.sub(_get_value, url))


def _get_value(match: re.Match[str]) -> str:
    if value := os.environ.get(match[1], "").strip().rstrip("/"):
        return value
    if match[2] is not None:
        return _VARIABLE.sub(_get_value, match[2])
    if match[1] == "AZURE_OPENAI_ENDPOINT" and os.environ.get(_GOOSE09_AZURE):
        raise ProfileError(
            f"set AZURE_OPENAI_ENDPOINT to the value of {_GOOSE09_AZURE}, which goose 0.9 read, AZURE_OPENAI_API_KEY "
            "to that of AZURE_CHAT_COMPLETIONS_KEY, and the model to the name of the deployment: azure:DEPLOYMENT"
        )
    raise ProfileError(f"set {match[1]} to the server's address, or `base_url` in the profile")


def load_presets() -> dict[str, Preset]:
    """Load all presets by name: the shipped ones, changed key by key by the user's, then the user's own.

    Raises:
        ProfileError: `providers.yaml` is invalid. The text names the line and the nearest valid key.
    """
    shipped = Path(__file__).with_name("presets.yaml")
    users = config_folder() / "providers.yaml"
    presets = _load_file(shipped, shipped.stat().st_mtime_ns)
    if users.is_file():
        presets = presets | _load_file(users, users.stat().st_mtime_ns, shipped)
    elif os.path.lexists(users):
        read_yaml(users)  # raises an error that says what it is
    return presets


@cache
def _load_file(file: Path, changed_ns: int, base: Path | None = None) -> dict[str, Preset]:
    """Load the presets of a file, over those of the `base` file with the same names. A changed file is another key."""
    is_shipped = file.parent == Path(__file__).parent
    sources = read_yaml(file, is_shipped=is_shipped).split(
        "names to servers, e.g. `mine: {base_url: http://box:8080/v1}`"
    )
    bases: dict[str, Preset] = {}
    if base:
        bases = _load_file(base, base.stat().st_mtime_ns)
    return {source.name: _build_preset(source, bases) for source in sources}


def _build_preset(source: YamlSource, bases: Mapping[str, Preset]) -> Preset:
    name = source.name
    if not isinstance(source.data, Mapping):
        raise ProfileError(f"{source.file}: {name!r} is no mapping; write e.g. `{name}: {{base_url: ...}}`")
    if name in list_names("goose_like.provider"):
        raise ProfileError(f"{source.locate()}: an installed provider is called {name!r}; choose another name")
    if not re.fullmatch(r"[\w.-]+", name):
        raise ProfileError(f"{source.locate()}: {name!r} is no name for a provider; take letters, digits, - and _")
    inherited: dict[str, Any] = {}
    if name in bases:
        inherited = bases[name].model_dump(exclude_unset=True)
    return validate(Preset, {**inherited, **source.data, "name": name}, source, f"provider {name!r}")
