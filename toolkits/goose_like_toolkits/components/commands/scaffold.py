"""Write the package of a new component: `.config/config.yaml`, a pyproject.toml, and code."""

import keyword
import os
import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from goose_like.core.errors import UsageError

from ..definition.coordinates import Coordinates
from ..host.repository import CONFIG_FILES
from ..host.sources import CONFIG_FOLDER

VERSION = "0.1.0-SNAPSHOT"

_INTERACTOR_PARAMETERS = ", resource_manager, cerebrum, plugin_manager, message_manager"
_LONGEST = 60


class _Shape(NamedTuple):
    """The differences of a type: `type`, `resource_type`, `as_plugin` and parameters of the constructor."""

    type: str
    resource_type: str = ""
    as_plugin: str = "false"
    parameters: str = ""


_SHAPES = {
    "plugin": _Shape("plugin", as_plugin="true"),
    "resource": _Shape("resource", resource_type="$name"),
    "llm": _Shape("resource", resource_type="model"),
    "interactor": _Shape("interactor", parameters=_INTERACTOR_PARAMETERS),
    "copilot": _Shape("copilot"),
}


def write_component(type_name: str, name: str | None, parent: Path, group: str) -> list[Path]:
    """Write a component into `parent/name`, by default `my_<type>`, and return its files. A copilot gets an interactor.

    Below a Python package it becomes a part of that: `setup.package` is the full name.

    Raises:
        UsageError: the type, name or group is wrong, or the folder exists or cannot be written.
    """
    if type_name not in _SHAPES:
        raise UsageError(f"{type_name!r} is no type that `new` can write; choose one of: {', '.join(_SHAPES)}")
    stem = (name or f"my_{type_name}").replace("-", "_")
    is_name = re.fullmatch(r"[a-z][a-z0-9_]*", stem) and not keyword.iskeyword(stem)
    if not is_name or len(stem) > _LONGEST:
        raise UsageError(f"{name!r} is no name for a component; use small letters, digits and '_', e.g. word_count")
    types = {stem: type_name}
    if type_name == "copilot":
        types[f"{stem}_interactor"] = "interactor"
    for each in types:
        if os.path.lexists(parent / each):
            raise UsageError(f"{parent / each} is there already; choose another name or --path")
    files = []
    for each, type_of in types.items():
        files += _write(type_of, each, parent, group)
    return files


def _write(type_name: str, name: str, parent: Path, group: str) -> list[Path]:
    folder = parent / name
    package = _find_package(parent, name)
    texts = _build_texts(type_name, name, group, package)
    try:
        (folder / CONFIG_FOLDER).mkdir(parents=True)
        for path, text in texts.items():
            with (folder / path).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(f"{folder} can't be written: {error.strerror}; choose another --path") from error
    return [folder / path for path in texts]


def _build_texts(type_name: str, name: str, group: str, package: str) -> dict[str, str]:
    """Return the texts of all files by their paths within the component."""
    shape = _SHAPES[type_name]
    coordinates = Coordinates(group, name.replace("_", "-"), VERSION)
    class_name = "".join(map(str.capitalize, name.split("_")))
    resource_type = ""
    if shape.resource_type:
        resource_type = f"resource_type: {shape.resource_type}\n".replace("$name", name)
    values = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "kind": f"{class_name}Component",
        "group": coordinates.group_id,
        "artifact": coordinates.artifact_id,
        "package": package,
        "type": shape.type,
        "as_plugin": shape.as_plugin,
        "resource_type": resource_type,
        "more_parameters": shape.parameters,
    }
    parts = {}
    for part in ("info", "config"):
        text = _fill(f"{type_name}.{part}.yaml", values)
        parts[part] = text.removesuffix("\n")
    texts = {}
    if "." not in package:
        texts["pyproject.toml"] = _fill("pyproject.toml", values)
    texts[f"{CONFIG_FOLDER}/{CONFIG_FILES[0]}"] = _fill("config.yaml", {**values, **parts})
    texts["__init__.py"] = _fill("init.py", values)
    texts[f"{name}.py"] = _fill(f"{type_name}.py", values)
    return texts


def _fill(template: str, values: dict[str, str]) -> str:
    """Fill in a template; a part that a type does not have is empty."""
    file = files(__package__) / "templates" / f"{template}.txt"
    if not file.is_file():
        return ""
    return Template(file.read_text(encoding="utf-8")).substitute(values)


def _find_package(parent: Path, name: str) -> str:
    """Return the dotted name of a package in this folder, with the packages around it."""
    names = [name]
    for folder in (parent.absolute(), *parent.absolute().parents):
        if not (folder / "__init__.py").is_file() or not folder.name.isidentifier():
            break
        names.insert(0, folder.name)
    return ".".join(names)
