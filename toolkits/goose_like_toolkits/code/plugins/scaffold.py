"""Writes the two files of a new plugin: one that works, with a test."""

import keyword
from importlib.resources import files
from pathlib import Path
from string import Template

from goose_like.core.errors import UsageError

from .project import Project


def write_plugin(name: str, project: Project) -> list[Path]:
    """The files NAME.yaml and NAME.py in the project's folder of plugins.

    Raises:
        UsageError: that is no name, or it is taken, or they can't be written.
    """
    if keyword.iskeyword(name):
        raise UsageError(f"{name!r} is a word of Python's own; choose another name")
    if not name.isidentifier():
        raise UsageError(f"{name!r} is no name for a plugin, which is called by it; use letters, digits and '_'")
    if any(definition.name == name for definition in project.definitions):
        raise UsageError(f"there is a plugin {name!r} already; choose another name")
    values = {"name": name, "kind": "".join(word.capitalize() for word in name.split("_")) or name}
    targets = [project.plugins / f"{name}.yaml", project.plugins / f"{name}.py"]
    if there := next((target for target in targets if target.exists()), None):
        raise UsageError(f"{there} is there already; choose another name")
    try:
        for target in targets:
            template = files(__package__) / "templates" / f"plugin{target.suffix}.txt"
            text = Template(template.read_text(encoding="utf-8")).substitute(values)
            with target.open("x", encoding="utf-8") as written:
                written.write(text)
    except OSError as error:
        raise UsageError(f"{project.plugins} can't be written: {error.strerror}; choose another --project") from error
    return targets
