"""The repository that commands may commit to: none whose files stay hidden, which git would take for deleted."""

from pathlib import Path

from goose_like.core.dataclass import dataclass
from goose_like.workspace.repositories.git import find_commit_folders

from .path_rules import can_be_shown, find_repositories


@dataclass(frozen=True, slots=True)
class VisibleRepository:
    """The git folders that commits in the workspace write to, or the reason why commands find no repository there.

    The reason is the beginning of a sentence, and empty if there is none.
    """

    commit_folders: tuple[Path, ...]
    problem: str = ""


def find_visible_repository(root: Path) -> VisibleRepository:
    """Find the repository of a workspace. Leave it out if commands would see only a part of a working tree."""
    folders = find_commit_folders(root)
    if not folders:
        return VisibleRepository(folders)
    for top in sorted(find_repositories(root, folders)):
        if not top.is_relative_to(root) and not can_be_shown(top):
            problem = f"commands cannot use git here: most of the repository {top} is hidden from them"
            return VisibleRepository((), problem)
    return VisibleRepository(folders)
