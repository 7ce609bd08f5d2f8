"""Writes the package of a new component, as ConCopilot's guide lays it out: `.config/config.yaml` and the code."""

import keyword
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like_toolkits.components.described.coordinates import Coordinates
from goose_like_toolkits.components.repositories.sources import CONFIG_FILES, CONFIG_FOLDER

VERSION = "0.1.0-SNAPSHOT"

_INTERACTOR_PARAMETERS = ", resource_manager, cerebrum, plugin_manager, message_manager"
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class _Shape:
    """What is a type's own: the `type` and `resource_type` of its config, the class its code is derived from."""

    base: str
    type: str
    resource_type: str = ""
    as_plugin: bool = False
    parameters: str = ""


_SHAPES: Mapping[str, _Shape] = {
    "plugin": _Shape("AbstractPlugin", "plugin", as_plugin=True),
    "resource": _Shape("Resource", "resource", resource_type="$name"),
    "llm": _Shape("LLM", "resource", resource_type="model"),
    "cerebrum": _Shape("AbstractCerebrum", "cerebrum"),
    "interactor": _Shape("BasicInteractor", "interactor", parameters=_INTERACTOR_PARAMETERS),
    "message_manager": _Shape("MessageManager", "message_manager"),
    "plugin_manager": _Shape("BasicPluginManager", "plugin_manager"),
    "resource_manager": _Shape("BasicResourceManager", "resource_manager"),
    "storage": _Shape("Storage", "storage"),
    "user_interface": _Shape("AgentDrivenSimplexUserInterface", "user_interface"),
    "plugin_prompt_generator": _Shape("PluginPromptGenerator", "plugin_prompt_generator"),
    "copilot": _Shape("BasicCopilot", "copilot"),
}

TYPES = tuple(_SHAPES)
"""What can be written."""


def write_component(type_name: str, name: str | None, parent: Path, group: str) -> list[Path]:
    """The files of a new component in the folder `parent/name`; without a name `my_<type>`. A copilot has an interactor
    of its own beside it.

    Below a Python package it becomes a part of that: its `setup.package` is the whole dotted name.

    Raises:
        UsageError: there is no such type, that is no name or no group, or the folder is there or can't be written.
    """
    if type_name not in _SHAPES:
        raise UsageError(f"{type_name!r} is no type that can be written; {did_you_mean(type_name, TYPES)}")
    stem = (name or f"my_{type_name}").replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", stem) or keyword.iskeyword(stem) or len(stem) > _LONGEST:
        raise UsageError(f"{name!r} is no name for a component; use small letters, digits and '_', e.g. word_count")
    names = {stem: type_name} | ({f"{stem}_interactor": "interactor"} if type_name == "copilot" else {})
    if taken := next((each for each in names if os.path.lexists(parent / each)), None):
        raise UsageError(f"{parent / taken} is there already; choose another name or --path")
    return [file for each, type_of in names.items() for file in _written(type_of, each, parent, group)]


def _written(type_name: str, name: str, parent: Path, group: str) -> list[Path]:
    coordinates = Coordinates(group, name.replace("_", "-"), VERSION)
    texts = _texts(type_name, name, _values(_SHAPES[type_name], name, coordinates, _package(parent, name)))
    folder = parent / name
    try:
        (folder / CONFIG_FOLDER).mkdir(parents=True)
        for path, text in texts.items():
            with (folder / path).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(f"{folder} can't be written: {error.strerror}; choose another --path") from error
    return [folder / path for path in texts]


def _values(shape: _Shape, name: str, coordinates: Coordinates, package: str) -> dict[str, str]:
    kind = "".join(map(str.capitalize, name.split("_")))
    resource_type = Template(shape.resource_type).substitute(name=name)
    return {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "kind": kind if kind not in _taken() else f"{kind}Component",
        "group": coordinates.group_id,
        "artifact": coordinates.artifact_id,
        "package": package,
        "type": shape.type,
        "as_plugin": str(shape.as_plugin).lower(),
        "resource_type": f"resource_type: {resource_type}\n" if resource_type else "",
        "more_parameters": shape.parameters,
    }


def _taken() -> set[str]:
    """Names that the templates import."""
    others = {"Message", "Identity", "Settings", "InteractParameter", "InteractResponse", "AssetRef"}
    return {shape.base for shape in _SHAPES.values()} | others


def _texts(type_name: str, name: str, values: Mapping[str, str]) -> dict[str, str]:
    """The texts of all files by their paths within the component."""
    filled = {part: _filled(f"{type_name}.{part}.yaml", values) for part in ("info", "config")}
    return {
        f"{CONFIG_FOLDER}/{CONFIG_FILES[0]}": _filled("config.yaml", {**values, **filled}),
        "__init__.py": _filled("init.py", values),
        f"{name}.py": _filled(f"{type_name}.py", values),
    }


def _filled(template: str, values: Mapping[str, str]) -> str:
    """A template with its values; a part that a type is without is empty."""
    file = files(__package__) / "templates" / f"{template}.txt"
    text = Template(file.read_text(encoding="utf-8")).substitute(values) if file.is_file() else ""
    return text if template.endswith(".py") or template == "config.yaml" else text.removesuffix("\n")


def _package(parent: Path, name: str) -> str:
    """The dotted name of a package in this folder: those around it count as long as they are packages, too."""
    names = [name]
    for folder in (parent.absolute(), *parent.absolute().parents):
        if not (folder / "__init__.py").is_file() or not folder.name.isidentifier():
            break
        names.insert(0, folder.name)
    return ".".join(names)
