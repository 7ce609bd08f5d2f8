"""What is installed in a Python environment, by its files alone."""

import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.metadata import Distribution
from pathlib import Path

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version


def site_of(environment: Path, name: str = "purelib") -> Path:
    """Where its packages lie."""
    return Path(sysconfig.get_path(name, "venv", {"base": str(environment), "platbase": str(environment)}))


class Installed:
    """The packages that were there when this was made. What an installation that was killed left counts for none."""

    def __init__(self, environment: Path | None, served: Iterable[str] = ()) -> None:
        """Of none there is nothing; the names that are `served` count as there in any version."""
        self._served = frozenset(served)
        sites = {site_of(environment, name) for name in ("purelib", "platlib")} if environment else set()
        self._there = dict(_found(sites))

    def __contains__(self, name: str) -> bool:
        return canonicalize_name(name) in self._there

    def satisfies(self, requirement: Requirement) -> bool:
        """Whether what is asked for is there with its extras, or is of no use on this machine."""
        return self._is_there(requirement, set())

    def _is_there(self, requirement: Requirement, seen: set[str]) -> bool:
        name = canonicalize_name(requirement.name)
        if not _applies(requirement, "") or name in self._served or str(requirement) in seen:
            return True
        if name not in self._there:
            return False
        version, folder = self._there[name]
        with suppress(InvalidVersion):
            if requirement.specifier.contains(Version(version), prereleases=True):
                inner = (each for extra in requirement.extras for each in _of_extra(folder, extra))
                return all(self._is_there(each, seen | {str(requirement)}) for each in inner)
        return False


def _found(sites: set[Path]) -> Iterator[tuple[str, tuple[str, Path]]]:
    """By their names: version and folder."""
    for site in sites:
        for folder in site.glob("*.dist-info"):
            name, _, version = folder.name.removesuffix(".dist-info").rpartition("-")
            if name and (folder / "RECORD").is_file() and (folder / "METADATA").is_file():
                yield canonicalize_name(name), (version, folder)


def _applies(requirement: Requirement, extra: str) -> bool:
    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    except UndefinedEnvironmentName:
        return True


def _of_extra(folder: Path, extra: str) -> Iterator[Requirement]:
    """What a package asks for because of an extra alone."""
    for line in Distribution.at(folder).requires or ():
        with suppress(InvalidRequirement):
            requirement = Requirement(line)
            if _applies(requirement, extra) and not _applies(requirement, ""):
                requirement.marker = None
                yield requirement
