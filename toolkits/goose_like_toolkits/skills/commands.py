"""The work of the commands `goose-like skill ...`."""

import json
import sys
from pathlib import Path

from goose_like.config.bundles import list_broken_bundles
from goose_like.config.nested_files import find_nested_files
from goose_like.config.paths import config_folder, find_repository_root, shorten_home
from goose_like.config.project_files import list_folder_files
from goose_like.config.trust import ProjectConfig, is_trusted, load_trusted_project, read_project_config
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.spelling import did_you_mean, format_count
from goose_like.terminal.escape import escape_invisible, to_one_line
from goose_like.terminal.report_table import print_table

from .catalog import Catalog, Skill, find_skills, read_skill, sort_by_owner
from .listing import count_tokens, write_listing
from .places import FILE_NAME
from .skill_file import SkillFile, list_deviations, parse_skill_file, read_skill_text
from .skill_text import write_skill

_SHOWN_CHARS = 70
_TEMPLATE = """\
---
name: {name}
description: {description}
---

# {title}

Write here what the model must do, step by step:

1. First step.
2. Next step. Scripts and longer texts may lie beside this file: name them by their path, such as `scripts/run.py`.

Say how to check the result.
"""


def list_skills(folder: Path) -> None:
    """Print the skills, those that cannot be used, and the listing that the model sees with its size."""
    project = load_trusted_project(folder)
    catalog = find_skills(project)
    ordered = sort_by_owner(catalog.skills.values())
    rows = []
    for skill in ordered:
        description = to_one_line(skill.description, _SHOWN_CHARS)
        rows.append((skill.name, _describe_owner(skill), description))
    print_table(("name", "of", "description"), rows, "there are no skills; write one: goose-like skill new NAME")
    _print_problems(folder, catalog)
    if ordered:
        listing = write_listing(ordered)
        tokens = count_tokens(listing)
        print(f"\nthe model sees this at the start of a session, about {format_count(tokens, 'token')}:\n\n{listing}")


def _describe_owner(skill: Skill) -> str:
    if skill.package:
        return f"{skill.owner} {skill.package}"
    return f"{skill.owner}: {shorten_home(str(skill.path.parent))}"


def _print_problems(folder: Path, catalog: Catalog) -> None:
    """Print to standard error which skills are not used, and why."""
    lines = [*catalog.problems, *list_broken_bundles()]
    for skill in catalog.hidden:
        winner = catalog.skills[skill.name]
        lines.append(f"{skill.path} is not used: {winner.path} has the same name")
    untrusted = _list_untrusted(folder)
    if untrusted:
        count = format_count(len(untrusted), "skill")
        lines.append(f"not used before you trust the files of this project (goose-like trust add): {count}")
    for line in lines:
        print(escape_invisible(line), file=sys.stderr)


def _list_untrusted(folder: Path) -> list[str]:
    project = read_project_config(folder)
    if project is None or is_trusted(project):
        return []
    return list_folder_files(project.files)


def show_skill(folder: Path, name: str) -> None:
    """Print the text of a skill as the model reads it, and its size.

    Raises:
        UsageError: there is no such skill.
        GooseLikeError: it cannot be read.
    """
    project = load_trusted_project(folder)
    catalog = find_skills(project)
    skill = catalog.find(name)
    if skill is None:
        raise UsageError(f"no skill {name!r} here; {did_you_mean(name, catalog.skills)}")
    text = write_skill(skill, read_skill(skill, project))
    print(escape_invisible(text))
    tokens = format_count(count_tokens(text), "token")
    print(f"\nabout {tokens}, when the model calls `use_skill` or you type /{skill.name}", file=sys.stderr)


def check_skills(folder: Path, paths: list[Path]) -> int:
    """Print what is wrong with the skills below some folders, or with all that can be used. Return the exit code.

    Raises:
        UsageError: there is no skill in a folder.
    """
    files = _list_files(paths)
    project: ProjectConfig | None = None
    if not paths:
        project = load_trusted_project(folder)
        files = [skill.path for skill in find_skills(project).skills.values()]
        _print_problems(folder, find_skills(project))
    broken_count = 0
    deviation_count = 0
    for file in files:
        try:
            skill = _parse(file, project)
        except GooseLikeError as error:
            broken_count += 1
            print(escape_invisible(str(error)))
            continue
        for deviation in list_deviations(file, skill):
            deviation_count += 1
            print(escape_invisible(f"{file}: {deviation} (usable here; other agents may refuse it)"))
    counts = (
        format_count(len(files), "skill"),
        format_count(broken_count, "error"),
        format_count(deviation_count, "note"),
    )
    print(", ".join(counts))
    return 1 if broken_count else 0


def _list_files(paths: list[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        top = path.parent if path.name == FILE_NAME else path
        found = list(find_nested_files(str(top.resolve()), FILE_NAME, follows_links=True))
        if not found:
            raise UsageError(f"there is no {FILE_NAME} in {path}; write one: goose-like skill new NAME")
        files += [Path(file.path) for file in found]
    return files


def _parse(file: Path, project: ProjectConfig | None) -> SkillFile:
    if project:
        for name, text in project.files.items():
            if project.get_path(name) == file:
                return parse_skill_file(file, text)
    return parse_skill_file(file, read_skill_text(file))


def write_skill_folder(folder: Path, name: str, description: str, *, is_of_project: bool) -> str:
    """Write a folder with a SKILL.md file that follows the specification, and return the next step.

    Raises:
        UsageError: the name is none by the specification, or there is such a skill.
    """
    top = config_folder() / "skills"
    if is_of_project:
        top = find_repository_root(folder.resolve()) / ".agents/skills"
    file = top / name / FILE_NAME
    if not description:
        description = "What this is for. Use it when ... (name the words of such a task)."
    title = name.replace("-", " ").capitalize()
    # JSON texts are YAML texts, whatever the description holds.
    text = _TEMPLATE.format(name=name, description=json.dumps(description, ensure_ascii=False), title=title)
    for deviation in list_deviations(file, parse_skill_file(file, text)):
        raise UsageError(f"no skill was written: {deviation}")
    if file.exists():
        raise UsageError(f"there is a skill {name!r}: {file}; choose another name")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    next_step = f"goose-like skill check {file.parent}"
    if is_of_project:
        next_step += ", then trust it: goose-like trust add"
    return f"wrote {shorten_home(str(file))}; fill it in, then: {next_step}"
