"""The check of a project: a line such as `verify: pytest -q` in the AGENTS.md of a folder."""

import json
import os
import re
from pathlib import Path

from goose_like.core.dataclass import dataclass
from goose_like.core.pattern import compile_later

from .paths import TRUST_FILE, config_folder, find_main_folder, read_user_file

_LINE = compile_later(r"^verify:[ \t]+(\S.*?)[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProjectCheck:
    """A command from the AGENTS.md of a folder. It is the project's text: run it only after the person said yes."""

    folder: Path
    command: str


def find_project_check(folder: Path) -> ProjectCheck | None:
    """Find the first line `verify: COMMAND` in the AGENTS.md of a folder. One with invisible characters is none."""
    folder = Path(os.path.realpath(folder))
    try:
        text = read_user_file(folder / "AGENTS.md")
    except (OSError, ValueError):
        return None
    found = _LINE.search(text)
    if found is None or not found[1].isprintable():
        return None
    return ProjectCheck(folder, found[1])


def may_ask_about_check(folder: Path) -> bool:
    """Check whether a folder has a check about which the trust file has nothing. This is quick."""
    check = find_project_check(folder)
    if check is None:
        return False
    try:
        stored = json.loads((config_folder() / TRUST_FILE).read_text(encoding="utf-8"))
        return check.command not in stored["folders"][str(find_main_folder(check.folder))]["checks"]
    except (OSError, ValueError, LookupError, TypeError):
        return True
