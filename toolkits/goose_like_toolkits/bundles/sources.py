"""Where bundles come from: folders, git repositories, marketplaces in them, and installed packages."""

import os
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from goose_like.config.bundles import BUNDLES
from goose_like.config.foreign_text import parse_json
from goose_like.config.paths import describe_read_error, expand_home, read_user_file, shorten_home
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.workspace.repositories.remote import expand_address, fetch_copy

from ..skills.packages import find_package_plugins
from .contents import find_layout

PACKAGE = "package:"
"""What a stored source begins with if it is the name of an installed package."""

_MARKETPLACES = (".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with a bundle. `entry` is that of its marketplace, if it has no other manifest."""

    folder: Path
    entry: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Marketplace:
    """A list of bundles by name, in a folder."""

    folder: Path
    entries: Mapping[str, Mapping[str, Any]]


def open_source(source: str) -> Path:
    """Return the folder of a source from `normalize_source`. A git repository is fetched.

    Raises:
        GooseLikeError: there is none, or git fails.
    """
    if os.path.isabs(source):
        folder = Path(source)
        if not folder.is_dir():
            raise UsageError(f"{source} is no folder; name that of a bundle")
        return folder
    if source.startswith(PACKAGE):
        return _find_package(source.removeprefix(PACKAGE))
    return fetch_copy(source, BUNDLES)


def _find_package(name: str) -> Path:
    plugins, _ = find_package_plugins()
    for plugin in plugins:
        if plugin.package == name:
            return plugin.root
    names = [plugin.package for plugin in plugins]
    hint = did_you_mean(name, names) if names else "name a folder, a git repository, or an installed package"
    raise UsageError(f"no bundle {name!r}; {hint}")


def normalize_source(source: str) -> str:
    """Return a source that means the same in every folder: an absolute path, `package:NAME`, or an address for git."""
    folder = expand_home(source)
    if folder.exists():
        return str(folder.resolve())
    if os.path.isabs(source):
        return source
    if "/" not in source:
        return PACKAGE + source.removeprefix(PACKAGE)
    return expand_address(source)


def is_content(path: Path, top: Path) -> bool:
    """Check that a real path lies in a folder, and not in the `.git` there: its configuration may hold passwords."""
    real_top = os.path.realpath(top)
    return path.is_relative_to(real_top) and ".git" not in path.relative_to(real_top).parts


def shorten_source(source: str) -> str:
    """Return a source to be shown: without name and password."""
    return re.sub(r"://[^/]*@", "://", shorten_home(source))


def read_marketplace(folder: Path) -> Marketplace | None:
    """Read the list of bundles in a folder, if it has one.

    Raises:
        UsageError: it cannot be read.
    """
    for name in _MARKETPLACES:
        file = folder / name
        if not file.is_file():
            continue
        if os.path.realpath(file) != os.path.join(os.path.realpath(folder), name):
            raise UsageError(f"{name} is a link; it is not read")
        try:
            content = parse_json(read_user_file(file))
            entries = {str(entry["name"]): entry for entry in content["plugins"]}
        except (OSError, ValueError) as error:
            raise UsageError(f"{name} can't be read: {describe_read_error(error)}") from error
        except (KeyError, TypeError):
            raise UsageError(f"{name} has no list `plugins` with a `name` each") from None
        return Marketplace(folder, entries)
    return None


def find_place(folder: Path, member: str) -> Place | Marketplace:
    """Find the bundle in the folder of a source, or the list from which the person must choose one.

    Raises:
        GooseLikeError: there is no such bundle, or git fails.
    """
    market = read_marketplace(folder)
    if member:
        if market is None:
            raise UsageError(f"this is no list of bundles, so that there is no {member!r} in it")
        if member not in market.entries:
            raise UsageError(f"no bundle {member!r} in this list; {did_you_mean(member, market.entries)}")
        return _open_entry(market, market.entries[member])
    if market is None or (find_layout(folder) and len(market.entries) == 1):
        return Place(folder)
    return market


def _open_entry(market: Marketplace, entry: Mapping[str, Any]) -> Place:
    """Return the place of an entry, from another repository if it names one.

    Raises:
        GooseLikeError: there is none, or git fails.
    """
    try:
        return _find_entry(market, entry)
    except ValueError as error:  # no path or address, as one with a NUL byte
        raise UsageError(f"the bundle {entry['name']!r} has no `source` that can be read: {error}") from error


def _find_entry(market: Marketplace, entry: Mapping[str, Any]) -> Place:
    source = entry.get("source", "./")
    if isinstance(source, str):
        source = {"source": "local", "path": source}
    if not isinstance(source, Mapping):
        raise UsageError(f"the bundle {entry['name']!r} has no `source` that can be read")
    revision = str(source.get("sha") or source.get("ref") or "")
    path = str(source.get("path") or "./")
    match source.get("source"):
        case "local":
            top = market.folder
        case "github":
            top = fetch_copy(str(source.get("repo", "")), BUNDLES, revision)
        case "url" | "git" | "git-subdir":
            top = fetch_copy(str(source.get("url", "")), BUNDLES, revision)
        case kind:
            raise UsageError(
                f"the bundle {entry['name']!r} comes from {kind!r}, which is not supported; add its folder"
            )
    folder = Path(os.path.realpath(top / path))
    if not folder.is_dir() or not is_content(folder, top):
        raise UsageError(f"the bundle {entry['name']!r} is not at {path!r}")
    return Place(folder, entry)
