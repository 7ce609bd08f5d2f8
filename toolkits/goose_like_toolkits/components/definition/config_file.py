"""The values that a session needs of a config.yaml."""

from collections.abc import Mapping
from typing import Any

from goose_like.core.message import FrozenModel

from .coordinates import Coordinates
from .prompt import Prompt


class Command(FrozenModel):
    """A command. `parameter` and `response` are schemas of `grammar`; `arguments` is what a model sees."""

    name: str
    description: str
    parameter: dict[str, Any] | None = None
    is_required: bool = False
    response: dict[str, Any] | None = None
    arguments: dict[str, Any]


class Definition(FrozenModel):
    """A component as its config.yaml describes it; `data` is the whole file.

    `type` and `resource_type` are in lower case, `description` prefers the one for models, and each entry of `pip` has
    the arguments of one installation.
    """

    group_id: str
    artifact_id: str
    version: str
    type: str
    as_plugin: bool
    title: str
    description: str
    prompt: Prompt
    commands: tuple[Command, ...]
    pip: tuple[tuple[str, ...], ...]
    package: str
    resource_type: str
    data: dict[str, Any]

    @property
    def coordinates(self) -> Coordinates:
        """The coordinates of the component."""
        return Coordinates(self.group_id, self.artifact_id, self.version)

    @property
    def config(self) -> Mapping[str, Any]:
        """The part of the data that including components may override."""
        return self.data.get("config") or {}

    def get_name(self, config: Mapping[str, Any] | None = None) -> str:
        """Return the name: `name` of the effective configuration, `name` beside it, or the title."""
        effective = self.config if config is None else config
        return next((str(name) for name in (effective.get("name"), self.data.get("name")) if name), self.title)
