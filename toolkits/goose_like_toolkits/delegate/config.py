"""The checked config of the toolkit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from goose_like.config.profile import Limits
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel
from goose_like.core.pattern import compile_later
from goose_like.core.spelling import did_you_mean

_MAX_NAME_CHARACTERS = 64
_OTHER_CHARACTER = compile_later(r"[^A-Za-z0-9_-]")


class SubRecipeConfig(FrozenModel):
    """A sub recipe in the config of the toolkit. `texts` are its files as the person judged them."""

    name: str
    file: Path
    texts: dict[str, str]
    values: dict[str, str] = {}
    without: tuple[str, ...] = ()
    is_sequential: bool = False

    @property
    def tool_name(self) -> str:
        """The name of the tool."""
        clean = _OTHER_CHARACTER.sub("_", self.name)
        return f"recipe_{clean}"[:_MAX_NAME_CHARACTERS]


class DelegateConfig(FrozenModel):
    """The checked config of the toolkit."""

    profiles: tuple[str, ...] = ()
    limits: Limits = Limits.make_unchecked()
    depth: int = Field(default=1, ge=1)
    parallel: int = Field(default=4, ge=1)
    tools: list[str] | None = None
    recipes: tuple[SubRecipeConfig, ...] = ()


def parse_config(config: Mapping[str, Any]) -> DelegateConfig:
    """Check the config. Raise ProfileError with the place of what is wrong."""
    if not config:
        return DelegateConfig.make_unchecked()
    try:
        return DelegateConfig.model_validate(config)
    except ValidationError as error:
        detail = error.errors()[0]
        place = detail["loc"]
        if detail["type"] == "extra_forbidden":
            key = str(place[-1])
            model = DelegateConfig if len(place) == 1 else Limits
            text = f"toolkit 'delegate' has no {key!r}; {did_you_mean(key, model.model_fields)}"
        else:
            key = ".".join(map(str, place))
            text = f"{key}: {detail['msg']}, not {detail['input']!r}"
        raise ProfileError(text, ("config", *place)) from error
