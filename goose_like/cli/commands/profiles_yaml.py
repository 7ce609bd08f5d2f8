"""Changes to the person's `profiles.yaml`: in its text, so that comments and layout stay, and checked before saving."""

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from goose_like.config.paths import config_folder
from goose_like.config.profile_loader import (
    describe_unknown_profile,
    get_profiles_file,
    list_profile_sources,
    load_profile,
)
from goose_like.config.profile_schema import build_profiles_schema
from goose_like.config.yaml_source import parse_yaml
from goose_like.core.errors import GooseLikeError, ProfileError, UsageError
from goose_like.workspace.files import FileAccess

NEW_FILE = """\
# yaml-language-server: $schema=profiles.schema.json
# Profiles by name. All settings: goose-like help profiles
"""
_SCHEMA_NAME = "profiles.schema.json"
_USE = re.compile(r"""^use:[ \t]+("[^"\n]*"|'[^'\n]*'|[^\s#"'][^\s#]*)""", re.MULTILINE)


def add_profile(name: str, base: str | None) -> Path:
    """Append a profile that extends `base`, by default an existing profile of this name or `default`."""
    if not re.fullmatch(r"[^\W\d][\w.-]{0,63}", name) or name == "use":
        raise UsageError(f"{name!r} is not a valid profile name; use up to 64 letters, digits, '-', '_' and '.'")
    known = {source.name: source for source in reversed(list_profile_sources())}
    if name in known and is_own_profile(known[name].file):
        place = known[name].locate()
        raise ProfileError(f"there is a profile {name!r} already: {place}; edit it: goose-like profile edit {name}")
    base = base or (name if name in known else "default")
    if base not in known:
        raise ProfileError(describe_unknown_profile(base, known))
    return _change_file([f"{name}:", f"  extends: {_format_scalar(base)}"], {name: {"extends": base}})


def use_profile(name: str) -> Path:
    """Make a profile the default."""
    load_profile(name)
    return _change_file([f"use: {_format_scalar(name)}"], {"use": name}, replaces=_USE)


def find_errors(file: Path, text: str) -> str | None:
    """Return the errors that `text` would cause in a file of profiles, with line numbers, or None."""
    drafts = {file: text}
    try:
        names = [source.name for source in list_profile_sources(drafts=drafts) if source.file == file]
    except ProfileError as error:
        return str(error)
    errors: dict[str, None] = {}
    for name in [*names, None]:
        try:
            load_profile(name, drafts=drafts)
        except ProfileError as error:
            errors.update(dict.fromkeys(str(error).splitlines()))
    # Errors in other files cannot be corrected here.
    return "\n".join(line for line in errors if line.startswith(str(file))) or None


def read_profiles_file(file: Path) -> str | None:
    """Return the text of a file with its line ends, or None if the file does not exist.

    Raises:
        ProfileError: The file cannot be read or is not text.
    """
    try:
        return FileAccess(config_folder(), None).read_bytes(file).decode()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ProfileError(f"{file}: cannot be read: {error}") from error


def replace_profiles_file(file: Path, before: str | None, text: str) -> Path:
    """Replace the text `before` atomically and keep the file's mode; return the written file, behind any link.

    Raises:
        GooseLikeError: The file has changed meanwhile, or cannot be written.
    """
    with _lock_folder():
        if read_profiles_file(file) != before:
            raise GooseLikeError(f"{file} was changed by another program; look at it and try again")
        return _write(file, text)


def format_schema() -> str:
    """Return the JSON Schema of profiles as text."""
    return json.dumps(build_profiles_schema(), indent=2) + "\n"


def _change_file(lines: list[str], wanted: dict[str, Any], replaces: re.Pattern[str] | None = None) -> Path:
    """Append lines to the file, or put them where `replaces` matches; `wanted` is the data that the lines mean."""
    file = get_profiles_file()
    with _lock_folder():
        before = read_profiles_file(file)
        text = NEW_FILE if before is None else before
        end = "\r\n" if "\r\n" in text else "\n"
        added = end.join(lines)
        if replaces and replaces.search(text):
            changed = replaces.sub(lambda _: added, text, count=1)
        else:
            changed = text + ("" if text.endswith("\n") or not text else end) + end + added + end
        expected = {**_parse(file, text), **wanted}
        try:
            actual = _parse(file, changed)
        except ProfileError:
            actual = {}
        if actual != expected:
            entry = json.dumps(wanted)[1:-1]
            raise ProfileError(f"{file} has a form that cannot be changed automatically; add this by hand: {entry}")
        load_profile(next(iter(wanted)) if "use" not in wanted else None, drafts={file: changed})
        return _write(file, changed)


def _parse(file: Path, text: str) -> dict[str, Any]:
    """Parse the text of a file of profiles, with the errors of the profile loader."""
    list_profile_sources(drafts={file: text})
    return dict(parse_yaml(file, text))


def _write(file: Path, text: str) -> Path:
    access = FileAccess(config_folder(), None)
    try:
        access.write_bytes(access.resolve(config_folder() / _SCHEMA_NAME), format_schema().encode())
        access.write_bytes(real := access.resolve(file), text.encode())
    except OSError as error:
        raise GooseLikeError(f"{file} cannot be written: {error}; make the file and its folder writable") from error
    return real


@contextmanager
def _lock_folder() -> Iterator[None]:
    """Let only one process at a time change the file."""
    try:
        config_folder().mkdir(parents=True, exist_ok=True)
        folder = os.open(config_folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise GooseLikeError(f"{config_folder()} cannot be used: {error}") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def is_own_profile(file: Path) -> bool:
    """Return whether a file of profiles is the person's own, not part of a package."""
    return file.is_relative_to(config_folder())


def _format_scalar(text: str) -> str:
    return text if re.fullmatch(r"[^\W\d][\w.-]*", text) else json.dumps(text, ensure_ascii=False)
