"""Runtime: the copies of components' configuration in a working directory, made at their first use, then a person's."""

import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like_toolkits.components.described.coordinates import PARTS, Coordinates

from .layout import config_file_in, is_added
from .sources import CONFIG_FILES

FOLDER = ".runtime"

_UNFINISHED = ".unfinished"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


class Repository(Protocol):
    def find(self, coordinates: Coordinates) -> Path:
        """The folder of a component's files, whose names may begin with `ARTIFACT-VERSION-`.

        Raises:
            GooseLikeError: there is none; the sentence says where it was looked for.
        """


@dataclass(frozen=True, slots=True)
class Instance:
    """One use of a component, with files of its own.

    `config_file` is another file in its folder than config.yaml, begun as a copy of that; `config_folder` is another
    folder in the working directory. A stranger may have named them: they are checked where they are used.
    """

    coordinates: Coordinates
    instance_id: Any = None
    config_file: str | None = None
    config_folder: str | None = None

    @classmethod
    def of(cls, named: Mapping[str, Any]) -> "Instance":
        """That of who names a component.

        Raises:
            UsageError: its coordinates can't be such.
        """
        coordinates = Coordinates(*(named.get(part) for part in PARTS))  # type: ignore[arg-type]
        return cls(coordinates, named.get("instance_id"), named.get("config_file"), named.get("config_folder"))


class Runtime:
    """`folder` is the working directory: nothing is read or written outside of it, wherever a link there may lead.

    Nor is it in folders whose names begin with a dot, but for `.runtime` and `dot_folders`.
    """

    def __init__(self, folder: Path, repository: Repository, dot_folders: Iterable[str] = ()) -> None:
        self._folder = folder
        self._repository = repository
        self._dot_folders = {FOLDER, *dot_folders}

    def place(self, instance: Instance) -> Path:
        """The config file of an instance, which begins as a copy of the repository's.

        What is there stays as it is, unless its copying never came to its end: then it is copied anew.

        Raises:
            UsageError: one of the names can't be that of a file or folder there.
            GooseLikeError: the repository has no such component, or nothing can be written.
        """
        coordinates, parts, wanted = instance.coordinates, self._parts(instance), _wanted(instance.config_file)
        with self._held(coordinates, parts) as place:
            if (name := self._there(parts, wanted)) is None:
                source = None if self._there(parts, CONFIG_FILES) else self._repository.find(coordinates)
                with _opened(self._folder, parts, make=True) as folder:
                    if source:
                        _copy(source, folder, coordinates.prefix)
                    name = _begun(folder, wanted, coordinates)
            return place / name

    def source(self, instance: Instance) -> Path:
        """The config file that counts for an instance now: its own, or the repository's that this would begin as.

        Raises:
            UsageError, GooseLikeError: as `place`; but nothing is written.
        """
        coordinates, parts, wanted = instance.coordinates, self._parts(instance), _wanted(instance.config_file)
        with self._held(coordinates, parts) as place:
            if name := self._there(parts, wanted) or self._there(parts, CONFIG_FILES):
                return place / name
        if file := config_file_in(self._repository.find(coordinates), coordinates, (*wanted, *CONFIG_FILES)):
            return file
        raise _without_config(coordinates)

    def is_open(self, path: Path) -> bool:
        """Whether a path relative to the working directory leads through no folder that is hidden from components."""
        return all(not part.startswith(".") or part in self._dot_folders for part in path.parts)

    def _parts(self, instance: Instance) -> tuple[str, ...]:
        """Where it lies, relative to the working directory: no link is on that way at this moment."""
        folder = Path(FOLDER, instance.coordinates.instance_folder(instance.instance_id))
        config_folder = instance.config_folder
        if config_folder is not None and config_folder != "":
            if not isinstance(config_folder, str) or "\0" in config_folder:
                raise UsageError(f"config_folder: {config_folder!r} is no name of a folder")
            folder = Path(config_folder)
        real, root = os.path.realpath(self._folder / folder), os.path.realpath(self._folder)
        if not Path(real).is_relative_to(root):
            raise UsageError(
                f"{folder}: this leads out of the working directory {self._folder}; choose a `config_folder` within it"
            )
        place = Path(real).relative_to(root)
        if not self.is_open(place):
            raise UsageError(
                f"{folder}: a folder with a leading dot is not for components; take another or name it in `dot_folders`"
            )
        return place.parts

    @contextmanager
    def _held(self, coordinates: Coordinates, parts: tuple[str, ...]) -> Iterator[Path]:
        """Where an instance lies; what the system refuses there is told."""
        place = self._folder.joinpath(*parts)
        try:
            yield place
        except OSError as error:
            reason = error.strerror or str(error)
            raise GooseLikeError(f"{place}: can't hold {coordinates}: {reason}; is there a link in the way?") from error

    def _there(self, parts: tuple[str, ...], names: tuple[str, ...]) -> str | None:
        try:
            with _opened(self._folder, parts, make=False) as folder:
                return None if _is_file(folder, _UNFINISHED) else _first(folder, names)
        except FileNotFoundError:
            return None


