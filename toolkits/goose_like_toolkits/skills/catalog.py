"""The skills that a session can use: those of the project, the person, bundles and installed packages."""

import os
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from goose_like.config.bundles import list_bundles
from goose_like.config.entry_points import list_package_files
from goose_like.config.paths import PROJECT_FOLDER
from goose_like.config.trust import ProjectConfig
from goose_like.core.dataclass import dataclass
from goose_like.core.spelling import normalize_name

from .cache import Summary, SummaryCache
from .places import FILE_NAME, PACKAGE_FILE, find_personal_files, list_personal_folders
from .skill_file import SkillFile, parse_skill_file, read_skill_text

Owner = Literal["project", "person", "bundle", "package"]
_PROJECT_FOLDERS = ("skills/", ".agents/skills/", ".claude/skills/")
"""The folders of a project's skills, the first one first, as `ProjectConfig` names them."""


class Skill(NamedTuple):
    """A skill that can be used. `trusted_name` is its name among the files of the project.

    `package` is the name of its package or bundle.
    """

    name: str
    description: str
    file: str
    owner: Owner
    package: str = ""
    trusted_name: str = ""

    @property
    def path(self) -> Path:
        """The path of the SKILL.md file."""
        return Path(self.file)

    @property
    def folder(self) -> Path:
        """The real folder of the skill, as commands see it."""
        return Path(os.path.realpath(os.path.dirname(self.file)))


@dataclass(slots=True)
class Catalog:
    """The skills by name. Of several with one name, the nearest one wins: project, person, bundle, package.

    `hidden` are those that lost. `problems` has a sentence for each file that cannot be used. `opened` are the folders
    of skills outside of the project.
    """

    skills: dict[str, Skill] = field(default_factory=dict)
    hidden: list[Skill] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    opened: list[Path] = field(default_factory=list)

    def find(self, name: str) -> Skill | None:
        """Find a skill by its name, however it is spelled."""
        if name in self.skills:
            return self.skills[name]
        wanted = normalize_name(name)
        for skill in self.skills.values():
            if normalize_name(skill.name) == wanted:
                return skill
        return None

    def add(self, skill: Skill) -> None:
        """Add a skill, unless one of a nearer owner has its name."""
        other = self.skills.setdefault(skill.name, skill)
        if other is not skill and other.folder != skill.folder:
            self.hidden.append(skill)


def find_skills(project: ProjectConfig | None) -> Catalog:
    """Find all skills. `project` has the trusted files; no other file of the project is read."""
    catalog = Catalog()
    cache = SummaryCache()
    if project:
        _add_project(catalog, project, cache)
    _add_person(catalog, cache)
    _add_bundles(catalog, cache)
    _add_packages(catalog, cache)
    cache.save()
    return catalog


def list_project_names(project: ProjectConfig) -> list[str]:
    """List the names of the SKILL.md files of a project, in the order of their folders."""
    found: list[str] = []
    names = sorted(project.files)
    end = f"/{FILE_NAME}"
    for folder in _PROJECT_FOLDERS:
        found += [name for name in names if name.startswith(folder) and name.endswith(end)]
    return found


def _add_project(catalog: Catalog, project: ProjectConfig, cache: SummaryCache) -> None:
    is_known = cache.is_known(project)
    for name in list_project_names(project):
        below = name
        if name.startswith(_PROJECT_FOLDERS[0]):
            below = f"{PROJECT_FOLDER}/{name}"
        file = f"{project.root}/{below}"
        summary = None
        if is_known:
            summary = cache.get_for_path(file)
        if summary is None:
            summary = cache.get_for_text(file, project.files[name])
        _add(catalog, summary, Skill(summary.name, summary.description, file, "project", trusted_name=name))
    cache.note_state(project)


def _add_person(catalog: Catalog, cache: SummaryCache) -> None:
    for folder in list_personal_folders():
        catalog.opened.append(folder)
        for file in find_personal_files(folder):
            summary = cache.get_for_file(file.path, file.status)
            _add(catalog, summary, Skill(summary.name, summary.description, file.path, "person"))
            if file.is_linked:
                catalog.opened.append(Path(file.path).parent)


def _add_bundles(catalog: Catalog, cache: SummaryCache) -> None:
    """Add the skills of bundles without a check: `bundle add` has checked them."""
    for bundle in list_bundles():
        catalog.opened.append(bundle.root)
        for path in bundle.skills:
            file = str(bundle.root / path)
            summary = cache.get_for_file(file)
            _add(catalog, summary, Skill(summary.name, summary.description, file, "bundle", bundle.name))


def _add_packages(catalog: Catalog, cache: SummaryCache) -> None:
    if not list_package_files(PACKAGE_FILE):
        return
    from .packages import find_package_plugins  # few packages have skills

    plugins, problems = find_package_plugins()
    catalog.problems += problems
    for plugin in plugins:
        if not plugin.skill_files:
            continue
        catalog.opened.append(plugin.root / "skills")
        for path in plugin.skill_files:
            file = str(path)
            summary = cache.get_for_file(file)
            if summary.deviation:
                summary = Summary(problem=f"{file} is not used: {summary.deviation}")
            _add(catalog, summary, Skill(summary.name, summary.description, file, "package", plugin.package))


def _add(catalog: Catalog, summary: Summary, skill: Skill) -> None:
    if summary.problem:
        catalog.problems.append(summary.problem)
    else:
        catalog.add(skill)


def read_skill(skill: Skill, project: ProjectConfig | None) -> SkillFile:
    """Read the SKILL.md of a skill: the trusted text of a project's, and the present one of the others.

    Raises:
        GooseLikeError: it cannot be read, or cannot be used any more.
    """
    if skill.trusted_name:
        text = project.files[skill.trusted_name] if project else ""
    else:
        text = read_skill_text(skill.path)
    return parse_skill_file(skill.path, text)


def sort_by_owner(skills: Iterable[Skill]) -> list[Skill]:
    """Sort skills: the project's first, then the person's, each by name."""
    order = get_args(Owner)  # the order of the literal
    return sorted(skills, key=lambda skill: (order.index(skill.owner), skill.name))
