"""Entry: what a session's start needs of a config.yaml; read once, and kept while the file is as it was."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from goose_like.errors import GooseLikeError
from goose_like.fault import Reading
from goose_like.memory import uncollected
from goose_like.message import Value
from goose_like.places import cache_folder
from goose_like.readings import kept
from goose_like.store import Store

from .coordinates import Coordinates

_LIMIT_PROMPT_BYTES = 256_000


class Offer(Value):
    """A command as a model is told of it."""

    name: str
    description: str
    arguments: dict[str, Any]


class Prompt(Value):
    """Where the words come from that a component has for a model: itself, a file beside its config.yaml, or any."""

    text: str = ""
    file_name: str = ""
    file_path: str = ""

    def read(self, folder: Path, reach: Sequence[Path] = ()) -> str:
        """The words; "" if there are none. Of the three the first counts.

        `folder` is where its configuration lies; a file is read only from there or from below a folder of `reach`, and
        of no hidden folder there.

        Raises:
            GooseLikeError: the file is elsewhere, not there, too large or no UTF-8.
        """
        if self.text:
            return self.text
        key = "prompt_file_name" if self.file_name else "prompt_file_path"
        name = self.file_name or self.file_path
        if not name:
            return ""
        try:
            file = (folder / name).resolve()
            if not any(_is_open(file, root.resolve()) for root in (folder, *reach)):
                raise GooseLikeError(f"{key} names {name!r}, which is outside of {folder}; put it there")
            if not file.is_file():
                raise GooseLikeError(f"{key} names {name!r}, and there is no such file in {folder}; write it")
            if file.stat().st_size > _LIMIT_PROMPT_BYTES:
                raise GooseLikeError(f"{folder / name}: a prompt has {_LIMIT_PROMPT_BYTES:,} bytes at most; shorten it")
            return file.read_bytes().decode("utf-8-sig").strip()
        except (OSError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise GooseLikeError(f"{folder / name}: can't be read: {reason}; it is the {key} of a component") from error


def _is_open(file: Path, root: Path) -> bool:
    """Whether a file is below a folder, by no name that begins with a dot but `.runtime`."""
    if not file.is_relative_to(root):
        return False
    return all(not part.startswith(".") or part == ".runtime" for part in file.relative_to(root).parts)


class Entry(Value):
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
        """What of its data others may override."""
        return self.data.get("config") or {}

    def name(self, config: Mapping[str, Any]) -> str:
        """What its user calls it, by its effective configuration: `name` there, `name` beside it, or the title."""
        return next((str(name) for name in (config.get("name"), self.data.get("name")) if name), self.title)


def read_entry(file: Path) -> Reading[Entry]:
    """What a config.yaml says, in short; never raises. There is no value if any fault is more than a remark."""
    from .definition import read_definition  # with PyYAML, of which a start needs nothing where no file has changed
    from .kinds import schema

    reading = read_definition(file)
    definition = reading.value
    if definition is None:
        return Reading[Entry](faults=reading.faults)
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
    return Reading[Entry](value=entry, faults=reading.faults)


def read_entries(files: Iterable[Path]) -> dict[Path, Reading[Entry]]:
    """As `read_entry`, of several, and from the cache where they have not changed."""
    with uncollected(), closing(Store(cache_folder() / "components.sqlite")) as store:
        return dict(kept(store, Reading[Entry], files, read_entry))
