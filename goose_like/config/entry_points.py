"""Named parts of goose_like: the built-in table, and the entry points of installed packages."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache, reduce
from importlib import import_module
from pathlib import Path

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, ProfileError, describe_foreign_error
from goose_like.core.spelling import did_you_mean, find_nearest_name

GROUPS = {
    "goose_like.toolkit": "toolkit classes",
    "goose_like.toolkit_files": "toolkit files",
    "goose_like.provider": "provider classes",
    "goose_like.moderator": "moderator classes",
    "goose_like.profile": "profile packages",
    "goose_like.command": "slash commands",
    "goose_like.cli": "subcommands",
}

_GROUP_STARTS = ("goose", "exchange", "pydantic")
"""The beginnings of the groups that count."""

GOOSE09_GROUPS = {"goose_like.toolkit": "goose.toolkit"}
"""Groups of goose 0.9 that count too. A name in our group wins."""

UNUSED_GOOSE09_GROUPS = {
    "goose.cli.group": "goose_like.cli",
    "goose.cli.group_option": "goose_like.cli",
    "goose.command": "goose_like.command",
    "goose.profile": "goose_like.profile",
    "exchange.provider": "goose_like.provider",
    "exchange.moderator": "goose_like.moderator",
}
"""Groups of goose 0.9 whose parts cannot be used, with the group of ours for which they can be rewritten."""

_GOOSE09_PACKAGES = ("goose-ai", "ai-exchange")

_PYDANTIC_GROUP = "pydantic"
"""The group of pydantic's plugins."""

_GROUP_OF = {name: group for group, name in GOOSE09_GROUPS.items()}
_KNOWN_GROUPS = GROUPS.keys() | _GROUP_OF.keys() | UNUSED_GOOSE09_GROUPS.keys() | {_PYDANTIC_GROUP}

