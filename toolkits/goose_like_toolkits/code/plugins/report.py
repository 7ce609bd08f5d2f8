"""Reports on the plugins of a project, for `plugin list`, `plugin check` and `/plugins`."""

from collections.abc import Callable

from goose_like.terminal.escape import escape_controls

from .project import Project


def explain_empty(project: Project) -> str:
    """Explain how to get plugins into a folder without any."""
    return (
        f"there are no plugins in {project.plugins}: a plugin is a NAME.yaml and a NAME.py; "
        "choose another folder with --project, or write one with `goose-like plugin new NAME`"
    )


def list_rows(project: Project, explain_off: Callable[[str], str | None]) -> list[list[str]]:
    """Return name, state and description of each plugin, also of those with an unreadable YAML file."""
    readable = {spec.file for spec in project.specs}
    reasons = [explain_off(spec.name) for spec in project.specs]
    rows = [
        [spec.name, f"off: {reason}" if reason else "on", " ".join(spec.description.split())]
        for spec, reason in zip(project.specs, reasons, strict=True)
    ]
    broken = {
        each.file: [each.file.stem, f"broken: {each.text}", ""]
        for each in reversed(project.diagnostics)
        if each.file.suffix == ".yaml" and each.file not in readable and not each.is_warning
    }
    return sorted([escape_controls(cell) for cell in row] for row in [*rows, *broken.values()])


def print_diagnostics(project: Project) -> int:
    """Print all errors and warnings by file; return the exit code, 1 for an error or an empty folder."""
    for each in project.diagnostics:
        print(escape_controls(str(each)))
    errors = sum(not each.is_warning for each in project.diagnostics)
    plugins = f"{len(project.specs)} plugin{'s' * (len(project.specs) != 1)}"
    if errors:
        print(f"\n{plugins}, {errors} error{'s' * (errors != 1)}")
    elif project.specs:
        print(f"{plugins}, no errors")
    else:
        print(explain_empty(project))
    return int(errors > 0 or not project.specs)
