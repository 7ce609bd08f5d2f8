"""How a boss ended: always the same three values."""

from typing import Literal

from goose_like.core.message import Value, Words

Status = Literal["finished", "max_round", "budget", "interrupted", "failed"]


class Outcome(Value):
    """`result` is for the caller, `summary` for the caller's logs."""

    result: Words
    summary: Words
    status: Status
