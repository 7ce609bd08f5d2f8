"""The config of the toolkit `openbb` in a profile."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from goose_like.config.yaml_source import describe_field_error
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel
from goose_like.core.spelling import did_you_mean
from goose_like.serve.openbb.query import Query

from .functions import FUNCTIONS


class OpenBBConfig(FrozenModel):
    """The checked config.

    `name`, `description`, `image` and `features` present the profile to the Workspace. `functions` are optional
    functions of the client that the model may call. `small_model` offers only data that was not fetched yet; for the
    embedded model. The server puts the current request into `query`.
    """

    name: str = ""
    description: str = ""
    image: str = ""
    features: dict[str, Any] = {}
    functions: tuple[str, ...] = ()
    tools: list[str] | None = None
    small_model: bool = False
    query: Query | None = None


def parse_config(config: Mapping[str, Any]) -> OpenBBConfig:
    """Check the config.

    Raises:
        ProfileError: a key or function is unknown, or a value has the wrong type.
    """
    try:
        parsed = OpenBBConfig.model_validate(config)
    except ValidationError as error:
        detail = error.errors()[0]
        text = describe_field_error(detail, "the config of 'openbb'")
        if detail["type"] == "extra_forbidden":
            key = str(detail["loc"][0])
            known = OpenBBConfig.model_fields.keys() - {"query"}
            text = f"toolkit 'openbb' has no {key!r}; {did_you_mean(key, known)}"
        raise ProfileError(text, ("config", *detail["loc"])) from error
    for index, name in enumerate(parsed.functions):
        if name not in FUNCTIONS:
            text = f"no function {name!r} to offer; {did_you_mean(name, FUNCTIONS)}"
            raise ProfileError(text, ("config", "functions", index))
    return parsed
