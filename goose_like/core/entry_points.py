"""Entry points by group and name, and the nearest name when one is misspelt."""

import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from .errors import GooseLikeError, ProfileError
from .frames import told

_NAMES_TOLD = 12

GROUPS = {
    "goose_like.toolkit": "toolkit classes",
    "goose_like.provider": "provider classes",
    "goose_like.moderator": "moderator classes",
    "goose_like.profile": "packages with profiles",
    "goose_like.command": "slash commands of the session",
    "goose_like.cli": "typer apps, added as subcommands",
}

FORMER = {"goose_like.toolkit": "goose.toolkit"}
"""Groups of goose 0.9 that are found too. Of two with one name that of our group counts."""


@cache
def _installed(path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:
    # One scan for each state of `sys.path`, thus one a process: a scan opens one file a distribution.
    every = entry_points()
    former = {group: tuple(every.select(group=name)) for group, name in FORMER.items()}
    return {group: (*former.get(group, ()), *every.select(group=group)) for group in GROUPS}


def found(group: str) -> dict[str, EntryPoint]:
    """The entry points of one of the `GROUPS` by name, sorted; nothing is imported."""
    points = _installed(tuple(sys.path))[group]
    return {point.name: point for point in sorted(points, key=lambda point: point.name)}


def owner(point: EntryPoint) -> str:
    """The name of the package that offers it."""
    return getattr(point.dist, "name", "?")


def overridden(group: str) -> list[tuple[EntryPoint, EntryPoint]]:
    """The entry points that do not count, each with the one of another package that has its name and does."""
    counting = found(group)
    points = ((point, counting[point.name]) for point in _installed(tuple(sys.path))[group])
    return [(point, other) for point, other in points if owner(point) != owner(other)]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be; None when none is near."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.65)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error sentence: the nearest of the known names, else all of them."""
    names = sorted(known)
    if near := nearest(name, names):
        return f"did you mean {near!r}?"
    more = f" and {len(names) - _NAMES_TOLD} more" if len(names) > _NAMES_TOLD else ""
    return f"there are: {', '.join(names[:_NAMES_TOLD])}{more}" if names else "there are none"


def load(group: str, name: str) -> object:
    """What the entry point `name` of the group stands for, imported.

    Raises:
        ProfileError: when there is no such name; the text gives the nearest one.
        GooseLikeError: when the package that offers it can't be imported; the text says why.
    """
    points = found(group)
    kind = group.removeprefix("goose_like.")
    if name not in points:
        raise ProfileError(f"unknown {kind} {name!r}; {_instead(kind, name, points)}")
    try:
        return points[name].load()
    except Exception as error:  # a stranger's package: whatever its import raises is told, not ours to foresee
        package = owner(points[name])
        raise GooseLikeError(
            f"the {kind} {name!r} of the package {package!r} can't be imported: {told(error, points[name].module)}; "
            f"repair or uninstall {package!r}"
        ) from error


def _instead(kind: str, name: str, points: Mapping[str, EntryPoint]) -> str:
    """What was probably meant by a name that is none of these, or why it may be missing."""
    if offered := [repr(point.name) for point in points.values() if _same_package(owner(point), name)]:
        names = ", ".join(offered)
        return f"that is the package; its {kind}{'s are' if len(offered) > 1 else ' is'} {names}"
    if nearest(name, points):
        return did_you_mean(name, points)
    return f"{did_you_mean(name, points)}; is its package installed in this environment ({sys.executable})?"


def _same_package(one: str, other: str) -> bool:
    return re.sub(r"[-_.]+", "-", one).lower() == re.sub(r"[-_.]+", "-", other).lower()
