"""What a profile says below `config:` of the toolkit `openbb`."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import ProfileError
from goose_like.core.message import Value
from goose_like.serve.openbb.query import Query

from .functions import FUNCTIONS


class Config(Value):
    """`name`, `description`, `image` and `features` are what the Workspace is told of this copilot.

    `functions` are offered beyond data; `query` is the request that is answered.
    """

    name: str = ""
    description: str = ""
    image: str = ""
    features: dict[str, Any] = {}
    functions: tuple[str, ...] = ()
    tools: list[str] | None = None
    query: Query | None = None


def read_config(config: Mapping[str, Any]) -> Config:
    """The config, checked.

    Raises:
        ProfileError: a key or function that there is not, or a value of another kind.
    """
    try:
        read = Config.model_validate(config)
    except ValidationError as error:
        fault = error.errors()[0]
        key = str(fault["loc"][0])
        if fault["type"] == "extra_forbidden":
            text = f"toolkit 'openbb' has no {key!r}; {did_you_mean(key, set(Config.model_fields) - {'query'})}"
        else:
            text = f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}, not {fault['input']!r}"
        raise ProfileError(text, ("config", *fault["loc"])) from error
    for at, name in enumerate(read.functions):
        if name not in FUNCTIONS:
            text = f"no function {name!r} to offer; {did_you_mean(name, FUNCTIONS)}"
            raise ProfileError(text, ("config", "functions", at))
    return read
