"""Where something in YAML is written: read with the lines of its values, so that errors name them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from goose_like.core.errors import ProfileError

Drafts = Mapping[Path, str]
NO_DRAFTS: Drafts = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class YamlSource:
    """Where something in YAML is written: `data` keeps its lines. `extended` are the sources that it builds on."""

    name: str
    file: Path
    data: Any
    bases: tuple["YamlSource", ...] = ()
    error: ProfileError | None = None
    is_project: bool = False

    def locate(self, *path: str | int) -> str:
        """`file, line N` of the value at `path`, or of the nearest thing around it, here or in what it extends."""
        # Of equals the first: the profile itself overrides what it extends.
        deepest = max((self, *self.bases), key=lambda source: len(source.find_lines(path)))
        lines = deepest.find_lines(path)
        return f"{deepest.file}, line {lines[-1] + 1}" if lines else f"{deepest.file}"

    def find_lines(self, path: tuple[str | int, ...]) -> list[int]:
        """The line of the whole, then those of each step of the path as far as it is written here."""
        node: Any = self.data
        lines = [node.lc.line] if hasattr(node, "lc") else []
        for key in path:
            try:
                marks = node.lc
                lines.append((marks.key(key) if isinstance(node, Mapping) else marks.item(key))[0])
                node = node[key]
            except (AttributeError, KeyError, IndexError, TypeError):
                break
        return lines

    def add_location(self, error: ProfileError) -> ProfileError:
        """The error with this file and the line of its path before it."""
        return ProfileError(f"{self.locate(*error.path)}: {error}" if error.path else str(error))


def read_yaml(file: Path, drafts: Drafts = NO_DRAFTS) -> Any:
    """What a file, or its draft, holds, with the lines of its values; an empty one holds an empty mapping.

    Raises:
        ProfileError: it can't be read, or is no YAML; the text names the file and the line.
    """
    try:
        text = drafts[file] if file in drafts else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ProfileError(f"{file}: can't be read: {reason}") from error
    return parse_yaml(file, text)


def parse_yaml(file: Path, text: str) -> Any:
    """What the text of a file holds, as `read_yaml`."""
    try:
        data = YAML().load(text)
        return {} if data is None else data
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ProfileError(f"{file}, line {line}: this is no valid YAML: {error.problem or error}") from error
    except (YAMLError, ValueError) as error:  # ValueError: a date that there is not
        reason = " ".join(str(error).split())
        raise ProfileError(f"{file}: can't be read: {reason}") from error


def describe_validation_error(
    error: ValidationError, source: YamlSource, near: Callable[[tuple[str | int, ...]], str], whole: str
) -> str:
    """A validation's faults in the order of the file, a sentence each: where, and what.

    `near` gives words for the unknown key at a path; `whole` is what the thing itself is called.
    """
    faults = sorted(error.errors(), key=lambda fault: source.find_lines(fault["loc"]))
    return "\n".join(_explain(fault, source, near, whole) for fault in faults)


def _explain(
    fault: Mapping[str, Any], source: YamlSource, near: Callable[[tuple[str | int, ...]], str], whole: str
) -> str:
    path = tuple(fault["loc"])
    if fault["type"] == "extra_forbidden":
        what = ".".join(map(str, path)) or whole
        return f"{source.locate(*path)}: unknown key {what!r}; {near(path)}"
    return f"{source.locate(*path)}: {describe_field_error(fault, whole)}"


def describe_field_error(fault: Mapping[str, Any], whole: str) -> str:
    """What pydantic says of a value, without the place: `key: expected text, not 3`."""
    what = ".".join(str(step) for step in fault["loc"]) or whole
    if fault["type"] == "told":  # what was given may be a secret
        return f"{what}: {fault['msg']}"
    if fault["type"] == "missing":
        return f"{what}: this key is missing"
    kinds = {"model_type": "a mapping", "dict_type": "a mapping", "tuple_type": "a list", "string_type": "text"}
    expected = kinds.get(fault["type"]) or fault["msg"].removeprefix("Input should be ")
    given = repr(fault["input"])
    clipped = given if len(given) <= 80 else given[:77] + "..."
    return f"{what}: expected {expected}, not {clipped}"
