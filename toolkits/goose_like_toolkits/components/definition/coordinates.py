"""Coordinates of components, as Maven names packages: group, artifact and version."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from goose_like.config.yaml_source import USER_MESSAGE
from goose_like.core.errors import UsageError

_GROUP = re.compile(r"\w[\w-]*(\.\w[\w-]*)*")
_ARTIFACT = re.compile(r"\w[\w.-]*")
_VERSION = re.compile(r"\d+(\.\d+)*(-\w[\w.+-]*)?")
_INSTANCE = re.compile(r"(?! *$)[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*")
_LIMIT = 100

PARTS = ("group_id", "artifact_id", "version")
"""The keys of coordinates in YAML."""

_FORMS = {
    "group_id": (_GROUP, "names with dots between, such as org.example"),
    "artifact_id": (_ARTIFACT, "one name, such as ocr-detection"),
    "version": (_VERSION, "numbers with dots between, such as 0.1.0 or 0.2.0-SNAPSHOT"),
    "instance_id": (_INSTANCE, "the name of one folder that begins with no dot, such as notes, or a whole number"),
}

FORM = "GROUP:ARTIFACT:VERSION, such as org.example:ocr:0.1.0"


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The coordinates of a component.

    Each part is the name of a folder, or several for the group, with at most 100 characters. Others raise UsageError.
    """

    group_id: str
    artifact_id: str
    version: str

    def __post_init__(self) -> None:
        for part in PARTS:
            require(part, getattr(self, part))

    @property
    def folder(self) -> Path:
        """The folder of the component, relative to a repository."""
        return Path(*self.group_id.split("."), self.artifact_id, self.version)

    @property
    def prefix(self) -> str:
        """The beginning of its file names in a repository."""
        return f"{self.artifact_id}-{self.version}-"

    def instance_folder(self, instance_id: Any = None) -> Path:
        """Return the folder of an instance's copy, relative to `.runtime`. None, 0 and "0" are the same instance."""
        name: Any = "0" if instance_id is None else instance_id
        require("instance_id", name)
        return self.folder / str(name)

    def __str__(self) -> str:
        return f"{self.group_id}:{self.artifact_id}:{self.version}"


def parse(text: str) -> Coordinates:
    """Parse `GROUP:ARTIFACT:VERSION`. Raise UsageError if it has another form."""
    parts = text.strip().split(":")
    if len(parts) != 3:
        raise UsageError(f"{text!r} names no component; write {FORM}")
    return Coordinates(*parts)


def require(part: str, value: Any) -> None:
    """Raise UsageError if a value cannot be this part of coordinates, or an `instance_id`."""
    form, such_as = _FORMS[part]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if part == "instance_id" and is_number:
        value = str(value)
    if isinstance(value, float):
        raise UsageError(f'{part}: YAML reads {value} as a number; write it in quotes: {part}: "{value}"')
    fits = isinstance(value, str) and len(value) <= _LIMIT and form.fullmatch(value)
    if not fits:
        shown = str(value)[:80]
        raise UsageError(f"{part}: {shown!r} can't be one; write {such_as}, at most {_LIMIT} characters")


def check_part(part: str, value: Any) -> Any:
    """Check a part in a pydantic model; see `require`."""
    try:
        require(part, value)
    except UsageError as error:
        raise build_error(str(error).removeprefix(f"{part}: ")) from error
    return value


def build_error(text: str) -> PydanticCustomError:
    """Build an error of a pydantic model whose text is for users."""
    return PydanticCustomError(USER_MESSAGE, "{text}", {"text": text})
