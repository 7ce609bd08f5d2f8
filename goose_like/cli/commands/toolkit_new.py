"""A package for a new toolkit, from a template: code, a test that needs no model, and a README."""

import re
from importlib.resources import files
from pathlib import Path
from string import Template

from goose_like.core.entry_points import get_package_name, list_entry_points
from goose_like.core.errors import UsageError

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_MAX_CHARACTERS = 40


def write_toolkit(name: str, parent: Path) -> Path:
    """Create the folder `parent/name` with an installable package."""
    if not _NAME.fullmatch(name) or len(name) > _MAX_CHARACTERS:
        raise UsageError(f"{name!r} is no valid toolkit name; use lowercase letters, digits and '-', such as my-tools")
    if name in (toolkits := list_entry_points("goose_like.toolkit")):
        package = get_package_name(toolkits[name])
        raise UsageError(f"the package {package!r} already has a toolkit {name!r}; choose another name")
    folder = parent / name
    stem = name.replace("-", "_")
    module, kind = f"{stem}_toolkit", "".join(map(str.capitalize, stem.split("_"))) + "Toolkit"
    values = {"name": name, "project": f"{name.replace('_', '-')}-toolkit", "module": module, "kind": kind}
    try:
        folder.mkdir(parents=True)
        for template in (files(__package__.partition(".")[0]) / "templates" / "toolkit").iterdir():
            text = Template(template.read_text(encoding="utf-8")).substitute(values)
            target = folder / template.name.removesuffix(".txt").replace("toolkit.py", f"{module}.py")
            target.write_text(text, encoding="utf-8")
    except FileExistsError as error:
        raise UsageError(f"{error.filename} already exists; choose another name or --path") from error
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}; choose another --path") from error
    return folder
