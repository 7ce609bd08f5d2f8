"""Files of a new plugin: working code with a test."""

import keyword
from importlib.resources import files
from pathlib import Path
from string import Template

from goose_like.core.errors import UsageError

from .project import Project


def write_plugin(name: str, project: Project) -> list[Path]:
    """Write NAME.yaml and NAME.py; return their paths. Raise UsageError if the name or the folder can't be used."""
    if keyword.iskeyword(name):
        raise UsageError(f"{name!r} is a keyword of Python; choose another name")
    if not name.isidentifier():
        raise UsageError(f"{name!r} is not a valid name for a plugin; use letters, digits and '_'")
    if name in project.by_name:
        raise UsageError(f"there is a plugin {name!r} already; choose another name")
    targets = [project.plugins / f"{name}.yaml", project.plugins / f"{name}.py"]
    for target in targets:
        if target.exists():
            raise UsageError(f"{target} exists already; choose another name")
    words = name.split("_")
    class_name = "".join(map(str.capitalize, words)) or name
    values = {"name": name, "kind": class_name}
    try:
        for target in targets:
            template = files(__package__) / "templates" / f"plugin{target.suffix}.txt"
            text = Template(template.read_text(encoding="utf-8")).substitute(values)
            with target.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(f"can't write to {project.plugins}: {error.strerror}; choose another --project") from error
    return targets
