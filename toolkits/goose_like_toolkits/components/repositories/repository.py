"""Repositories of components: the local one as ConCopilot lays it out, and where else a component is looked for."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.spelling import find_nearest_name
from goose_like_toolkits.components.described.coordinates import Coordinates
from goose_like_toolkits.components.described.entry import read_entries

from .layout import COMPLETED, config_file_in, is_added, put_in_place
from .progress import Tell
from .settings import RemoteAddress, Settings

OWN = Path(__file__).parents[1] / "components"
"""The components that come along."""

_ANOTHER = "name another local repository: local_repo_path in settings.yaml, or --repository"


class Shelf(Protocol):
    """Where components are that can be used at once."""

    @property
    def name(self) -> str: ...

    def has(self, coordinates: Coordinates) -> bool: ...

    def folder_of(self, coordinates: Coordinates) -> Path: ...

    def all(self) -> Iterable[Coordinates]: ...


class LocalRepository:
    """`<g/ro/up>/<artifact>/<version>/<artifact>-<version>-<file>`; `__COMPLETED` is there once all of it is.

    ConCopilot's own `conpack` reads and writes the same.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        return str(self.folder)

    def folder_of(self, coordinates: Coordinates) -> Path:
        """Where it is, or would be."""
        return self.folder / coordinates.folder

    def has(self, coordinates: Coordinates) -> bool:
        """Whether all of it is there."""
        folder = self.folder_of(coordinates)
        return (folder / COMPLETED).exists() and config_file_in(folder, coordinates) is not None

    def versions(self, group_id: str, artifact_id: str) -> list[Coordinates]:
        """The versions of a component that are there, in their order."""
        return sorted(each for each in self.all() if (each.group_id, each.artifact_id) == (group_id, artifact_id))

    def all(self) -> list[Coordinates]:
        """Every component that is there, in order.

        Raises:
            UsageError: where the repository should be is something else.
        """
        if os.path.lexists(self.folder) and not self.folder.is_dir():
            raise UsageError(f"{self.folder} is no folder; {_ANOTHER}")
        found = []
        for folder, names, files in os.walk(self.folder):
            names[:] = [name for name in names if not name.startswith(".")]
            coordinates = _coordinates(Path(folder).relative_to(self.folder).parts) if COMPLETED in files else None
            if coordinates and self.has(coordinates):
                found.append(coordinates)
                names.clear()
        return sorted(found)

    def install(self, components: Iterable[tuple[Path, Coordinates]]) -> list[Path]:
        """Copies config folders, each in the place of a former one with its coordinates: all of them, or none.

        Raises:
            GooseLikeError: there are links out of such a folder, or it can't be read, or nothing can be written here.
        """
        installed = list(components)
        with ExitStack() as stack:
            made = []
            for config_folder, coordinates in installed:
                target = stack.enter_context(self._begun(coordinates))
                _copy(config_folder, target, coordinates.prefix)
                made.append((target, self.folder_of(coordinates)))
            done = [self._finished(*each) for each in made]
        self._read(coordinates for _, coordinates in installed)
        return done

    def fill(self, coordinates: Coordinates, write: Callable[[Path], bool]) -> bool:
        """Puts in place what `write` writes to a new folder, unless it gives False. Nothing half is ever there."""
        with self._begun(coordinates) as made:
            if not write(made):
                return False
            self._finished(made, self.folder_of(coordinates))
        self._read([coordinates])
        return True

    def _read(self, components: Iterable[Coordinates]) -> None:
        """Reads their config files, so that the first session that uses them need not."""
        files = (config_file_in(self.folder_of(coordinates), coordinates) for coordinates in components)
        read_entries(filter(None, files))

    @contextmanager
    def _begun(self, coordinates: Coordinates) -> Iterator[Path]:
        above = self.folder_of(coordinates).parent
        try:
            above.mkdir(parents=True, exist_ok=True)
            # Removed with the process, too, if that ends in the middle.
            folder = tempfile.TemporaryDirectory(
                prefix=f".{coordinates.version}.", dir=above, ignore_cleanup_errors=True
            )
        except OSError as error:
            raise GooseLikeError(f"{above} can't be written: {error.strerror}; {_ANOTHER}") from error
        with folder as made:
            yield Path(made)

    def _finished(self, made: Path, target: Path) -> Path:
        try:
            (made / COMPLETED).touch()
            made.chmod(0o755)
            put_in_place(made, target)
        except OSError as error:
            raise GooseLikeError(f"{target} can't be written: {error.strerror}; is the folder yours?") from error
        return target


def _coordinates(parts: tuple[str, ...]) -> Coordinates | None:
    """Those that a folder stands for; None where it is none of a component's."""
    try:
        return Coordinates(".".join(parts[:-2]), *parts[-2:]) if len(parts) > 2 else None
    except UsageError:
        return None


