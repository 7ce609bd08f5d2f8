"""Start files: settings in a project by which editors, shells, package managers and agents run programs.

They count in every folder except those of packages, such as `node_modules`. Files of CI servers are found too.
"""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from goose_like.config.paths import state_folder
from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later
from goose_like.workspace.sandbox.path_rules import Rules, resolve_path

from .file_copy import FileCopy, list_files, open_closed_folder
from .git import read_settings

_NAMES = frozenset(
    (
        # agents
        *(".claude", ".agents", ".mcp.json", ".codex", ".cursor", ".gemini", ".qwen", ".opencode", ".continue"),
        *("opencode.json", "opencode.jsonc", ".crush", ".crush.json", "crush.json", ".windsurf", ".roo", ".kiro"),
        *(".kilocode", ".cline", ".clinerules", ".amazonq", ".augment", ".factory", ".trae", ".junie", ".goose"),
        *(".aider.conf.yml", ".amp"),
        # editors
        *(".vscode", ".idea", ".run", ".zed", ".fleet", ".helix", ".nova", ".theia", ".devcontainer", ".projectile"),
        *(".devcontainer.json", ".exrc", "_exrc", ".vimrc", "_vimrc", ".gvimrc", "_gvimrc", ".ideavimrc", ".vim"),
        *(".nvim", ".nvimrc", ".nvim.lua", ".lvimrc", ".local.vimrc", ".vimrc.local", ".kakrc", ".emacs", ".emacs.d"),
        # shells, version managers, git hooks
        *(
            ".envrc",
            ".autoenv",
            ".autoenv.zsh",
            ".rtx.toml",
            ".mise",
            ".husky",
            ".gitmodules",
            ".huskyrc",
            ".overcommit.yml",
        ),
        *(".pre-commit-config.yaml", ".pre-commit-config.yml", "prek.toml", ".simple-git-hooks.js"),
        *(".simple-git-hooks.cjs", ".simple-git-hooks.json", "simple-git-hooks.json"),
        # debuggers and interpreters, which look into the current folder
        *(".gdbinit", ".lldbinit", ".pdbrc", ".pdbrc.py", ".Rprofile", ".Renviron", ".ghci", ".ocamlinit", ".iex.exs"),
        *(".irbrc", ".pryrc", ".byebugrc", ".rdbgrc", ".rdbgrc.rb", ".radare2rc"),
        # package managers
        *(".npmrc", ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpmfile.js", ".yarnrc", ".yarnrc.yml", "bunfig.toml"),
    )
)
_FAMILY = compile_later(
    r"\.?mise(?:\.[\w-]+)*\.toml|\.?lefthook(?:-local)?\.(?:ya?ml|toml|jsonc?)|\.dir-locals(?:-2)?\.el"
    r"|.+\.code-workspace|\.pre-commit-hooks\.ya?ml"
)
# The names below a folder that holds other files too.
_BELOW: dict[str, frozenset[str]] = {
    ".goose-like": frozenset(("profiles.yaml", "commands", "agents", "skills")),
    ".github": frozenset(("hooks", "agents", "skills", "prompts")),
    ".config": frozenset(("mise", "nvim", "helix", "zed")),
    ".cargo": frozenset(("config", "config.toml")),
    ".yarn": frozenset(("releases", "plugins", "sdks")),
    ".hg": frozenset(("hgrc",)),
    ".sl": frozenset(("config",)),
    ".jj/repo": frozenset(("config.toml",)),
}
_CI_NAMES = frozenset(
    (
        *(".gitlab-ci.yml", ".circleci", ".travis.yml", "azure-pipelines.yml", "Jenkinsfile", ".drone.yml"),
        *(".woodpecker", ".woodpecker.yml", ".woodpecker.yaml", "bitbucket-pipelines.yml", ".buildkite", ".teamcity"),
        *("appveyor.yml", ".appveyor.yml", ".cirrus.yml", ".cirrus.star", ".semaphore", ".tekton", ".builds"),
        *(".build.yml", "cloudbuild.yaml", "buildspec.yml", "codemagic.yaml", ".gitlab"),
    )
)
_ANYWHERE = _NAMES | _CI_NAMES
_CI_BELOW = dict.fromkeys((".github", ".forgejo", ".gitea"), frozenset(("workflows", "actions")))
PARENTS = (*_BELOW, *_CI_BELOW)
"""Folders that hold start files among other files."""

_PACKAGES = frozenset(("node_modules", "site-packages", "dist-packages"))

_MODULE_KEY = compile_later(r"submodule\..+\.(?:path|url|branch|ignore|shallow|fetchrecursesubmodules)")

_WORKTREES = {".claude": "worktrees"}
"""Folders of whole working trees within a start file. Start files in them count alone."""


def find_start_names(folder: str, names: Collection[str], links: Collection[str]) -> list[str]:
    """Find the names in a folder that are start files, or files of a CI server. `links` are those that are links."""
    path, _, name = folder.rpartition("/")
    _, _, above = path.rpartition("/")
    nested: set[str] = set()
    for table in (_BELOW, _CI_BELOW):
        nested.update(table.get(name, ()))
        nested.update(table.get(f"{above}/{name}", ()))
    found = [one for one in names if one in _ANYWHERE or one in nested or _FAMILY.fullmatch(one)]
    # No search follows a link, so a link in the place of such a folder counts as a whole.
    found += [one for one in links if one in _BELOW or one in _CI_BELOW]
    return found


def is_in_packages(path: Path, roots: Iterable[Path]) -> bool:
    """Check whether a path lies in a folder of packages below one of the roots. No editor opens these."""
    for root in roots:
        if path.is_relative_to(root) and _PACKAGES.isdisjoint(path.relative_to(root).parts):
            return False
    return True


def find_start_place(path: Path) -> Path | None:
    """Return the start file that a path is or belongs to, by its names alone. Files of CI servers do not count."""
    for place in (path, *path.parents):
        links = [place.name] if place.is_symlink() else []
        found = find_start_names(str(place.parent), [place.name], links)
        if found and not is_ci_file(place) and not _is_in_worktree(path, place):
            return place
    return None


def is_ci_file(place: Path) -> bool:
    """Check for a file or folder by which a CI server runs programs."""
    return place.name in _CI_NAMES or place.name in _CI_BELOW.get(place.parent.name, ())


def is_harmless_module_list(place: Path, copy: FileCopy | None) -> bool:
    """Check for a `.gitmodules` that only says where submodules come from, by a usual protocol."""
    if place.name != ".gitmodules":
        return False
    pairs = read_settings(copy)
    if pairs is None:
        return False
    for key, value in pairs:
        is_usual = "::" not in value and value[:1] not in "-!"
        if not is_usual or not _MODULE_KEY.fullmatch(key):
            return False
    return True


def list_absent_paths(rules: Rules, roots: Collection[Path]) -> list[Path]:
    """List the paths of rules below `roots` that do not exist, and that no command may create."""
    own_state = resolve_path(state_folder())  # another session may create it at any time
    absent = []
    for path, rule in rules.table.items():
        if rule not in ("protected", "hidden") or path == own_state:
            continue
        if _is_inside(path, roots) and not os.path.lexists(path):
            absent.append(path)
    return absent


def list_start_files(place: Path, roots: Collection[Path] = ()) -> list[Path]:
    """List the files at or below a watched path, and those that links lead to below `roots`.

    The result is the path alone if there are too many.
    """
    if not os.path.lexists(place):
        return []
    files = _list_all(place)
    linked = [resolve_path(path) for path in files if os.path.islink(path)]
    for target in dict.fromkeys(linked):
        is_around = place.is_relative_to(target)
        if _is_inside(target, roots) and not is_around:
            files += _list_all(target) if os.path.lexists(target) else [target]
    return files


def _list_all(place: Path) -> list[Path]:
    excluded = _WORKTREES.get(place.name)
    try:
        if excluded is None or place.is_symlink() or not place.is_dir():
            return list_files(place, opens=True)
        if not os.access(place, os.R_OK) and not open_closed_folder(str(place)):
            return [place]
        files: list[Path] = []
        for name in os.listdir(place):
            if name != excluded or (place / name).is_symlink():
                files += list_files(place / name, opens=True)
        return files
    except (OSError, GooseLikeError):
        return [place]


def _is_in_worktree(path: Path, place: Path) -> bool:
    excluded = _WORKTREES.get(place.name)
    return excluded is not None and path.is_relative_to(place / excluded)


def _is_inside(path: Path, roots: Iterable[Path]) -> bool:
    return any(map(path.is_relative_to, roots))
