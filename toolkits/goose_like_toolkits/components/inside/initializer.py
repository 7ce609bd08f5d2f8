"""Components made of what a configuration names; the host decides each one's effective configuration."""

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from .class_dict import ClassDict
from .errors import ConCopilotError
from .jsons import JsonEncoder
from .wire import call

_NAMED = ("group_id", "artifact_id", "version", "instance_id", "config", "config_file", "config_folder")


def get_component_config(config: Mapping[str, Any]) -> ClassDict:
    """The effective configuration of the component that a mapping with its coordinates names.

    Raises:
        ValueError: when the mapping is not what can be asked for.
    """
    named = ClassDict.convert(config)
    if not isinstance(named, ClassDict):
        raise ValueError(f"a component is named by group_id, artifact_id and version in a mapping, not {config!r}")
    asked = {key: named[key] for key in _NAMED if named.get(key) is not None}
    if missing := [key for key in _NAMED[:3] if key not in asked]:
        raise ValueError(f"a component is named without {' and '.join(missing)}: {shown(named)}")
    try:
        sent = json.loads(json.dumps(asked, cls=JsonEncoder))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{shown(named)}: its config must be plain values: {error}") from error
    made: ClassDict = ClassDict.convert(call("resolve", config=sent))
    return made


def get_component_config_file_path(config: Mapping[str, Any]) -> tuple[str, str, str]:
    """The folder, the name and the path of the file of that configuration."""
    place = get_component_config(config)._config_info
    return place.config_folder, place.config_file, str(Path(place.config_folder, place.config_file))


def get_component_constructor(config: Mapping[str, Any]) -> Callable[..., Any]:
    """The `constructor` in the package that `setup.package` names. The host has installed `setup.pip` before.

    Raises:
        ValueError: when no package is named.
        ImportError: when it can't be imported, or has no constructor.
    """
    setup = config.get("setup")
    package = setup.get("package") if isinstance(setup, Mapping) else None
    if not package or not isinstance(package, str):
        raise ValueError(f"{shown(config)}: setup.package must name the package that has the constructor")
    try:
        module = import_module(package)
    except ImportError as error:
        raise ImportError(
            f"{shown(config)}: its package {package!r} can't be imported: {error}", name=error.name, path=error.path
        ) from error
    constructor = getattr(module, "constructor", None)
    if not callable(constructor):
        raise ImportError(f"{shown(config)}: its package {package!r} has no function `constructor`", name=package)
    made: Callable[..., Any] = constructor
    return made


def config_component_config_meta(
    component_config: ClassDict,
    config_folder: str,
    config_file: str,
    parent_config: Mapping[str, Any] | None = None,
) -> ClassDict:
    """The configuration, with the including one's `config` laid over its own and the place of its file in it."""
    if component_config.config is None:
        component_config.config = ClassDict()
    if parent_config is not None and parent_config.get("config") is not None:
        component_config.config.update_nested(parent_config["config"])
    component_config._config_info = ClassDict(config_folder=config_folder, config_file=config_file)
    return component_config


def construct_component(component_config: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """The component of an effective configuration."""
    return get_component_constructor(component_config)(component_config, *args, **kwargs)


def create_component(config: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """The component that a mapping with its coordinates names; what follows goes to its constructor."""
    return construct_component(get_component_config(config), *args, **kwargs)


def create(
    config_folder: str | None = None,
    config_file: str | None = None,
    config_file_path: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """The component of a configuration file, given as a folder and a name in it or as a path.

    Raises:
        ValueError: when neither is given.
    """
    if config_folder is not None and config_file is not None:
        config_file_path = str(Path(config_folder, config_file))
    elif config_file_path is None:
        raise ValueError("a component is made of config_folder and config_file, or of config_file_path: give either")
    effective = ClassDict.convert(call("resolve_file", config_file=config_file_path))
    return construct_component(effective, *args, **kwargs)


def conpack(*args: Any, **kwargs: Any) -> None:
    """
    Raises:
        ConCopilotError: always: components are packed, installed and deployed from the command line.
    """
    raise ConCopilotError("components are packed, installed and deployed by the command `conpack`, not from within one")


def shown(config: Mapping[str, Any]) -> str:
    """Which component a configuration is of, for errors."""
    return ":".join(str(config.get(key) or "?") for key in _NAMED[:3])
