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

from .base import ProviderInfo

_VARIABLE = re.compile(r"\$\{(\w+)(?::-((?:\$\{[^{}]*\}|[^{}])*))?\}")
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
    query: dict[str, str] = Field(default={}, description="query parameters of every URL")
    processor: str | None = None
    accelerator: str | None = None
    embedding_model: str | None = Field(default=None, description="the model that computes embeddings")
    takes_images: bool = Field(default=False, description="the models accept images")
    is_free: bool = Field(default=False, description="tokens cost nothing: the server runs on the user's machine")
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    body: dict[str, Any] = Field(default={}, description="replaces keys of every request; null removes a key")
    call: dict[str, Any] = Field(default={}, description="added to every tool call in the history")
    thinking_key: str | None = Field(default=None, description="the key for earlier thinking in the history")
    strict_roles: bool = Field(default=False, description="user messages must follow messages of the model")
    models_path: str = Field(default="/models", description="the path of the list of models")
    key_path: str | None = Field(default="/models", description="a path that only answers a valid key")

    @field_validator("key_variable")
    @classmethod
    def _is_secret_variable(cls, value: str | None) -> str | None:
        # Commands see variables whose names do not look secret. The message must not quote a key pasted by mistake.
        if value is None or (re.fullmatch(r"[A-Z_][A-Z0-9_]*", value) and is_secret_variable(value)):
            return value
        raise PydanticCustomError(
            USER_MESSAGE,
            "this is the name of the variable of the key, never the key; it ends with _API_KEY or _TOKEN",
        )

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
    sources = read_yaml(file).split("names to servers, e.g. `mine: {base_url: http://box:8080/v1}`")
    bases = _load_file(base, base.stat().st_mtime_ns) if base else {}
    return {source.name: _build_preset(source, bases) for source in sources}


def _build_preset(source: YamlSource, bases: Mapping[str, Preset]) -> Preset:
    name = source.name
    if not isinstance(source.data, Mapping):
        raise ProfileError(f"{source.file}: {name!r} is no mapping; write e.g. `{name}: {{base_url: ...}}`")
    if name in list_names("goose_like.provider"):
        raise ProfileError(f"{source.locate()}: an installed provider is called {name!r}; choose another name")
    if not re.fullmatch(r"[\w.-]+", name):
        raise ProfileError(f"{source.locate()}: {name!r} is no name for a provider; take letters, digits, - and _")
    inherited = bases[name].model_dump(exclude_unset=True) if name in bases else {}
    return validate(Preset, {**inherited, **source.data, "name": name}, source, f"provider {name!r}")
