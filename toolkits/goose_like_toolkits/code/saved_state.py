"""Saved: what a session keeps of its kernel and plugins, for when it is resumed."""

from typing import Any

from pydantic import ConfigDict, ValidationError

from goose_like.core.message import FrozenModel


class Saved(FrozenModel):
    """`names` are the kernel's variables, `plugins` what was switched on or off, `variables` what plugins were told."""

    model_config = ConfigDict(extra="ignore")

    names: tuple[str, ...] = ()
    plugins: dict[str, bool] = {}
    variables: dict[str, str] = {}

    @classmethod
    def of(cls, state: object) -> "Saved":
        """What a session has; nothing where that is of another shape."""
        try:
            return cls.model_validate(state)
        except ValidationError:
            return cls()

    @property
    def state(self) -> dict[str, Any]:
        """The same as JSON; the names stand there even when there are none."""
        return {"names": list(self.names), **self.model_dump(include={"plugins", "variables"}, exclude_defaults=True)}