BUILTIN_ENTRY_POINTS: dict[str, dict[str, str]] = {
    "goose_like.toolkit": {
        "boss": "goose_like_toolkits.boss.toolkit:BossToolkit",
        "boss_controller": "goose_like_toolkits.boss.flow.controller:ControllerToolkit",
        "code": "goose_like_toolkits.code.toolkit:CodeToolkit",
        "components": "goose_like_toolkits.components.toolkit:ComponentsToolkit",
        "delegate": "goose_like_toolkits.delegate:DelegateToolkit",
        "developer": "goose_like_toolkits.developer:DeveloperToolkit",
        "github": "goose_like_toolkits.github:GitHubToolkit",
        "hooks": "goose_like_toolkits.hooks.toolkit:HooksToolkit",
        "jira": "goose_like_toolkits.jira:JiraToolkit",
        "mcp": "goose_like_toolkits.mcp.toolkit:McpToolkit",
        "openbb": "goose_like_toolkits.openbb:OpenBBToolkit",
        "otel": "goose_like_toolkits.otel.toolkit:OtelToolkit",
        "reasoner": "goose_like_toolkits.reasoner:ReasonerToolkit",
        "repo_context": "goose_like_toolkits.repo_context:RepoContextToolkit",
        "screen": "goose_like_toolkits.screen:ScreenToolkit",
        "skills": "goose_like_toolkits.skills.toolkit:SkillsToolkit",
        "synopsis": "goose_like_toolkits.developer.synopsis:SynopsisToolkit",
    },
    "goose_like.toolkit_files": {
        ".agents/skills/**/SKILL.md": "goose_like_toolkits.skills.toolkit:SkillsToolkit",
        ".claude/settings.json#hooks": "goose_like_toolkits.hooks.toolkit:HooksToolkit",
        ".claude/skills/**/SKILL.md": "goose_like_toolkits.skills.toolkit:SkillsToolkit",
        ".codex/config.toml#hooks": "goose_like_toolkits.hooks.toolkit:HooksToolkit",
        ".codex/hooks.json": "goose_like_toolkits.hooks.toolkit:HooksToolkit",
        ".goose-like/skills/**/SKILL.md": "goose_like_toolkits.skills.toolkit:SkillsToolkit",
        "{config}/bundles/*/hooks.json": "goose_like_toolkits.hooks.toolkit:HooksToolkit",
        "{config}/bundles/*/servers.json": "goose_like_toolkits.mcp.toolkit:McpToolkit",
        "{config}/bundles/*/skills.json": "goose_like_toolkits.skills.toolkit:SkillsToolkit",
        "{config}/hooks.json": "goose_like_toolkits.hooks.toolkit:HooksToolkit",
        "{config}/skills/**/SKILL.md": "goose_like_toolkits.skills.toolkit:SkillsToolkit",
        ".mcp.json": "goose_like_toolkits.mcp.toolkit:McpToolkit",
        "{config}/mcp.json": "goose_like_toolkits.mcp.toolkit:McpToolkit",
        "{packages}/agent_plugins.json": "goose_like_toolkits.skills.toolkit:SkillsToolkit",
        "~/.agents/skills/**/SKILL.md": "goose_like_toolkits.skills.toolkit:SkillsToolkit",
        "~/.claude/skills/**/SKILL.md": "goose_like_toolkits.skills.toolkit:SkillsToolkit",
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
        "add-dir": "goose_like.cli.chat.folder_command:add_folder",
        "clear": "goose_like.cli.chat.slash_commands:clear",
        "commit": "goose_like.cli.chat.git_commands:commit",
        "compact": "goose_like.cli.chat.slash_commands:compact",
        "context": "goose_like.cli.chat.context_command:draw_context",
        "copy": "goose_like.cli.chat.slash_commands:copy",
        "cost": "goose_like.cli.chat.slash_commands:cost",
        "diff": "goose_like.cli.chat.undo_commands:diff",
        "doctor": "goose_like.cli.chat.slash_commands:doctor",
        "effort": "goose_like.cli.chat.effort_command:effort",
        "exit": "goose_like.cli.chat.slash_commands:leave",
        "export": "goose_like.cli.chat.slash_commands:export",
        "file": "goose_like.cli.chat.slash_commands:file",
        "fork": "goose_like.cli.chat.slash_commands:fork",
        "help": "goose_like.cli.chat.slash_commands:show_help",
        "mode": "goose_like.cli.chat.mode_command:mode",
        "model": "goose_like.cli.chat.slash_commands:model",
        "permissions": "goose_like.cli.chat.permission_commands:permissions",
        "plan": "goose_like.cli.chat.slash_commands:plan",
        "profile": "goose_like.cli.chat.slash_commands:profile",
        "receipt": "goose_like.cli.chat.receipt_command:receipt",
        "recipe": "goose_like.cli.chat.recipe_command:recipe",
        "redo": "goose_like.cli.chat.undo_commands:redo",
        "rename": "goose_like.cli.chat.slash_commands:rename",
        "resume": "goose_like.cli.chat.slash_commands:resume",
        "retry": "goose_like.cli.chat.slash_commands:retry",
        "review": "goose_like.cli.chat.git_commands:review",
        "rewind": "goose_like.cli.chat.undo_commands:rewind",
        "show": "goose_like.cli.chat.slash_commands:show",
        "tasks": "goose_like.cli.chat.task_commands:tasks",
        "toolkits": "goose_like.cli.chat.slash_commands:toolkits",
        "undo": "goose_like.cli.chat.undo_commands:undo",
        "worktree": "goose_like.cli.chat.git_commands:worktree",
    },
    "goose_like.cli": {
        "acp": "goose_like.acp.command:app",
        "batch": "goose_like.jobs.batch.command:app",
        "boss": "goose_like_toolkits.boss.cli:app",
        "bundle": "goose_like_toolkits.bundles.cli:app",
        "component": "goose_like_toolkits.components.cli:app",
        "eval": "goose_like.jobs.eval.command:app",
        "hooks": "goose_like_toolkits.hooks.cli:app",
        "mcp": "goose_like_toolkits.mcp.cli:app",
        "permissions": "goose_like.cli.commands.groups:permissions_app",
        "plugin": "goose_like_toolkits.code.cli:app",
        "profile": "goose_like.cli.commands.groups:profile_app",
        "provider": "goose_like.cli.commands.groups:provider_app",
        "recipe": "goose_like.cli.commands.recipe:app",
        "serve": "goose_like.serve.command:app",
        "session": "goose_like.cli.commands.session:app",
        "skill": "goose_like_toolkits.skills.cli:app",
        "toolkit": "goose_like.cli.commands.groups:toolkit_app",
        "trust": "goose_like.cli.commands.groups:trust_app",
    },
}
"""The built-in parts by group and name, each as `module:attribute`. A built-in part wins over an installed one.

In the group `goose_like.toolkit_files` a name is a pattern of files, see `config/project_files.py`.
"""

