"""Changes of the person's `profiles.yaml`: made in its text, so that comments and layout stay, and checked before."""

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from goose_like.config.paths import config_folder
from goose_like.config.profile import find_profile, own_file, sources, unknown
from goose_like.config.profile_schema import profiles_schema
from goose_like.core.errors import GooseLikeError, ProfileError, UsageError
from goose_like.workspace.files import Jail

NEW_FILE = """\
# yaml-language-server: $schema=profiles.schema.json
# Profiles by name. What may stand in one: goose-like help profiles
"""
_SCHEMA_NAME = "profiles.schema.json"
_USE = re.compile(r"""^use:[ \t]+("[^"\n]*"|'[^'\n]*'|[^\s#"'][^\s#]*)""", re.MULTILINE)


def add_profile(name: str, base: str | None) -> Path:
    """Adds a profile that extends `base` (else the profile of its own name, else `default`) at the file's end.

    Raises:
        ProfileError: when the name is taken or `base` unknown, or the file is broken already.
        GooseLikeError: when the file can't be written.
    """
    if not re.fullmatch(r"[^\W\d][\w.-]{0,63}", name) or name == "use":
        raise UsageError(f"{name!r} is no name for a profile; use up to 64 letters, digits, '-', '_' and '.'")
    known = {source.name: source for source in reversed(sources())}
    if name in known and is_own(known[name].file):
        place = known[name].place()
        raise ProfileError(f"there is a profile {name!r} already: {place}; edit it: goose-like profile edit {name}")
    base = base or (name if name in known else "default")
    if base not in known:
        raise ProfileError(unknown(base, known))
    return _change([f"{name}:", f"  extends: {_scalar(base)}"], {name: {"extends": base}})


def use_profile(name: str) -> Path:
    """Makes a profile the one that is taken when none is named.

    Raises:
        ProfileError: when it can't be read.
        GooseLikeError: when the file can't be written.
    """
    find_profile(name)
    return _change([f"use: {_scalar(name)}"], {"use": name}, over=_USE)


def fault_in(file: Path, text: str) -> str | None:
    """What would be wrong with this file of profiles, were `text` in it: sentences with its lines; None: nothing."""
    drafts = {file: text}
    try:
        names = [source.name for source in sources(drafts=drafts) if source.file == file]
    except ProfileError as error:
        return str(error)
    faults: dict[str, None] = {}
    for name in [*names, None]:
        try:
            find_profile(name, drafts=drafts)
        except ProfileError as error:
            faults.update(dict.fromkeys(str(error).splitlines()))
    # What is wrong elsewhere can't be mended here.
    return "\n".join(fault for fault in faults if fault.startswith(str(file))) or None


def read(file: Path) -> str | None:
    """The file's text with its line ends; None when it is not there.

    Raises:
        ProfileError: when it is no text.
    """
    try:
        return Jail(config_folder(), None).read_bytes(file).decode()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ProfileError(f"{file}: can't be read: {error}") from error


def replace(file: Path, before: str | None, text: str) -> Path:
    """Puts `text` in the place of `before`, at once or not at all, and keeps the mode; gives the file that was written:
    where `file` is a link, the one that it leads to.

    Raises:
        GooseLikeError: when the file holds something else by now, or can't be written.
    """
    with _held():
        if read(file) != before:
            raise GooseLikeError(f"{file} was changed by somebody else just now; look at it and try again")
        return _write(file, text)


def schema_text() -> str:
    """The schema as it is written to files."""
    return json.dumps(profiles_schema(), indent=2) + "\n"


def _change(lines: list[str], wanted: dict[str, Any], over: re.Pattern[str] | None = None) -> Path:
    """Puts the lines at the file's end, or in the place of what `over` finds; `wanted` is what they mean."""
    file = own_file()
    with _held():
        before = read(file)
        text = NEW_FILE if before is None else before
        end = "\r\n" if "\r\n" in text else "\n"
        added = end.join(lines)
        if over and over.search(text):
            changed = over.sub(lambda _: added, text, count=1)
        else:
            changed = text + ("" if text.endswith("\n") or not text else end) + end + added + end
        expected = {**_data(file, text), **wanted}
        try:
            came = _data(file, changed)
        except ProfileError:
            came = {}
        if came != expected:
            meant = json.dumps(wanted)[1:-1]
            raise ProfileError(f"{file} is written in a form that can't be added to; put this in it by hand: {meant}")
        find_profile(next(iter(wanted)) if "use" not in wanted else None, drafts={file: changed})
        return _write(file, changed)


def _data(file: Path, text: str) -> dict[str, Any]:
    """What a text of profiles says; the reader of profiles tells what is wrong with it."""
    sources(drafts={file: text})
    return dict(YAML().load(text) or {})


def _write(file: Path, text: str) -> Path:
    jail = Jail(config_folder(), None)
    try:
        jail.write_bytes(jail.real(config_folder() / _SCHEMA_NAME), schema_text().encode())
        jail.write_bytes(real := jail.real(file), text.encode())
    except OSError as error:
        raise GooseLikeError(f"{file} can't be written: {error}; make it and its folder writable") from error
    return real


@contextmanager
def _held() -> Iterator[None]:
    """Two commands at once change the file one after the other."""
    try:
        config_folder().mkdir(parents=True, exist_ok=True)
        folder = os.open(config_folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise GooseLikeError(f"{config_folder()} can't be used: {error}") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def is_own(file: Path) -> bool:
    """Whether it is the person's, not of an installed package."""
    return file.is_relative_to(config_folder())


def _scalar(text: str) -> str:
    return text if re.fullmatch(r"[^\W\d][\w.-]*", text) else json.dumps(text, ensure_ascii=False)