def _wanted(config_file: Any) -> tuple[str, ...]:
    if not config_file:
        return CONFIG_FILES
    is_name = isinstance(config_file, str) and Path(config_file).name == config_file and "\0" not in config_file
    if not is_name or config_file.startswith("."):
        raise UsageError(f"config_file: {config_file!r} is no name of a file beside config.yaml; write only its name")
    return (str(config_file),)


def _without_config(coordinates: Coordinates) -> GooseLikeError:
    return GooseLikeError(f"{coordinates} has no config.yaml in its repository; install it again")


def _begun(folder: int, wanted: tuple[str, ...], coordinates: Coordinates) -> str:
    """The first of the wanted files that is there; one that is not is begun with what config.yaml says."""
    if name := _first(folder, wanted):
        return name
    default = _first(folder, CONFIG_FILES)
    if default is None:
        raise _without_config(coordinates)
    with open(os.open(default, _FILE, dir_fd=folder), "rb") as file:
        _write(folder, wanted[0], file)
    return wanted[0]


def _copy(source: Path, folder: int, prefix: str) -> None:
    """Copies a repository's files. Those that a person has stay, unless they are of a copy that was cut off."""
    is_anew = _is_file(folder, _UNFINISHED)
    os.close(os.open(_UNFINISHED, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder))
    for below, folders, names in os.walk(source):
        folders.sort()
        parts = Path(below).relative_to(source).parts
        with _opened(None, parts, make=True, start=folder) as into:
            for target, name in _targets(names, prefix):
                if is_anew or not _is_file(into, target):
                    with open(os.open(Path(below, name), _FILE), "rb") as file:
                        _write(into, target, file)
    with suppress(FileNotFoundError):  # another session copied it too
        os.unlink(_UNFINISHED, dir_fd=folder)


def _targets(names: list[str], prefix: str) -> list[tuple[str, str]]:
    """What a repository's files are called in a copy, and what they are called there."""
    wanted = [name for name in names if not is_added(name) and name != prefix]
    # Of two for one name that with the prefix comes last, and counts.
    named = {name.removeprefix(prefix): name for name in sorted(wanted, key=lambda name: name.startswith(prefix))}
    return sorted((target, name) for target, name in named.items() if target != _UNFINISHED)


def _write(folder: int, name: str, source: Any) -> None:
    """Writes a file as a whole: who reads meanwhile finds the former one."""
    new = f".{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(new, flags, 0o666, dir_fd=folder), "wb") as file:
            shutil.copyfileobj(source, file)
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=folder)


@contextmanager
def _opened(root: Path | None, parts: tuple[str, ...], *, make: bool, start: int = -1) -> Iterator[int]:
    """A folder, held, by a way on which no link is: below `root`, or below the folder `start`."""
    opened = [os.open(os.path.realpath(root), _DIRECTORY) if root else os.dup(start)]
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=opened[-1])
            opened.append(os.open(part, _DIRECTORY, dir_fd=opened[-1]))
        yield opened[-1]
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _first(folder: int, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if _is_file(folder, name)), None)


def _is_file(folder: int, name: str) -> bool:
    """Raises OSError for what is there and no file: a link could lead anywhere."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise OSError(f"{name} is there and is no file")
    return True
