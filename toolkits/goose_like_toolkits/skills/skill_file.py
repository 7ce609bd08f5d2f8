"""SKILL.md files: read leniently, as other agents write them, and checked against the specification."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from goose_like.config.paths import describe_read_error, read_user_file
from goose_like.config.tool_list import split_tools
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later
from goose_like.terminal.escape import to_one_line

_MAX_BYTES = 1_000_000
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1_024
_MAX_COMPATIBILITY_CHARS = 500
_KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""The keys of the specification. Other agents add keys of their own, which have no effect here."""

_NAME = compile_later(r"\w[\w-]*")
_KEY = compile_later(r"([A-Za-z][\w-]*):(?=\s|$)")


@dataclass(frozen=True, slots=True)
class SkillFile:
    """The content of a SKILL.md file. `front` is the front matter as it is written."""

    name: str
    description: str
    body: str
    allowed_tools: tuple[str, ...] = ()
    front: Mapping[str, Any] | None = None


def read_skill_text(path: Path) -> str:
    """Read a SKILL.md file.

    Raises:
        GooseLikeError: it cannot be read.
    """
    try:
        return read_user_file(path, _MAX_BYTES)
    except (OSError, ValueError) as error:
        raise GooseLikeError(f"{path} can't be read: {describe_read_error(error)}; correct or remove it") from error


def parse_skill_file(path: Path, text: str) -> SkillFile:
    """Parse a SKILL.md file. Values that are no YAML because of a colon are read as plain text.

    Raises:
        GooseLikeError: it has no description, or its front matter cannot be read.
    """
    front, body = _read_front_matter(path, text)
    description = _read_text(front.get("description"))
    if not description:
        raise GooseLikeError(
            f"{path}: the front matter has no `description`; say there what the skill is for, and when"
        )
    return SkillFile(
        name=_choose_name(front.get("name"), path.parent.name),
        description=to_one_line(description, MAX_DESCRIPTION_CHARS),
        body=body.strip(),
        allowed_tools=_read_tools(front.get("allowed-tools")),
        front=front,
    )


def _read_front_matter(path: Path, text: str) -> tuple[dict[str, Any], str]:
    from goose_like.config.front_matter import split_front_matter  # only a file that is new or changed is parsed

    try:
        source, body = split_front_matter(path, text, ())
    except GooseLikeError:
        keys = [match[1] for match in map(_KEY.match, text.splitlines()) if match]
        source, body = split_front_matter(path, text, keys)
    data = source.data if source else {}
    if not isinstance(data, dict):
        raise GooseLikeError(f"{path}: the front matter has no keys; write `name: ...` and `description: ...`")
    return data, body


def _read_text(value: object) -> str:
    """Return a text of one line, also from a number; empty for anything else."""
    if isinstance(value, str | int | float):
        return " ".join(str(value).split())
    return ""


def _choose_name(value: object, folder_name: str) -> str:
    """Return the name that the file gives, if it can be typed as a slash command, else that of the folder."""
    name = _read_text(value)
    if not _NAME.fullmatch(name):
        name = re.sub(r"[^\w-]+", "-", folder_name).strip("-") or "skill"
    return name[:MAX_NAME_CHARS]


def _read_tools(value: object) -> tuple[str, ...]:
    """Return the entries of `allowed-tools`, from one text or a list of texts."""
    texts = value if isinstance(value, list) else [value]
    entries: list[str] = []
    for text in texts:
        if isinstance(text, str):
            entries += split_tools(text)
    return tuple(entries)


def list_deviations(path: Path, skill: SkillFile) -> Iterator[str]:
    """Yield what in a usable file differs from the specification, so that other agents may refuse the file."""
    front = skill.front or {}
    name = _normalize(_read_text(front.get("name")))
    if not name:
        yield "it has no `name`"
    else:
        yield from _list_name_deviations(name, path.parent.name)
    description = front.get("description")
    if not isinstance(description, str):
        yield "`description` is no text"
    elif len(description.strip()) > MAX_DESCRIPTION_CHARS:
        yield f"`description` has more than {MAX_DESCRIPTION_CHARS:,} characters"
    compatibility = front.get("compatibility", "")
    if not isinstance(compatibility, str) or len(compatibility) > _MAX_COMPATIBILITY_CHARS:
        yield f"`compatibility` is no text of at most {_MAX_COMPATIBILITY_CHARS} characters"
    for key in front:
        if key not in _KEYS:
            yield f"the key `{key}` is not in the specification"
    if not skill.body:
        yield "it says nothing after the front matter"


def _list_name_deviations(name: str, folder_name: str) -> Iterator[str]:
    if name != _normalize(folder_name):
        yield f"`name` is {name!r}, and the folder {folder_name!r}"
    if len(name) > MAX_NAME_CHARS:
        yield f"`name` has more than {MAX_NAME_CHARS} characters"
    is_spelled_well = name == name.lower() and name == name.strip("-") and "--" not in name
    if not is_spelled_well or not name.replace("-", "a").isalnum():
        yield "`name` must have lower-case letters, digits and single hyphens between them"


def _normalize(text: str) -> str:
    import unicodedata  # only a file that is new or changed is parsed

    return unicodedata.normalize("NFKC", text)
