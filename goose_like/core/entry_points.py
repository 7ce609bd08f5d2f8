"""Named parts of goose_like: the built-in table, the entry points of installed packages, and spelling suggestions."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from .errors import GooseLikeError, ProfileError, describe_foreign_error

if TYPE_CHECKING:  # its import and a scan take a third of the time of `--help`
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint

GROUPS = {
    "goose_like.toolkit": "toolkit classes",
    "goose_like.provider": "provider classes",
    "goose_like.moderator": "moderator classes",
    "goose_like.profile": "packages with profiles",
    "goose_like.command": "slash commands of the session",
    "goose_like.cli": "typer apps, added as subcommands",
}

GOOSE09_GROUPS = {"goose_like.toolkit": "goose.toolkit"}
"""Groups of goose 0.9 that count too. A name in our group wins."""

BUILTIN_ENTRY_POINTS: dict[str, dict[str, str]] = {
    "goose_like.toolkit": {
        "boss": "goose_like_toolkits.boss.toolkit:BossToolkit",
        "boss_controller": "goose_like_toolkits.boss.flow.controller:ControllerToolkit",
        "code": "goose_like_toolkits.code.toolkit:CodeToolkit",
        "components": "goose_like_toolkits.components.toolkit:ComponentsToolkit",
        "delegate": "goose_like_toolkits.delegate:DelegateToolkit",
        "developer": "goose_like_toolkits.developer:DeveloperToolkit",
        "github": "goose_like_toolkits.github:GitHubToolkit",
        "jira": "goose_like_toolkits.jira:JiraToolkit",
        "openbb": "goose_like_toolkits.openbb:OpenBBToolkit",
        "reasoner": "goose_like_toolkits.reasoner:ReasonerToolkit",
        "repo_context": "goose_like_toolkits.repo_context:RepoContextToolkit",
        "screen": "goose_like_toolkits.screen:ScreenToolkit",
        "synopsis": "goose_like_toolkits.developer.synopsis:SynopsisToolkit",
    },
    "goose_like.provider": {
        "anthropic": "goose_like.providers.anthropic:AnthropicProvider",
        "bedrock": "goose_like.providers.anthropic:BedrockProvider",
        "local": "goose_like.providers.local:LocalProvider",
        "openai": "goose_like.providers.openai:OpenAIProvider",
        "scripted": "goose_like.providers.scripted:ScriptedProvider",
        "vertex": "goose_like.providers.anthropic:VertexProvider",
    },
    "goose_like.moderator": {
        "boss": "goose_like_toolkits.boss.flow.moderator:BossModerator",
        "passive": "goose_like.agent.compaction.moderators:Passive",
        "summarize": "goose_like.agent.compaction.moderators:Summarize",
        "synopsis": "goose_like.agent.compaction.moderators:Synopsis",
        "truncate": "goose_like.agent.compaction.moderators:Truncate",
    },
    "goose_like.profile": {
        "goose_like": "goose_like_profiles",
    },
    "goose_like.command": {
        "clear": "goose_like.cli.chat.slash_commands:clear",
        "compact": "goose_like.cli.chat.slash_commands:compact",
        "context": "goose_like.cli.chat.slash_commands:draw_context",
        "copy": "goose_like.cli.chat.slash_commands:copy",
        "cost": "goose_like.cli.chat.slash_commands:cost",
        "diff": "goose_like.cli.chat.slash_commands:diff",
        "doctor": "goose_like.cli.chat.slash_commands:doctor",
        "exit": "goose_like.cli.chat.slash_commands:leave",
        "export": "goose_like.cli.chat.slash_commands:export",
        "file": "goose_like.cli.chat.slash_commands:file",
        "fork": "goose_like.cli.chat.slash_commands:fork",
        "help": "goose_like.cli.chat.slash_commands:show_help",
        "mode": "goose_like.cli.chat.slash_commands:mode",
        "model": "goose_like.cli.chat.slash_commands:model",
        "plan": "goose_like.cli.chat.slash_commands:plan",
        "profile": "goose_like.cli.chat.slash_commands:profile",
        "resume": "goose_like.cli.chat.slash_commands:resume",
        "retry": "goose_like.cli.chat.slash_commands:retry",
        "rewind": "goose_like.cli.chat.slash_commands:rewind",
        "show": "goose_like.cli.chat.slash_commands:show",
        "toolkits": "goose_like.cli.chat.slash_commands:toolkits",
        "undo": "goose_like.cli.chat.slash_commands:undo",
    },
    "goose_like.cli": {
        "boss": "goose_like_toolkits.boss.cli:app",
        "component": "goose_like_toolkits.components.cli:app",
        "plugin": "goose_like_toolkits.code.cli:app",
        "serve": "goose_like.serve.command:app",
    },
}
"""The built-in parts by group and name, each as `module:attribute`. A built-in part wins over an installed one."""

_PACKAGE = "goose-like"
_MAX_SUGGESTIONS = 12


@cache
def _scan_packages(path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:
    # Scan once for each state of `sys.path`: a scan opens one file of each installed package.
    if not any(map(_has_extensions, path)):
        return dict.fromkeys(GROUPS, ())
    from importlib.metadata import entry_points

    points = entry_points()
    goose09 = {group: tuple(points.select(group=name)) for group, name in GOOSE09_GROUPS.items()}
    return {group: (*goose09.get(group, ()), *points.select(group=group)) for group in GROUPS}


def _has_extensions(folder: str) -> bool:
    """Return whether a package in a folder of `sys.path` may extend goose_like. An archive always may."""
    try:
        packages = [entry for entry in os.scandir(folder or ".") if entry.name.endswith(("-info", ".egg"))]
    except NotADirectoryError:
        return True
    except OSError:
        return False
    return any(entry.name.endswith(".egg") or _is_extension(entry.path) for entry in packages)


def _is_extension(package: str) -> bool:
    try:
        with open(f"{package}/entry_points.txt", "rb") as file:
            return b"[goose" in file.read()  # the head of a group
    except OSError:
        return False


def list_names(group: str) -> list[str]:
    """List the names of the entry points of one of the `GROUPS`, sorted."""
    return sorted({*BUILTIN_ENTRY_POINTS[group], *(point.name for point in _scan_packages(tuple(sys.path))[group])})


def list_entry_points(group: str) -> dict[str, EntryPoint]:
    """List the entry points of one of the `GROUPS` by name, sorted, without importing them."""
    from importlib.metadata import EntryPoint

    points = {point.name: point for point in _scan_packages(tuple(sys.path))[group]}
    points |= {name: EntryPoint(name, value, group) for name, value in BUILTIN_ENTRY_POINTS[group].items()}
    return dict(sorted(points.items()))


def find_entry_point(group: str, name: str) -> EntryPoint | None:
    """Find one entry point. A built-in one needs no scan of the installed packages."""
    if value := BUILTIN_ENTRY_POINTS[group].get(name):
        from importlib.metadata import EntryPoint

        return EntryPoint(name, value, group)
    return list_entry_points(group).get(name)


def get_package_name(point: EntryPoint) -> str:
    """Return the name of the package that offers an entry point."""
    return getattr(point.dist, "name", _PACKAGE)


def list_other_packages() -> list[str]:
    """List the names of the installed packages that extend goose_like, without goose_like itself."""
    names = {get_package_name(point) for group in GROUPS for point in list_entry_points(group).values()}
    return sorted(names - {_PACKAGE})


def list_overridden_entry_points(group: str) -> list[tuple[EntryPoint, EntryPoint]]:
    """List entry points that lose to one of the same name in another package, each with the winner."""
    winners = list_entry_points(group)
    pairs = ((point, winners[point.name]) for point in _scan_packages(tuple(sys.path))[group])
    return [(point, winner) for point, winner in pairs if get_package_name(point) != get_package_name(winner)]


def find_nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Find the known name that was probably meant. Return None when no name is similar."""
    import difflib

    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.65)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, or list all of them, as the end of an error message."""
    names = sorted(set(known))
    if near := find_nearest_name(name, names):
        return f"did you mean {near!r}?"
    more = f" and {len(names) - _MAX_SUGGESTIONS} more" if len(names) > _MAX_SUGGESTIONS else ""
    return f"there are: {', '.join(names[:_MAX_SUGGESTIONS])}{more}" if names else "there are none"


def load_entry_point(group: str, name: str) -> object:
    """Import and return the object that an entry point names.

    Raises:
        ProfileError: no such name; the message suggests the nearest one.
        GooseLikeError: the package cannot be imported; the message says why.
    """
    kind = group.removeprefix("goose_like.")
    module, _, attribute = BUILTIN_ENTRY_POINTS[group].get(name, "").partition(":")
    point = None if module else find_entry_point(group, name)
    if not (module or point):
        points = list_names(group)
        place = f"; is its package installed in this environment ({sys.executable})?"
        hint = did_you_mean(name, points) + ("" if find_nearest_name(name, points) else place)
        raise ProfileError(f"unknown {kind} {name!r}; {hint}")
    try:
        if point:
            return point.load()
        imported = import_module(module)
        return getattr(imported, attribute) if attribute else imported
    except Exception as error:  # foreign code: its import may raise anything
        package = get_package_name(point) if point else _PACKAGE
        raise GooseLikeError(
            f"the {kind} {name!r} of the package {package!r} can't be imported: "
            f"{describe_foreign_error(error, point.module if point else module)}; repair or uninstall {package!r}"
        ) from error
