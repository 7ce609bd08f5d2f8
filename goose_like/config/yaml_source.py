"""Configuration read from YAML files, with the file and line of each value for error messages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from goose_like.core.errors import ProfileError

from .yaml_reader import YamlError, YamlList, YamlMapping, parse_document

Drafts = Mapping[Path, str]
"""Texts that replace the contents of files, to check a change before it is written."""

NO_DRAFTS: Drafts = MappingProxyType({})

USER_MESSAGE = "user_message"
"""The type of a pydantic error with a message for users, which must not quote a value that may be a secret."""


@dataclass(frozen=True, slots=True)
class YamlSource:
    """A named part of a YAML file. `bases` are the sources that it extends, nearest first."""

    name: str
    file: Path
    data: Any
    bases: tuple["YamlSource", ...] = ()
    error: ProfileError | None = None
    is_project: bool = False

    def locate(self, *path: str | int) -> str:
        """Format `file, line N` of the value at a path, or of its nearest parent, here or in a base."""
        # With equal depth the first source wins: it overrides its bases.
        deepest = max((self, *self.bases), key=lambda source: len(source.find_lines(path)))
        lines = deepest.find_lines(path)
        return f"{deepest.file}, line {lines[-1]}" if lines else f"{deepest.file}"

    def find_lines(self, path: tuple[str | int, ...]) -> list[int]:
        """Return the line of the whole part, then the line of each key of the path that exists in this file."""
        node: Any = self.data
        lines = [node.line] if isinstance(node, YamlMapping | YamlList) else []
        for key in path:
            try:
                lines.append(node.child_lines[key])
                node = node[key]
            except (AttributeError, KeyError, IndexError, TypeError):
                break
        return lines

    def add_location(self, error: ProfileError) -> ProfileError:
        """Return the error with the file and the line of its path in front of the text."""
        return ProfileError(f"{self.locate(*error.path)}: {error}" if error.path else str(error))


def read_yaml(file: Path, drafts: Drafts = NO_DRAFTS) -> Any:
    """Read a YAML file, or its draft, with the lines of its values. An empty file gives an empty mapping.

    Raises:
        ProfileError: The file cannot be read or is invalid. The text names the file and the line.
    """
    try:
        text = drafts[file] if file in drafts else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ProfileError(f"{file}: can't be read: {reason}") from error
    return parse_yaml(file, text)


def parse_yaml(file: Path, text: str) -> Any:
    """Parse the text of a file in the same way as `read_yaml`.

    Raises:
        ProfileError: The text is invalid. The error names the file and the line.
    """
    try:
        data = parse_document(text)
    except YamlError as error:
        if error.line is None:
            raise ProfileError(f"{file}: can't be read: {error}") from error
        raise ProfileError(f"{file}, line {error.line}: {error}") from error
    return {} if data is None else data


def describe_validation_error(
    error: ValidationError, source: YamlSource, suggest: Callable[[tuple[str | int, ...]], str], whole: str
) -> str:
    """Describe each invalid value in one line with its place, in the order of the file.

    Args:
        error: The error that pydantic raised for the data of `source`.
        source: The place of the data.
        suggest: Returns the end of the sentence about an unknown key at a path, for example "did you mean 'steps'?".
        whole: The name of the data as a whole, for example "the profile".
    """
    lines = []
    for field in sorted(error.errors(), key=lambda field: source.find_lines(field["loc"])):
        path = field["loc"]
        if field["type"] == "extra_forbidden":
            text = f"unknown key {'.'.join(map(str, path))!r}; {suggest(path)}"
        else:
            text = describe_field_error(field, whole)
        lines.append(f"{source.locate(*path)}: {text}")
    return "\n".join(lines)


def describe_field_error(field: Mapping[str, Any], whole: str) -> str:
    """Describe one error of pydantic without its place, for example `limits.steps: expected text, not 3`."""
    name = ".".join(str(key) for key in field["loc"]) or whole
    if field["type"] == USER_MESSAGE:
        return f"{name}: {field['msg']}"
    if field["type"] == "missing":
        return f"{name}: this key is missing"
    kinds = {"model_type": "a mapping", "dict_type": "a mapping", "tuple_type": "a list", "string_type": "text"}
    expected = kinds.get(field["type"]) or field["msg"].removeprefix("Input should be ")
    value = repr(field["input"])
    clipped = value if len(value) <= 80 else value[:77] + "..."
    return f"{name}: expected {expected}, not {clipped}"
