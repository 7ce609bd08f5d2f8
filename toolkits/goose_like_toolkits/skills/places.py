"""Where the files of skills are."""

from collections.abc import Iterator
from pathlib import Path

from goose_like.config.nested_files import NestedFile, find_nested_files
from goose_like.config.paths import config_folder, home_folder

FILE_NAME = "SKILL.md"
PACKAGE_FILE = "agent_plugins.json"
"""The file beside the metadata of a package that has skills."""


def list_personal_folders() -> list[Path]:
    """List the folders with skills of the person, the first one first."""
    home = home_folder()
    folders = (config_folder() / "skills", home / ".agents/skills", home / ".claude/skills")
    return [folder for folder in folders if folder.is_dir()]


def find_personal_files(folder: Path) -> Iterator[NestedFile]:
    """Yield the SKILL.md files in a folder of the person, also in linked folders."""
    return find_nested_files(str(folder), FILE_NAME, follows_links=True)
