"""Whose hooks run: those of the profile, of trusted files of the project, of bundles, and of files taken over.

Files of other agents in the home folder run only after `goose-like hooks use FILE`, which copies their hooks to
`hooks.json` in the configuration folder. No tool can write there, so a later change of the file has no effect.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from goose_like.config.bundles import Bundle, list_bundles
from goose_like.config.foreign_text import parse_json, parse_toml
from goose_like.config.paths import config_folder, describe_read_error, home_folder, read_user_file, shorten_home
from goose_like.config.trust import ProjectConfig
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import ProfileError, UsageError

from .settings import Format, Handler, HookReader, Source

FILES: dict[str, Format] = {
    ".claude/settings.json": "claude",
    ".codex/config.toml": "codex",
    ".codex/hooks.json": "codex",
}
"""The files with hooks of other agents, in a project and in the home folder."""

_COPIES = "hooks.json"


@dataclass(frozen=True, slots=True)
class HookSet:
    """Hooks, and sentences about the parts that are not used."""

    handlers: tuple[Handler, ...] = ()
    problems: tuple[str, ...] = ()

    def __add__(self, other: "HookSet") -> "HookSet":
        return HookSet(self.handlers + other.handlers, self.problems + other.problems)


def read_profile_hooks(config: Mapping[str, Any]) -> HookSet:
    """Read the hooks in the config of the toolkit. Only the person's own profiles and those of packages may have any.

    Raises:
        ProfileError: a part cannot be used.
    """
    reader = HookReader(Source("the profile", "ours", is_own=True))
    handlers = reader.read(config)
    for problem in reader.problems:
        raise ProfileError(f"toolkit 'hooks': {problem.text}", ("config", *problem.place))
    return HookSet(tuple(handlers))


def read_project_hooks(project: ProjectConfig | None) -> HookSet:
    """Read the hooks in the files of a project that the person trusts."""
    found = HookSet()
    for name, form in FILES.items():
        text = project.files.get(name) if project else None
        if text is not None:
            found += _read_text(Source(name, form, is_own=False), text)
    return found


def read_copied_hooks() -> HookSet:
    """Read the hooks that the person took over. Say which files have changed since then."""
    found = HookSet()
    for name, data in _load_copies().items():
        path = Path(name)
        source = Source(shorten_home(name), _find_format(path), is_own=True)
        found += _read_data(source, data)
        present = _try_read(path)
        if present is not None and present != data:
            text = f"{source.name} has other hooks than you took over; to use them: goose-like hooks use {source.name}"
            found += HookSet(problems=(text,))
    return found


def read_bundle_hooks() -> HookSet:
    """Read the hooks of the bundles that the person added. They run in the sandbox."""
    found = HookSet()
    for bundle in list_bundles():
        data = bundle.read_part("hooks")
        if data:
            found += describe_bundle_hooks(bundle, data)
    return found


def describe_bundle_hooks(bundle: Bundle, data: object) -> HookSet:
    """Read the hooks of a bundle. Agent Plugins have none."""
    form: Format = "claude"
    if bundle.layout == "codex":
        form = "codex"
    variables = tuple(bundle.variables.items())
    source = Source(f"the bundle {bundle.name}", form, is_own=False, variables=variables, data=bundle.data)
    found = _read_data(source, data)
    handlers: list[Handler] = []
    for handler in found.handlers:
        # A line for bash finds the values in its variables; nothing else fills in the arguments of a program.
        if handler.arguments is not None:
            handler = replace(
                handler, command=bundle.fill(handler.command), arguments=tuple(map(bundle.fill, handler.arguments))
            )
        handlers.append(handler)
    return HookSet(tuple(handlers), found.problems)


@lru_cache(maxsize=len(FILES))  # a start asks whether there are hooks, and then for them
def _read_text(source: Source, text: str) -> HookSet:
    try:
        data = parse_hooks(source.name, text)
    except ValueError as error:
        return HookSet(problems=(f"the hooks of {source.name} can't be read: {error}",))
    return _read_data(source, data)


def _read_data(source: Source, data: object) -> HookSet:
    reader = HookReader(source)
    handlers = reader.read(data)
    problems = [f"{source.name}: {problem.text}" for problem in reader.problems]
    return HookSet(tuple(handlers), tuple(problems))


def parse_hooks(name: str, text: str) -> Any:
    """Return the part of a file with its hooks: a mapping, empty if there are none or if the file switches them off.

    Raises:
        ValueError: the text is no JSON or TOML, or no mapping.
    """
    if name.endswith(".toml"):
        data: object = parse_toml(text)
    else:
        data = parse_json(text)
    if not isinstance(data, Mapping):
        raise ValueError("it is no mapping")
    features = data.get("features")
    is_off = data.get("disableAllHooks") is True
    if isinstance(features, Mapping) and features.get("hooks") is False:
        is_off = True
    if is_off:
        return {}
    return data.get("hooks") or {}


# --- files of other agents in the home folder


def list_own_files() -> list[tuple[Path, str]]:
    """List the person's files of other agents that have hooks, each with its state: `used`, `changed` or `not used`.

    A file that was removed since it was taken over is listed too.
    """
    copies = _load_copies()
    usual = [str(home_folder() / name) for name in FILES]
    names = dict.fromkeys([*usual, *copies])
    rows = []
    for name in names:
        data = _try_read(Path(name))
        copy = copies.get(name)
        if copy is None and not data:
            continue
        if copy is None:
            state = "not used"
        elif data is None or data == copy:
            state = "used"
        else:
            state = "changed"
        rows.append((Path(name), state))
    return rows


def read_own_file(path: Path) -> Any:
    """Read the hooks of a file that the person names.

    Raises:
        UsageError: the file cannot be read, or has no hooks.
    """
    try:
        data = parse_hooks(path.name, read_user_file(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read: {describe_read_error(error)}") from error
    if not data:
        raise UsageError(f"{path} has no hooks")
    return _clean(data)


def describe_hooks(path: Path, data: object) -> HookSet:
    """Read hooks that the person may take over."""
    source = Source(shorten_home(str(path)), _find_format(path), is_own=True)
    return _read_data(source, data)


def use_hooks(path: Path, data: object) -> None:
    """Copy the hooks of a file, so that they run from the next session on."""
    _edit_copies(str(path), data)


def forget_hooks(path: Path) -> None:
    """Remove the copy of a file's hooks.

    Raises:
        UsageError: there is none.
    """
    if str(path) not in _load_copies():
        raise UsageError(f"the hooks of {path} are not used; see goose-like hooks list")
    _edit_copies(str(path), None)


def _edit_copies(name: str, data: object) -> None:
    from .copies import edit_copies

    edit_copies(config_folder() / _COPIES, name, data)


def _load_copies() -> Mapping[str, Any]:
    file = config_folder() / _COPIES
    if not os.path.lexists(file):
        return {}
    from .copies import read_copies  # few people have taken over hooks

    return read_copies(file)


def _find_format(path: Path) -> Format:
    return "codex" if ".codex" in path.parts else "claude"


def _try_read(path: Path) -> Any:
    """Return the hooks of a file, or None if it cannot be read."""
    try:
        return _clean(parse_hooks(path.name, read_user_file(path)))
    except (OSError, ValueError):
        return None


def _clean(data: object) -> Any:
    """Return data as JSON holds it: TOML has dates."""
    return json.loads(json.dumps(data, default=str))
