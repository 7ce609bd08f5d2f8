"""The state of the toolkit that a session saves for its next run."""

from typing import Any

from pydantic import ConfigDict, ValidationError

from goose_like.core.message import FrozenModel


class SavedState(FrozenModel):
    """Names of the kernel's variables, plugins that the user switched on or off, and session variables."""

    model_config = ConfigDict(extra="ignore")

    names: tuple[str, ...] = ()
    plugins: dict[str, bool] = {}
    variables: dict[str, str] = {}

    @classmethod
    def parse(cls, state: object) -> "SavedState":
        """Parse the saved value of a session; a value of another shape counts as empty."""
        try:
            return cls.model_validate(state)
        except ValidationError:
            return cls()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that contains the names even if there are none."""
        return {"names": list(self.names), **self.model_dump(include={"plugins", "variables"}, exclude_defaults=True)}
