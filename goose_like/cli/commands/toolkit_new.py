"""Writes the package of a new toolkit: code, a test that needs no model, and how to install it."""

import re
from importlib.resources import files
from pathlib import Path
from string import Template

from goose_like.core.entry_points import found, owner
from goose_like.core.errors import UsageError

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_LONGEST = 40


def write_toolkit(name: str, parent: Path) -> Path:
    """The folder `parent/name` with a package that can be installed.

    Raises:
        UsageError: that is no name, or it is taken, or the folder is there or can't be written.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise UsageError(f"{name!r} is no name for a toolkit; use small letters, digits and '-', e.g. my-tools")
    if name in (toolkits := found("goose_like.toolkit")):
        package = owner(toolkits[name])
        raise UsageError(f"there is a toolkit {name!r} already, of the package {package!r}; choose another name")
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
        raise UsageError(f"{error.filename} is there already; choose another name or --path") from error
    except OSError as error:
        raise UsageError(f"{folder} can't be written: {error.strerror}; choose another --path") from error
    return folder
