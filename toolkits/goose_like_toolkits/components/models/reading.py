"""What components ask, read strictly: whatever is of another type is told by the field's name."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from goose_like.core.tool import ToolError
from goose_like.providers.wire import clip

M = TypeVar("M", bound=BaseModel)

_ALTERNATIVES = ("str", "list[str]", "dict[str,any]")
"""What pydantic has in a place beside the fields: which of several types it tried."""


class Given(BaseModel):
    """A record of a component's; a text is no number there, and unknown fields are nobody's fault."""

    model_config = ConfigDict(strict=True, extra="ignore")


def read_as(kind: type[M], given: Mapping[str, Any], what: str) -> M:
    """The mapping as a record. Raises: ToolError: a field of this `what` is wrong, or missing."""
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        fault = error.errors()[0]
        steps = [step for step in fault["loc"] if step not in _ALTERNATIVES]
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        told = fault["msg"].removeprefix("Value error, ")
        text = f"{what} {where[1:]!r}: {told[0].lower()}{told[1:]}, not {clip(repr(fault['input']), 80)}"
        raise ToolError(text) from error
