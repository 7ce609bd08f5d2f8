"""YAML, by PyYAML of the components' environment; it is imported when it is first asked for."""

import uuid
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def _yaml() -> ModuleType:
    try:
        return import_module("yaml")
    except ImportError as error:
        raise ImportError("YAML needs PyYAML in the components' environment: name it in setup.pip") from error


def read_yaml(path: str | Path) -> Any:
    """What a file of YAML holds.

    Raises:
        ValueError: when it is not UTF-8 or no YAML.
    """
    yaml = _yaml()
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} can't be read as YAML: {error}") from error


@cache
def _dumper() -> Any:
    """A class for `yaml.dump(..., Dumper=...)` that takes mappings of every class, and UUIDs as text."""
    yaml = _yaml()
    made: Any = type("YamlDumper", (yaml.SafeDumper,), {"__module__": __name__})
    made.add_representer(uuid.UUID, lambda dumper, data: dumper.represent_str(str(data)))
    made.add_multi_representer(dict, made.represent_dict)
    return made


def __getattr__(name: str) -> Any:
    if name == "YamlDumper":
        return _dumper()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
