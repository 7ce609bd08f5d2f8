"""The part of a config.yaml that the start of a session needs, cached by path and content."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from goose_like.config.paths import cache_folder
from goose_like.core.gc_pause import pause_gc
from goose_like.core.message import FrozenModel
from goose_like.sdk.diagnostics import ParseResult
from goose_like.sdk.parse_cache import ParseCache

from .coordinates import Coordinates
from .prompt import Prompt


class Offer(FrozenModel):
    """A command as the model sees it."""

    name: str
    description: str
    arguments: dict[str, Any]


class Entry(FrozenModel):
    """A component in short; the fields are those of `Definition`."""

    group_id: str
    artifact_id: str
    version: str
    type: str
    as_plugin: bool
    title: str
    description: str
    prompts: Prompt
    offers: tuple[Offer, ...]
    pip: tuple[tuple[str, ...], ...]
    package: str
    resource_type: str
    data: dict[str, Any]

    @property
    def coordinates(self) -> Coordinates:
        return Coordinates(self.group_id, self.artifact_id, self.version)

    @property
    def config(self) -> Mapping[str, Any]:
        """Return the part of the data that others may override."""
        return self.data.get("config") or {}

    def name(self, config: Mapping[str, Any]) -> str:
        """Return the name for users: `name` of the effective configuration, `name` of the data, or the title."""
        return next((str(name) for name in (config.get("name"), self.data.get("name")) if name), self.title)


def read_entry(file: Path) -> ParseResult[Entry]:
    """Read a config.yaml and never raise. Errors leave the result without a value."""
    from .definition import read_definition  # with PyYAML, of which a start needs nothing where no file has changed
    from .kinds import schema

    reading = read_definition(file)
    definition = reading.value
    if definition is None:
        return ParseResult[Entry](diagnostics=reading.diagnostics)
    entry = Entry(
        group_id=definition.coordinates.group_id,
        artifact_id=definition.coordinates.artifact_id,
        version=definition.coordinates.version,
        type=definition.type,
        as_plugin=definition.as_plugin,
        title=definition.title,
        description=definition.description,
        prompts=definition.prompts,
        offers=tuple(
            Offer(name=each.name, description=each.description, arguments=schema(each.parameter))
            for each in definition.commands
        ),
        pip=definition.pip,
        package=definition.package,
        resource_type=definition.resource_type,
        data=dict(definition.data),
    )
    return ParseResult[Entry](value=entry, diagnostics=reading.diagnostics)


def read_entries(files: Iterable[Path]) -> dict[Path, ParseResult[Entry]]:
    """Read several files like `read_entry`, from the cache where their content was parsed before."""
    with pause_gc(), closing(ParseCache(cache_folder() / "components.sqlite")) as store:
        return dict(store.parse_files(ParseResult[Entry], files, read_entry))
