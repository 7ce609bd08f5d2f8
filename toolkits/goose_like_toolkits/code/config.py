"""Config: what a profile says below `config:` of the toolkit `code`."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from goose_like.config.yaml_source import describe_field_error
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel

from .taskweaver import Settings

MAX_TIMEOUT_S = 3600.0

# What TaskWeaver takes where its configuration only says that code is verified.
_MODULES = ("pandas", "matplotlib", "numpy", "sklearn", "scipy", "seaborn", "datetime", "typing")
_FUNCTIONS = ("eval", "exec", "compile", "open", "input", "breakpoint")


class Rules(FrozenModel):
    """What the code of a cell may use: of modules and of functions either those allowed or those blocked."""

    allowed_modules: tuple[str, ...] | None = None
    blocked_modules: tuple[str, ...] | None = None
    allowed_functions: tuple[str, ...] | None = None
    blocked_functions: tuple[str, ...] | None = None
    allowed_variables: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "Rules":
        for kind in ("modules", "functions"):
            if getattr(self, f"allowed_{kind}") is not None and getattr(self, f"blocked_{kind}") is not None:
                raise PydanticCustomError("told", "give either allowed_{kind} or blocked_{kind}", {"kind": kind})
        return self


_Verify = Annotated[
    Annotated[Rules, Tag("rules")] | Annotated[bool, Tag("switch")],
    Discriminator(lambda given: "switch" if isinstance(given, bool) else "rules"),
]


class Config(FrozenModel):
    """The keys; `tools` is the base class's. `project` is a folder, with a leading ~ or from the workspace on."""

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

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Config":
        """
        Raises:
            ProfileError: a key or a value that makes no sense; its path is the key's.
        """
        try:
            return cls.model_validate(dict(data))
        except ValidationError as error:
            fault = error.errors()[0]
            path = tuple(step for step in fault["loc"] if step not in ("rules", "switch"))
            if fault["type"] == "extra_forbidden":
                of, known = ("toolkit 'code'", cls) if len(path) == 1 else (f"{path[0]!r}", Rules)
                text = f"{of} has no {path[-1]!r}; {did_you_mean(str(path[-1]), known.model_fields)}"
            else:
                text = describe_field_error({**fault, "loc": path}, "the config of 'code'")
            raise ProfileError(text, ("config", *path)) from error

    def folder(self, workspace: Path) -> Path | None:
        """Where the plugins are; None: those that come along."""
        return workspace / os.path.expanduser(self.project) if self.project else None

    def rules(self, settings: Settings) -> Rules | None:
        """How cells are verified: as the profile says, else as the project does. None: not at all."""
        if isinstance(self.verify, Rules):
            return self.verify
        if self.verify is False or (self.verify is None and not settings.verifies):
            return None
        functions = settings.blocked_functions if settings.blocked_functions is not None else _FUNCTIONS
        modules = settings.allowed_modules if settings.allowed_modules is not None else _MODULES
        return Rules(allowed_modules=modules, blocked_functions=functions)
