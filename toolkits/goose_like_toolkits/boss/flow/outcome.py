"""How a boss ended: always the same three values."""

from typing import Literal

from goose_like.core.message import FrozenModel, Utf8Text

Status = Literal["finished", "max_round", "budget", "interrupted", "failed"]


class Outcome(FrozenModel):
    """`result` is for the caller, `summary` for the caller's logs."""

    result: Utf8Text
    summary: Utf8Text
    status: Status
