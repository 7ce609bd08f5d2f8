"""Entry points by group and name, and the nearest name when one is misspelt."""

import difflib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points

from .errors import GooseLikeError, ProfileError

GROUPS = {
    "goose_like.toolkit": "toolkit classes",
    "goose_like.provider": "provider classes",
    "goose_like.moderator": "moderator classes",
    "goose_like.profile": "packages that hold NAME.yaml files",
    "goose_like.command": "slash commands of the session",
    "goose_like.cli": "typer apps, added as subcommands",
}


@cache
def _installed() -> EntryPoints:
    # One scan of the installed distributions a process: each scan opens one file a distribution.
    return entry_points()


def found(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, sorted; nothing is imported."""
    return {point.name: point for point in sorted(_installed().select(group=group), key=lambda point: point.name)}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error sentence: the nearest of the known names, else all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there are: {', '.join(names)}" if names else "there are none"


def load(group: str, name: str) -> object:
    """What the entry point `name` of the group stands for, imported.

    Raises:
        ProfileError: when there is no such name; the text gives the nearest one.
        GooseLikeError: when the package that offers it can't be imported; the text says why.
    """
    points = found(group)
    kind = group.removeprefix("goose_like.")
    if name not in points:
        raise ProfileError(f"unknown {kind} {name!r}; {did_you_mean(name, points)}")
    try:
        return points[name].load()
    except Exception as error:  # a stranger's package: whatever its import raises is told, not ours to foresee
        owner = getattr(points[name].dist, "name", "?")
        raise GooseLikeError(
            f"the {kind} {name!r} of the package {owner!r} can't be imported: {type(error).__name__}: {error}; "
            f"repair or uninstall {owner!r}"
        ) from error
