"""The config of the toolkit `code` in a profile."""

import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from goose_like.config.yaml_source import describe_field_error
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel
from goose_like.core.spelling import did_you_mean

from .taskweaver import DEFAULT_BLOCKED_FUNCTIONS, DEFAULT_MODULES, Settings

MAX_TIMEOUT_S = 3600.0


class VerificationRules(FrozenModel):
    """Lists of names that cells may use: for modules and for functions either allowed or blocked ones."""

    allowed_modules: tuple[str, ...] | None = None
    blocked_modules: tuple[str, ...] | None = None
    allowed_functions: tuple[str, ...] | None = None
    blocked_functions: tuple[str, ...] | None = None
    allowed_variables: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _check_one_list_per_kind(self) -> "VerificationRules":
        for kind in ("modules", "functions"):
            allowed = getattr(self, f"allowed_{kind}")
            blocked = getattr(self, f"blocked_{kind}")
            if allowed is not None and blocked is not None:
                text = "give either allowed_{kind} or blocked_{kind}"
                raise PydanticCustomError("user_message", text, {"kind": kind})
        return self


def _get_verify_tag(value: Any) -> str:
    return "switch" if isinstance(value, bool) else "rules"


_Verify = Annotated[
    Annotated[VerificationRules, Tag("rules")] | Annotated[bool, Tag("switch")],
    Discriminator(_get_verify_tag),
]


class Config(FrozenModel):
    """The keys of the config. `project` is relative to the workspace, or starts with ~."""

    tools: list[str] | None = None
    project: str | None = None
    plugins: tuple[str, ...] | None = None
    mode: Literal["full", "plugin_only"] = "full"
    select_top_k: Annotated[int, Field(strict=True, ge=1)] | None = None
    verify: _Verify | None = None
    session_vars: dict[str, str | int | float | bool] = {}
    timeout_s: Annotated[float, Field(strict=True, gt=0, le=MAX_TIMEOUT_S)] = 120.0
    python: Annotated[str, Field(min_length=1)] = sys.executable
    figures: Annotated[bool, Field(strict=True)] = True
    small_model: Annotated[bool, Field(strict=True)] = False

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "Config":
        """Parse the config. Raise ProfileError with the path of the key if a key or a value is invalid."""
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            first = error.errors()[0]
            path = tuple(step for step in first["loc"] if step not in ("rules", "switch"))
            if first["type"] == "extra_forbidden":
                text = _describe_unknown_key(path)
            else:
                text = describe_field_error({**first, "loc": path}, "the config of 'code'")
            raise ProfileError(text, ("config", *path)) from error

    @property
    def session_texts(self) -> dict[str, str]:
        """The session variables as the text that plugins read."""
        return {name: str(value) for name, value in self.session_vars.items()}

    def check_installed(self) -> None:
        """Raise ProfileError if a library for kernels is missing."""
        if find_spec("jupyter_client") is None or not self.has_library("ipykernel"):
            raise ProfileError(
                "toolkit 'code' needs jupyter_client and ipykernel: pip install 'goose-like[kernel]'; "
                "its plugins also need pandas and more: pip install 'goose-like[analyst]'"
            )

    def has_library(self, name: str) -> bool:
        """Return whether kernels can import a library. Another interpreter than ours is trusted to have it."""
        return self.python != sys.executable or find_spec(name) is not None

    def select_rules(self, settings: Settings) -> VerificationRules | None:
        """Return the rules of the profile, or else of the project; None for no verification."""
        if isinstance(self.verify, VerificationRules):
            return self.verify
        is_on = settings.has_verification if self.verify is None else self.verify
        if not is_on:
            return None
        modules = settings.allowed_modules
        if modules is None:
            modules = DEFAULT_MODULES
        functions = settings.blocked_functions
        if functions is None:
            functions = DEFAULT_BLOCKED_FUNCTIONS
        return VerificationRules(allowed_modules=modules, blocked_functions=functions)


def _describe_unknown_key(path: tuple[int | str, ...]) -> str:
    owner = "toolkit 'code'"
    known: Iterable[str] = Config.model_fields
    if len(path) > 1:
        owner = repr(path[0])
        known = VerificationRules.model_fields
    key = path[-1]
    return f"{owner} has no {key!r}; {did_you_mean(str(key), known)}"