def _copy(source: Path, target: Path, prefix: str) -> None:
    """Copies what is in a config folder; files get the prefix, folders keep their names."""
    root = os.path.realpath(source)
    try:
        for below, names, files in os.walk(source):
            into = target / os.path.relpath(below, source)
            into.mkdir(exist_ok=True)
            for name in (*names, *files):
                real = os.path.realpath(os.path.join(below, name))
                if not real.startswith(f"{root}{os.sep}") or (name in names and os.path.islink(Path(below, name))):
                    raise GooseLikeError(
                        f"{os.path.join(below, name)} is a link out of the component, or to a folder; "
                        "put a copy in its place"
                    )
            for name in files:
                if is_added(name):
                    continue
                if not stat.S_ISREG(os.stat(os.path.join(below, name)).st_mode):
                    raise GooseLikeError(f"{os.path.join(below, name)} is no file that can be copied; remove it")
                shutil.copyfile(os.path.join(below, name), into / f"{prefix}{name}")
    except OSError as error:
        raise GooseLikeError(f"{error.filename or source} can't be copied: {error.strerror}") from error


class FolderShelf:
    """Components as they are written: `<name>/.config/config.yaml` below a folder. Never written."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name

    def has(self, coordinates: Coordinates) -> bool:
        return coordinates in self._found

    def folder_of(self, coordinates: Coordinates) -> Path:
        return self._found[coordinates]

    def all(self) -> list[Coordinates]:
        return sorted(self._found)

    @cached_property
    def _found(self) -> dict[Coordinates, Path]:
        read = read_entries(sorted(self.folder.glob("*/.config/config.yaml")))
        return {each.value.coordinates: file.parent for file, each in read.items() if each.value}


def _silent(words: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class Repositories:
    """Where a component is looked for, in this order: the local repository, `shelves`, then the remotes.

    What a remote gives is kept in the local one. `tell` is given sentences for the person: where something comes from,
    what could not be verified; `follow` what goes on, e.g. how far a long transfer is (without one, `tell` is).
    """

    local: LocalRepository
    remotes: Sequence[RemoteAddress] = ()
    shelves: Sequence[Shelf] = (FolderShelf(OWN, "goose_like"),)
    tell: Tell = _silent
    follow: Tell | None = None
    gnupg_home: Path | None = None

    @classmethod
    def of(cls, settings: Settings, folder: Path | None = None, tell: Tell = _silent) -> "Repositories":
        """As settings say; `folder` is a local repository in the place of theirs."""
        return cls(LocalRepository(folder or settings.local), settings.remotes, tell=tell)

    @property
    def at_hand(self) -> tuple[Shelf, ...]:
        """Those that need no fetching."""
        return (self.local, *self.shelves)

    def here(self, coordinates: Coordinates) -> Path | None:
        """The component's folder, if it is there without asking a remote."""
        return next((shelf.folder_of(coordinates) for shelf in self.at_hand if shelf.has(coordinates)), None)

    def find(self, coordinates: Coordinates) -> Path:
        """The folder with the component's config file; it blocks while it is fetched.

        Raises:
            RefusedError: a remote gave what is damaged, badly signed or out to do harm; nothing of it is kept.
            GooseLikeError: it is nowhere; the text says where it was looked for.
        """
        return self.here(coordinates) or self.fetch(coordinates)

    def fetch(self, coordinates: Coordinates) -> Path:
        """As `find`, from a remote also where it is here already, e.g. an older snapshot."""
        looked = [f"{shelf.name}: not there" for shelf in self.at_hand]
        if self.remotes:
            from .fetching import fetch_from  # of no use to a session's start

            found = fetch_from(self.remotes, coordinates, self.local.fill, self.tell, self.gnupg_home, self.follow)
            if found.is_there:
                return self.local.folder_of(coordinates)
            looked += found.looked
            if found.is_unknown:
                raise GooseLikeError(
                    f"there is no component {coordinates} here, and not every repository gave an answer; try again, or "
                    f"install it with `goose-like component install FOLDER`. It was looked for in{_listed(looked)}"
                )
        check = f"did you mean {near}? If not," if (near := self._nearest(coordinates)) else "check its coordinates, or"
        raise GooseLikeError(
            f"there is no component {coordinates}; {check} install it with "
            f"`goose-like component install FOLDER`. It was looked for in{_listed(looked)}"
        )

    def _nearest(self, coordinates: Coordinates) -> str | None:
        """What is here and was probably meant."""
        here = [each for shelf in self.at_hand for each in shelf.all()]
        alike = [str(each) for each in here if find_nearest_name(coordinates.artifact_id, [each.artifact_id])]
        return find_nearest_name(str(coordinates), alike)


def _listed(looked: Iterable[str]) -> str:
    return "".join(f"\n  {one}" for one in looked)
