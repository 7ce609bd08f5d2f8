"""Which files a component has in a remote repository, read with suspicion: the names become paths here."""

from collections.abc import Mapping
from typing import Any

import yaml

from goose_like.core.errors import GooseLikeError

LIMIT_BYTES = 1_000_000
LIMIT_FILES = 2_000
_LIMIT_DEPTH = 8
_LIMIT_NAME_BYTES = 200

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class RefusedError(GooseLikeError):
    """What a repository gave is not taken: damaged, not signed by whom it says, or out to do harm."""


def read_listing(text: str, folder: str) -> dict[str, str | None] | None:
    """The names of the files, relative to the component's folder, and their SHA-256 where it is said.

    `text` is YAML: a list of names, as ConCopilot's site gives it, or `{name: sha256}`. `folder` is the component's,
    as "g/ro/up/artifact/version"; a name that has it before its own is read without.

    Returns:
        None where the text is no such YAML.

    Raises:
        RefusedError: a name leads elsewhere, or there are too many.
    """
    said = _flat(text)
    if said is None:
        return None
    if len(said) > LIMIT_FILES:
        raise RefusedError(f"it lists more than {LIMIT_FILES:,} files, and no component has that many")
    return {relative(name, folder): sha256 or None for name, sha256 in said.items()}


def written(files: Mapping[str, str]) -> str:
    """The listing of these names and SHA-256s, as YAML."""
    return str(yaml.safe_dump(dict(files), allow_unicode=True, width=10_000))


def relative(name: str, folder: str) -> str:
    """A name within the component's folder.

    Raises:
        RefusedError: it leads elsewhere, or no file can have it.
    """
    *before, last = f"/{name}".rpartition(f"/{folder}/")
    inner = last if any(before) else name
    if not is_plain(inner) or ".." in name.split("/"):
        raise RefusedError(f"it lists {name[:200]!r}, which is no name of a file in the component's folder")
    return inner


def is_plain(name: str) -> bool:
    """Whether a relative path can be a file's within a component's folder, here and on other systems."""
    parts = name.split("/")
    is_clean = name.isprintable() and "\\" not in name and ":" not in name and not {"", ".", ".."} & set(parts)
    return is_clean and len(parts) <= _LIMIT_DEPTH and all(len(part.encode()) <= _LIMIT_NAME_BYTES for part in parts)


def _flat(text: str) -> dict[str, str] | None:
    """A YAML list of scalars, or a mapping of such. From its events: nothing is nested, thus nothing recurses."""
    kinds = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
    values: list[str] = []
    opened: list[type[yaml.Event]] = []
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, kinds):
                opened.append(type(event))
            elif isinstance(event, yaml.ScalarEvent):
                values.append(event.value)
            if len(opened) > 1 or isinstance(event, yaml.AliasEvent):
                return None
    except (yaml.YAMLError, ValueError):
        return None
    if not opened:
        return None
    if opened[0] is yaml.SequenceStartEvent:
        return dict.fromkeys(values, "")
    return dict(zip(values[::2], values[1::2], strict=True))
