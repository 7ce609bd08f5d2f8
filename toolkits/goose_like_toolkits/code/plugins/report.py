"""What `plugin list` and `plugin check` print of a project."""

from collections.abc import Callable

from goose_like.terminal.escape import escape_controls

from .project import Project


def nothing_there(project: Project) -> str:
    """What is said of a folder without plugins."""
    return (
        f"there are no plugins in {project.plugins}: a plugin is a NAME.yaml and a NAME.py; "
        "--project names another folder, `goose-like plugin new NAME` writes one"
    )


def rows(project: Project, why_off: Callable[[str], str | None]) -> list[list[str]]:
    """Name, state and description of each plugin, and of what should have been one."""
    known = {definition.file for definition in project.definitions}
    listed = [
        [each.name, f"off: {why}" if (why := why_off(each.name)) else "on", " ".join(each.description.split())]
        for each in project.definitions
    ]
    broken = {
        fault.file: [fault.file.stem, f"broken: {fault.text}", ""]
        for fault in reversed(project.faults)
        if fault.file.suffix == ".yaml" and fault.file not in known and not fault.is_warning
    }
    return sorted([escape_controls(cell) for cell in row] for row in [*listed, *broken.values()])


def checked(project: Project) -> int:
    """Prints every fault and remark in the order of the files; gives the exit code."""
    for fault in project.faults:
        print(escape_controls(str(fault)))
    wrong = sum(not fault.is_warning for fault in project.faults)
    count = len(project.definitions)
    if wrong:
        print(f"\n{count} plugin{'s' * (count != 1)} read, {wrong} thing{'s' * (wrong != 1)} to mend")
    elif not count:
        print(nothing_there(project))
    else:
        print(f"{count} plugin{'s' * (count != 1)}: nothing is wrong")
    return int(wrong > 0 or not count)
