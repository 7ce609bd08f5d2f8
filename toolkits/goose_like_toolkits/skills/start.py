"""What a start needs of skills. It is kept for the next one, which then reads no file and makes no listing."""

import stat
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goose_like.config.bundles import list_bundles
from goose_like.config.entry_points import list_package_files
from goose_like.config.kept_values import KeptValues
from goose_like.config.trust import ProjectConfig
from goose_like.core.dataclass import dataclass

from .places import PACKAGE_FILE, find_personal_files, list_personal_folders

if TYPE_CHECKING:
    from .catalog import Catalog

_MAX_PROJECTS = 30


@dataclass(frozen=True, slots=True)
class SkillStart:
    """The listing, empty without any skill, a sentence for each file that cannot be used, and the folders of skills."""

    listing: str
    problems: Sequence[str] = ()
    opened: Sequence[Path] = ()


def find_start(project: ProjectConfig | None) -> SkillStart:
    """Return what the start needs: what was kept while all files have the state of that time, else what they say now.

    `project` has the trusted files; no other file of the project is read.
    """
    kept = KeptValues("skill-listings", _MAX_PROJECTS)
    place = str(project.root) if project and project.files else ""
    state = _describe_state(project)
    if state:
        known = _read_entry(kept.get(place), state)
        if known is not None:
            return known
    from .catalog import find_skills
    from .listing import write_listing

    catalog = find_skills(project)
    listing = ""
    if catalog.skills:
        listing = write_listing(catalog.skills.values())
    if state and _has_known_files(catalog):
        opened = list(map(str, catalog.opened))
        kept.put(place, {"state": state, "listing": listing, "opened": opened})
        kept.save()
    return SkillStart(listing, catalog.problems, catalog.opened)


def _read_entry(entry: Any, state: str) -> SkillStart | None:
    """Return what was kept in this state; None if there is nothing, or nothing that this version can read."""
    try:
        if entry["state"] == state:
            return SkillStart(entry["listing"], opened=list(map(Path, entry["opened"])))
    except (TypeError, LookupError):
        pass  # there is none, or it is of another layout: a new listing replaces it
    return None


def _describe_state(project: ProjectConfig | None) -> str:
    """Return a hash of the state of all files with skills. It is empty if the state of one is not known."""
    if list_bundles():
        return ""
    lines: list[str] = []
    if project and project.files:
        if not project.state:
            return ""
        lines.append(project.state)
    for folder in list_personal_folders():
        lines.append(str(folder))
        for file in find_personal_files(folder):
            status = file.status
            if stat.S_ISLNK(status.st_mode):
                return ""  # the status is not that of the text
            lines += (file.path, f"{status.st_ctime_ns} {status.st_size} {status.st_ino}")
    for marker in list_package_files(PACKAGE_FILE):
        try:
            changed_ns = marker.stat().st_ctime_ns
        except OSError:  # the package was removed after it was listed
            return ""
        lines += (str(marker), str(changed_ns))
    return sha256("\0".join(lines).encode(errors="surrogateescape")).hexdigest()


def _has_known_files(catalog: "Catalog") -> bool:
    """Check whether the state of all files is known: of packages it is only known which there are."""
    skills = [*catalog.skills.values(), *catalog.hidden]
    return not catalog.problems and all(skill.owner in ("project", "person") for skill in skills)
