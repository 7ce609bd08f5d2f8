"""Start files: settings in a project by which editors, shells and agents run programs."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from goose_like.config.paths import state_folder
from goose_like.core.errors import GooseLikeError
from goose_like.workspace.sandbox.path_rules import Rules, resolve_path

from .file_copy import list_files

_MAX_TOPS = 30

# Below the workspace, or the top of a repository in it.
_NAMES = (
    *(".claude/settings.json", ".claude/settings.local.json", ".claude/commands", ".claude/agents", ".claude/hooks"),
    *(".claude/skills", ".mcp.json", ".codex", ".cursor", ".gemini", ".opencode", "opencode.json"),
    *(".goose-like/profiles.yaml", ".goose-like/commands", ".goose-like/agents"),
    *(".continue", ".windsurf", ".roo", ".kiro", ".aider.conf.yml", ".vscode", ".idea", ".run", ".zed", ".fleet"),
    *(".devcontainer", ".devcontainer.json", ".husky", ".gitmodules", ".envrc", ".mise.toml", "mise.toml"),
    ".agents/commands",
    *(".hg/hgrc", ".sl/config", ".jj/repo/config.toml"),  # other version control
    *(".pre-commit-config.yaml", "lefthook.yml", "lefthook-local.yml", ".lefthook.yml"),  # their git hooks run these
    *(".dir-locals.el", ".exrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".gdbinit", ".lldbinit"),
)


def list_watched_paths(tops: Iterable[Path], rules: Rules, roots: Collection[Path]) -> list[Path]:
    """List the start files of folders that commands can write, and paths of rules that do not exist; below `roots`."""
    own_state = resolve_path(state_folder())  # another session may create it at any time
    absent = [path for path, rule in rules.table.items() if rule in ("protected", "hidden") and path != own_state]
    absent = [path for path in absent if any(map(path.is_relative_to, roots)) and not os.path.lexists(path)]
    nearest = sorted(tops, key=lambda path: len(path.parts))[:_MAX_TOPS]
    names = [top / name for top in nearest for name in _NAMES]
    targets = {resolve_path(path) for path in names if os.path.lexists(path) or path.parent.is_symlink()}
    watched = targets | {path.parent if path.parent.is_symlink() else path for path in names}
    return [*absent, *(path for path in sorted(watched) if rules.get_rule(path) == "write")]


def list_start_files(path: Path) -> list[Path]:
    """List the files at or below a watched path; the path alone if there are too many."""
    if not os.path.lexists(path):
        return []
    try:
        return list_files(path, opens=True)
    except GooseLikeError:
        return [path]
