"""Files of components: where they lie, how they are read, what must be in them, and their versions."""

import hashlib
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .class_dict import ClassDict
from .yamls import read_yaml

_log = logging.getLogger("[ConCopilot]")
_SNAPSHOT = "-SNAPSHOT"
_VERSION = re.compile(r"(\d+(?:\.\d+)*)(?:-([^`~!@#$%^&*()\[\]{}\\|;:'\",/?]+))?")


def get_config_folder(root: str, group_id: str, artifact_id: str, version: str, instance_id: Any = None) -> str:
    """The folder of a component, or of an instance of it, below a repository's or `.runtime`.

    Raises:
        ValueError: when a part is empty.
    """
    parts = {"root": root, "group_id": group_id, "artifact_id": artifact_id, "version": version}
    for name, value in parts.items():
        if not value or not isinstance(value, str):
            raise ValueError(f"a component's folder needs {name} as text, not {value!r}")
    below = [*group_id.split("."), artifact_id, version, *([] if instance_id is None else [str(instance_id)])]
    return str(Path(root, *below))


def read_config_file(config_file_path: str) -> ClassDict:
    """What a configuration file says.

    Raises:
        ValueError: when it is no YAML, or no mapping.
    """
    made = ClassDict.convert(read_yaml(config_file_path))
    if not isinstance(made, ClassDict):
        raise ValueError(f"{config_file_path}: a component's configuration is a mapping, not {type(made).__name__}")
    return made


def version_info(version: str) -> tuple[str, tuple[str, str | None, bool]]:
    """The version, `-SNAPSHOT` in capitals; and its numbers, what follows them, and whether it is a snapshot.

    Raises:
        ValueError: when it is no version.
    """
    is_snapshot = version.upper().endswith(_SNAPSHOT)
    released = version[: -len(_SNAPSHOT)] if is_snapshot else version
    found = _VERSION.fullmatch(released)
    if found is None:
        raise ValueError(f"{version!r} is no version: write numbers with dots, such as 1.0.2, 1.0-beta or 1.0-SNAPSHOT")
    return released + _SNAPSHOT * is_snapshot, (found[1], found[2], is_snapshot)


def sort_versions(versions: Iterable[str]) -> list[tuple[str, tuple[str, str | None, bool]]]:
    """Versions as `version_info` tells them, the newest first; a release before its snapshot."""

    def place(told: tuple[str, tuple[str, str | None, bool]]) -> tuple[tuple[int, ...], str, bool]:
        numbers, rest, is_snapshot = told[1]
        return tuple(-int(number) for number in numbers.split(".")), rest or "", is_snapshot

    return sorted(map(version_info, versions), key=place)


def validate_component_config_file(file_name: str) -> tuple[str, str, str]:
    """Group, artifact and version of a configuration file in which everything needed is there.

    Raises:
        ValueError: naming what is not.
    """
    config = read_config_file(file_name)
    for key in ("group_id", "artifact_id", "version", "type"):
        _check_text(file_name, key, config.get(key))
    if not isinstance(config.as_plugin, bool):
        raise ValueError(f"{file_name}: as_plugin must be true or false, not {config.as_plugin!r}")
    if config.as_plugin:
        info = config.info if isinstance(config.info, ClassDict) else ClassDict()
        _check_text(file_name, "info.title", info.title)
        _check_text(file_name, "info.description", info.description_for_model or info.description)
    for key in ("commands",) * config.as_plugin + ("url", "developers", "licenses"):
        if not config.get(key):
            _log.warning("%s: %s should be there", file_name, key)
    return config.group_id, config.artifact_id, config.version


def _check_text(file_name: str, key: str, value: Any) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{file_name}: {key} must be text that is not empty, not {value!r}")


def md5(input_path: str, output_path: str | None = None) -> str:
    """The MD5 sum of a file, in hexadecimal; written to a file if one is named."""
    return _digest("md5", input_path, output_path)


def sha512(input_path: str, output_path: str | None = None) -> str:
    """The SHA-512 sum of a file, in hexadecimal; written to a file if one is named."""
    return _digest("sha512", input_path, output_path)


def _digest(algorithm: str, input_path: str, output_path: str | None) -> str:
    if not Path(input_path).is_file():
        raise ValueError(f"{input_path} is no file")
    with open(input_path, "rb") as file:
        digest = hashlib.file_digest(file, algorithm).hexdigest()
    if output_path is not None:
        Path(output_path).write_text(digest)
    return digest