DEFAULT_TOOLKIT = "developer"
"""The toolkit of a profile that lists none."""

CLIENT_TOOLKITS = {"OpenBB Workspace": "openbb"}
"""Toolkits by the client that runs their tools. Each profile that is served to this client has its toolkit."""

_PACKAGE = "goose-like"


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A named object of a package. `value` is `module:attribute`, or a module alone."""

    name: str
    value: str
    group: str
    package: str = _PACKAGE

    @property
    def module(self) -> str:
        """The module to import."""
        return self.value.partition(":")[0]

    def load(self) -> object:
        """Import the module and return the object."""
        attributes = filter(None, self.value.partition(":")[2].split("."))
        return reduce(getattr, attributes, import_module(self.module))


@cache
def _scan_packages(path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:
    """Read the entry points of the packages in the folders of a path, one time for each state of `sys.path`.

    Not with `importlib.metadata`: its import and its scan take a third of the time of `--help`.
    """
    points: dict[str, list[EntryPoint]] = {}
    for group in (*GROUPS, *UNUSED_GOOSE09_GROUPS, _PYDANTIC_GROUP):
        points[group] = []
    packages = set()
    for info in _list_package_folders(path):
        found = list(_read_package(info))
        if not found or found[0].package in packages:  # the first on the path hides other versions
            continue
        packages.add(found[0].package)
        for point in found:
            group = _GROUP_OF.get(point.group, point.group)
            points[group].append(point)
    for found in points.values():
        # A later one wins, so that those in our groups come last.
        found.sort(key=lambda point: point.group in GROUPS)
    return {group: tuple(found) for group, found in points.items()}


def list_package_files(name: str) -> tuple[Path, ...]:
    """List the files of a name in the metadata of installed packages, such as `NAME-1.0.dist-info/agent_plugins.json`.

    Of several versions of a package, the first on the path counts. The package that gives the file its name writes and
    reads such files, and does not count.
    """
    return _find_package_files(name, tuple(sys.path))


@cache
def _find_package_files(name: str, path: tuple[str, ...]) -> tuple[Path, ...]:
    found: dict[str, Path] = {}
    reader, _, _ = name.partition(".")
    for info in _list_package_folders(path):
        file = f"{info}/{name}"
        if not os.path.exists(file):
            continue
        package, _, _ = os.path.basename(info).partition("-")
        if package != reader:
            found.setdefault(package.lower(), Path(file))
    return tuple(found.values())


@cache
def _list_package_folders(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_iterate_packages(path))


def _iterate_packages(path: tuple[str, ...]) -> Iterator[str]:
    """Yield the `.dist-info` and `.egg-info` folders in the folders of a path, those of each folder sorted."""
    for folder in path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # a missing folder, or an archive
            continue
        for name in sorted(names):
            if name.endswith("-info"):
                yield os.path.join(folder or ".", name)


def _read_package(info: str) -> Iterator[EntryPoint]:
    """Read the entry points of our groups and of goose 0.9's from a `.dist-info` or `.egg-info` folder."""
    place = f"{info}/entry_points.txt"
    if not os.access(place, os.R_OK):  # most packages have none, and an exception takes longer
        return
    try:
        with open(place, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return
    if not any(f"[{start}" in text for start in _GROUP_STARTS):
        return
    package = _read_package_name(info)
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[] ")
            continue
        name, equals, value = line.partition("=")
        is_comment = line.startswith(("#", ";"))
        if equals and section in _KNOWN_GROUPS and not is_comment:
            value, _, _ = value.partition("[")  # older packages list extras there
            yield EntryPoint(name.strip(), value.replace(" ", ""), section, package)


def _read_package_name(info: str) -> str:
    for metadata in ("METADATA", "PKG-INFO"):
        try:
            with open(f"{info}/{metadata}", encoding="utf-8", errors="replace") as file:
                for line in file:
                    key, _, value = line.partition(":")
                    if key.lower() == "name":
                        return value.strip()
        except OSError:
            continue
    return os.path.basename(info).partition("-")[0]


def list_names(group: str) -> list[str]:
    """List the names of the entry points of one of the `GROUPS`, sorted."""
    return list(list_entry_points(group))


def list_entry_points(group: str) -> dict[str, EntryPoint]:
    """List the entry points of one of the `GROUPS` by name, sorted, without importing them."""
    installed = _scan_packages(tuple(sys.path))[group]
    points = {point.name: point for point in installed}
    for name, value in BUILTIN_ENTRY_POINTS[group].items():
        points[name] = EntryPoint(name, value, group)
    return dict(sorted(points.items()))


def find_entry_point(group: str, name: str) -> EntryPoint | None:
    """Find one entry point. A built-in one needs no scan of the installed packages."""
    if value := BUILTIN_ENTRY_POINTS[group].get(name):
        return EntryPoint(name, value, group)
    return list_entry_points(group).get(name)


def list_other_packages() -> list[str]:
    """List the names of the installed packages that extend goose_like, without goose_like itself."""
    names: set[str] = set()
    for group in GROUPS:
        names.update(point.package for point in list_entry_points(group).values())
    return sorted(names - {_PACKAGE})


def has_pydantic_plugins() -> bool:
    """Check whether an installed package has a plugin of pydantic."""
    return bool(_scan_packages(tuple(sys.path))[_PYDANTIC_GROUP])


def list_overridden_entry_points(group: str) -> list[tuple[EntryPoint, EntryPoint]]:
    """List entry points that lose to one of the same name in another package, each with the winner."""
    winners = list_entry_points(group)
    overridden = []
    for point in _scan_packages(tuple(sys.path))[group]:
        winner = winners[point.name]
        if winner.package != point.package:
            overridden.append((point, winner))
    return overridden


def list_unused_entry_points(group: str = "") -> list[EntryPoint]:
    """List the entry points of other packages in one or all of the `UNUSED_GOOSE09_GROUPS`."""
    scanned = _scan_packages(tuple(sys.path))
    groups = [group] if group else list(UNUSED_GOOSE09_GROUPS)
    unused = []
    for name in groups:
        for point in scanned.get(name, ()):
            if point.package not in _GOOSE09_PACKAGES:
                unused.append(point)
    return unused


def describe_unused_entry_point(point: EntryPoint) -> str:
    """Describe why an entry point of `list_unused_entry_points` is not used, and what to write instead."""
    return (
        f"{point.name!r} of the package {point.package!r}, because goose_like does not read the group {point.group!r} "
        f"of goose 0.9; rewrite it for {UNUSED_GOOSE09_GROUPS[point.group]!r} (`goose-like help extending`)"
    )


def load_entry_point(group: str, name: str) -> object:
    """Import and return the object that an entry point names.

    Raises:
        ProfileError: no such name; the message suggests the nearest one.
        GooseLikeError: the package cannot be imported; the message says why.
    """
    kind = group.removeprefix("goose_like.")
    point = find_entry_point(group, name)
    if point is None:
        names = list_names(group)
        hint = did_you_mean(name, names)
        if not find_nearest_name(name, names):
            hint += f"; is its package installed in this environment ({sys.executable})?"
        raise ProfileError(f"unknown {kind} {name!r}; {hint}")
    try:
        return point.load()
    except Exception as error:  # foreign code: its import may raise anything
        part = f"the {kind} {name!r} of the package {point.package!r}"
        reason = describe_foreign_error(error, point.module)
        raise GooseLikeError(f"{part} can't be imported: {reason}; {_advise(error, point)}") from error


def _advise(error: Exception, point: EntryPoint) -> str:
    """Say how to repair an import: `pip install --no-deps` leaves out what a package requires."""
    missing: list[str] = []
    if isinstance(error, ModuleNotFoundError):
        missing = _list_missing_requirements(point.package, error.name or "")
    if not missing:
        return f"repair or uninstall {point.package!r}"
    return f"{point.package!r} requires what is not installed; install it: pip install {shlex.join(missing)}"


def _list_missing_requirements(package: str, module: str) -> list[str]:
    """List what a package requires and is not installed. Of conditional requirements, list only that of the module."""
    from importlib import metadata  # slow to import

    missing: list[str] = []
    for line in metadata.requires(package) or []:
        requirement, _, condition = line.partition(";")
        name = re.split(r"[^\w.-]", requirement)[0]
        has_module = name.replace("-", "_").lower() == module.partition(".")[0].lower()
        if condition and not has_module:
            continue
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError:
            missing.append(requirement.replace(" ", ""))
    return missing
