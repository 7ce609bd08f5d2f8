"""The table of servers that speak chat completions: `rows.yaml` beside this file, and a person's `providers.yaml`."""

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from goose_like.config.paths import config_folder
from goose_like.config.secrets import is_secret_variable
from goose_like.config.yaml_source import YamlSource, describe_validation_error, read_yaml
from goose_like.core.entry_points import did_you_mean, list_entry_points
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel

from .base import ProviderInfo

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class Preset(FrozenModel):
    """A server or a vendor's service: where it is, what it asks for, and in what it differs from OpenAI's own."""

    name: str
    summary: str = ""
    base_url: str = Field(description="`${NAME}` is a variable of the environment, `${NAME:-else}` has a default")
    key_variable: str | None = Field(default=None, description="the environment variable that the key goes by")
    key_is_optional: bool = False
    key_header: str | None = Field(default=None, description="the header with the key, instead of a bearer's")
    query: dict[str, str] = Field(default={}, description="what each URL ends with")
    processor: str | None = None
    accelerator: str | None = None
    embedding_model: str | None = Field(default=None, description="the model that makes vectors of texts")
    takes_images: bool = Field(default=False, description="whether its models are shown images")
    is_free: bool = Field(default=False, description="whether its tokens cost nothing: it runs on one's own machine")
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    body: dict[str, Any] = Field(default={}, description="laid over each request's body; null takes a key away")
    call: dict[str, Any] = Field(default={}, description="laid over each tool call that goes back")
    thinking_key: str | None = Field(default=None, description="the key of a message that thinking goes back under")
    strict_roles: bool = Field(default=False, description="whether the person may speak only after the model")
    models_path: str = Field(default="/models", description="where its models are listed")
    key_path: str | None = Field(default="/models", description="what is only answered to a right key")

    @field_validator("key_variable")
    @classmethod
    def _is_a_secrets_name(cls, value: str | None) -> str | None:
        """Else commands would see it, for its name is all that tells. A key that was pasted here is not said back."""
        if value is None or (re.fullmatch(r"[A-Z_][A-Z0-9_]*", value) and is_secret_variable(value)):
            return value
        raise PydanticCustomError(
            "user_message",
            "this is the name of the variable of the key, never the key; it ends with _API_KEY or _TOKEN",
        )

    @property
    def info(self) -> ProviderInfo:
        """What people are told of it."""
        return ProviderInfo(self.summary, self.key_variable, self.processor, self.accelerator, self.takes_images)

    def resolve_base_url(self) -> str:
        """The base URL with the environment's variables in their places.

        Raises:
            ProfileError: one of them is not set.
        """
        return _filled(self.base_url)

    def build_url(self, base_url: str, path: str) -> str:
        """The URL of a path, which may be a whole URL.

        Raises:
            ProfileError: as `address`.
        """
        return _filled(path) if "://" in path else base_url.rstrip("/") + path


def _filled(url: str) -> str:
    # `https://${HOST}` is right for a HOST with its scheme and for one without.
    return re.sub(r"^https?://(?=https?://)", "", _VARIABLE.sub(_value, url))


def _value(match: re.Match[str]) -> str:
    value = os.environ.get(match[1], "").strip().rstrip("/") or match[2]
    if value is None:
        raise ProfileError(f"set {match[1]} to the server's address, or `base_url` in the profile")
    return value


def load_presets() -> dict[str, Preset]:
    """Every row by its name: ours, with a person's own laid over them key by key, then the others of theirs.

    Raises:
        ProfileError: `providers.yaml` can't be used; the text names the line and the nearest key.
    """
    ours = Path(__file__).with_name("rows.yaml")
    mine = config_folder() / "providers.yaml"
    every = _rows_in(ours, ours.stat().st_mtime_ns)
    if mine.is_file():
        every = every | _rows_in(mine, mine.stat().st_mtime_ns, ours)
    return every


@cache
def _rows_in(file: Path, changed_ns: int, base: Path | None = None) -> dict[str, Preset]:
    """The rows of a file as it was at a time; those of the `base` file are under those of the same name."""
    data = read_yaml(file)
    if not isinstance(data, Mapping):
        raise ProfileError(f"{file}: this file maps names to servers, e.g. `mine: {{base_url: http://box:8080/v1}}`")
    under = _rows_in(base, base.stat().st_mtime_ns) if base else {}
    return {str(name): _row(YamlSource(str(name), file, written), under) for name, written in data.items()}


def _row(source: YamlSource, base: Mapping[str, Preset]) -> Preset:
    name = source.name
    if not isinstance(source.data, Mapping):
        raise ProfileError(f"{source.file}: {name!r} is no mapping; write e.g. `{name}: {{base_url: ...}}`")
    if name in list_entry_points("goose_like.provider"):
        raise ProfileError(f"{source.locate()}: an installed provider is called {name!r}; choose another name")
    if not re.fullmatch(r"[\w.-]+", name):
        raise ProfileError(f"{source.locate()}: {name!r} is no name for a provider; take letters, digits, - and _")
    before = base[name].model_dump(exclude_unset=True) if name in base else {}
    try:
        return Preset.model_validate({**before, **source.data, "name": name})
    except ValidationError as error:
        raise ProfileError(describe_validation_error(error, source, _near, f"provider {name!r}")) from error


def _near(path: tuple[str | int, ...]) -> str:
    return did_you_mean(str(path[-1]), set(Preset.model_fields) - {"name"})
