"""Changes to the person's profiles: in the text of the file, so that comments and layout stay, checked before saving.

`profile edit` opens an editor on a copy, which replaces the file only if it has no errors.
"""

import json
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from goose_like.config.entry_points import list_names
from goose_like.config.paths import config_folder, lock_folder
from goose_like.config.profile import build_profiles_schema
from goose_like.config.profile_loader import (
    describe_unknown_profile,
    find_selected_profile,
    get_profiles_file,
    list_profile_sources,
    load_profile,
)
from goose_like.config.yaml_reader import format_document
from goose_like.config.yaml_source import YamlSource, read_yaml
from goose_like.core.errors import GooseLikeError, ProfileError, UsageError
from goose_like.terminal.interaction import has_person
from goose_like.workspace.files import write_file
from goose_like.workspace.programs import find_program
from goose_like.workspace.sandbox.path_rules import resolve_path

NEW_FILE = """\
# yaml-language-server: $schema=profiles.schema.json
# Profiles by name. All settings: goose-like help profiles
"""
HINTS = """\
  # processor: openai:gpt-5-mini       # the model: goose-like provider list
  # toolkits: [developer, delegate]    # its tools: goose-like toolkit list
  # sandbox: workspace                 # or read-only, workspace+network, full
  # approval: auto                     # or plan, ask, yolo
  # limits: {steps: 128}
"""
"""Lines below a new profile, for the person to complete."""
_SCHEMA_NAME = "profiles.schema.json"
_LINE_EDITORS = ("vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "mg")
"""Editors that open a file at a line with the argument `+LINE`."""
_USE = re.compile(r"""^use:[ \t]+("[^"\n]*"|'[^'\n]*'|[^\s#"'][^\s#]*)""", re.MULTILINE)


def add_profile(name: str, base: str | None) -> Path:
    """Append a profile that extends `base`, by default an existing profile of this name or `default`.

    If a toolkit has this name, the profile has it too. Comments show what else can be set.
    """
    if not re.fullmatch(r"[^\W\d][\w.-]{0,63}", name) or name in ("use", "version"):
        raise UsageError(f"{name!r} is not a valid profile name; use up to 64 letters, digits, '-', '_' and '.'")
    known = {source.name: source for source in reversed(list_profile_sources())}
    if name in known and _is_own(known[name]):
        place = known[name].locate()
        raise ProfileError(f"there is a profile {name!r} already: {place}; edit it: goose-like profile edit {name}")
    base = base or (name if name in known else "default")
    if base not in known:
        raise ProfileError(describe_unknown_profile(base, known))
    added: dict[str, Any] = {"extends": base}
    if name in list_names("goose_like.toolkit"):
        toolkits = [toolkit.model_dump(exclude_defaults=True) for toolkit in load_profile(base)[0].toolkits]
        names = [entry["name"] if len(entry) == 1 else entry for entry in toolkits]
        added |= {} if name in (entry["name"] for entry in toolkits) else {"toolkits": [*names, name]}
    hints = "".join(line for line in HINTS.splitlines(keepends=True) if line.split()[1].strip(":") not in added)
    return _change_file({name: added}, hints=hints)


def use_profile(name: str) -> Path:
    """Make a profile the default."""
    load_profile(name)
    return _change_file({"use": name}, replaces=_USE)


def set_models(processor: str, accelerator: str | None = None) -> Path:
    """Make models those of the default profile: the one that `use` names, else `default`.

    The embedded model brings its own profile, unless the default profile has more than models. Without an accelerator,
    the processor does its work too, also if the profile names another one until now. The older form `provider: NAME` is
    removed, as it would be put before the names of the models.

    Raises:
        ProfileError: `use` names no profile, or the profile is written in a form that cannot be changed automatically.
            The text says what to add.
    """
    file = get_profiles_file()
    before, draft = _draft_models(processor, accelerator)
    return replace_profiles_file(file, before, draft)


def check_models_can_be_set() -> None:
    """Raise the error that `set_models` would raise, so that a person does not answer questions in vain."""
    _draft_models("PROVIDER:MODEL", "PROVIDER:FAST_MODEL")
    real = resolve_path(get_profiles_file())
    folder = next(place for place in real.parents if place.exists())
    if not os.access(folder, os.W_OK):
        raise GooseLikeError(f"{real} cannot be changed; make {folder} writable")


def _draft_models(processor: str, accelerator: str | None) -> tuple[str | None, str]:
    """Return the text of `profiles.yaml` and the text with other models. Raise as `set_models`."""
    name = find_selected_profile() or "default"
    sources = list_profile_sources()
    known = {source.name: source for source in reversed(sources)}
    file = get_profiles_file()
    if name not in known:
        raise ProfileError(f"{file}: use: {describe_unknown_profile(name, known)}")
    before, source = read_profiles_file(file), known[name]
    models = {"processor": processor} | ({"accelerator": accelerator} if accelerator else {})
    base = "local" if processor == "local" else "default"
    others = {one.name for one in sources if (_is_own(one) or one.is_project) and one.name != name}
    is_shipped = not others & {"default", "local"}
    if not _is_own(source):
        if base == "local" and name == "default" and is_shipped:
            return before, _draft_addition(file, before, {name: {"extends": base}})
        return before, _draft_addition(file, before, {name: {"extends": name, **models}})
    if source.error or not isinstance(source.data, Mapping | None):
        load_profile(name)  # raises the error with its place
    old = source.data or {}
    if not accelerator and "accelerator" in old:
        models["accelerator"] = processor
    removed = ["provider"]
    has_models_only = old.keys() <= {"extends", "processor", "accelerator"}
    if is_shipped and has_models_only and old.get("extends") in ("default", "local"):
        removed += ["processor", "accelerator"] if base == "local" else []
        models = {"extends": base} | ({} if base == "local" else models)
    kept = {key: value for key, value in old.items() if key not in removed}
    block = re.compile(rf"(?m)^{re.escape(name)}:[ \t]*(#.*)?(\r?\n|\Z)(([ \t]+.*|[ \t]*)(\r?\n|\Z))*")
    text = before or ""
    if source.file == file and (found := block.search(text)):
        changed = re.sub(rf"(?m)^[ \t]+({'|'.join(removed)}):[ \t]*[^\s{{#].*(\r?\n|\Z)", "", found[0])
        for key, value in reversed(models.items()):
            changed = _set_line(changed, key, value, is_new=key not in old)
        draft = text[: found.start()] + changed + text[found.end() :]
        if _has_data(file, draft, {**_parse(file, text), name: {**kept, **models}}):
            load_profile(name, drafts={file: draft})
            return before, draft
    lines = " and ".join(f"`{key}: {value}`" for key, value in models.items())
    removal = "".join(f"remove `{key}` and " for key in removed if key in old)
    raise ProfileError(f"{removal}add this to your profile {name!r} in {source.file}: {lines}")


def _set_line(block: str, key: str, value: str, *, is_new: bool) -> str:
    """Return the text of a profile with another value of a key, which is added below the first line if it is new."""
    entry = format_document({key: value}).strip()
    if not is_new:
        line = re.compile(rf"(?m)^([ \t]+){key}:[ \t]*[^\s{{#][^#\r\n]*?(?=[ \t]*(#.*)?\r?$)")
        return line.sub(lambda match: f"{match[1]}{entry}", block, count=1)
    head, _, rest = block.partition("\n")
    indent = match[1] if (match := re.search(r"(?m)^([ \t]+)[^\s#]", rest)) else "  "
    end = "\r\n" if head.endswith("\r") else "\n"
    return f"{head}\n{indent}{entry}{end}{rest}"


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
    """Return the text of a file with its line ends, or None if the file does not exist."""
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ProfileError(f"{file}: cannot be read: {error}") from error


def replace_profiles_file(file: Path, before: str | None, text: str) -> Path:
    """Replace the text `before` atomically and keep the file's mode; return the written file, behind any link."""
    with _lock_files():
        if read_profiles_file(file) != before:
            raise GooseLikeError(f"{file} was changed by another program; look at it and try again")
        return _write(file, text)


def _write(file: Path, text: str) -> Path:
    """Write a file, behind any link, and the schema that its text can name; return the written file."""
    real = resolve_path(file)
    write_file(resolve_path(config_folder() / _SCHEMA_NAME), format_schema().encode())
    write_file(real, text.encode())
    return real


def format_schema() -> str:
    """Return the JSON Schema of profiles as text."""
    return json.dumps(build_profiles_schema(), indent=2) + "\n"


def _change_file(wanted: dict[str, Any], replaces: re.Pattern[str] | None = None, hints: str = "") -> Path:
    """Append data and comments to the file, or put the data where `replaces` matches."""
    file = get_profiles_file()
    with _lock_files():
        return _write(file, _draft_addition(file, read_profiles_file(file), wanted, replaces, hints))


def _draft_addition(
    file: Path,
    before: str | None,
    wanted: dict[str, Any],
    replaces: re.Pattern[str] | None = None,
    hints: str = "",
) -> str:
    """Return the text of the file with more data and comments, or with the data where `replaces` matches."""
    text = NEW_FILE if before is None else before
    end = "\r\n" if "\r\n" in text else "\n"
    added = format_document(wanted).rstrip("\n").replace("\n", end)
    if replaces and replaces.search(text):
        changed = replaces.sub(lambda _: added, text, count=1)
    else:
        changed = text + ("" if text.endswith("\n") or not text else end) + end + added + end + hints.replace("\n", end)
    if not _has_data(file, changed, {**_parse(file, text), **wanted}):
        entry = json.dumps(wanted)[1:-1]
        raise ProfileError(f"{file} has a form that cannot be changed automatically; add this by hand: {entry}")
    load_profile(next(iter(wanted)) if "use" not in wanted else None, drafts={file: changed})
    return changed


def _parse(file: Path, text: str) -> dict[str, Any]:
    """Parse the text of a file of profiles, with the errors of the profile loader."""
    list_profile_sources(drafts={file: text})
    return dict(read_yaml(file, {file: text}).data)


def _has_data(file: Path, text: str, expected: Mapping[str, Any]) -> bool:
    try:
        return _parse(file, text) == expected
    except ProfileError:
        return False


@contextmanager
def _lock_files() -> Iterator[None]:
    """Let only one process at a time change files of profiles, and explain a file that cannot be written."""
    try:
        with lock_folder(config_folder()):
            yield
    except OSError as error:
        raise GooseLikeError(f"{config_folder()} cannot be changed: {error}; make it and its files writable") from error


def _is_own(source: YamlSource) -> bool:
    return source.file.is_relative_to(config_folder())


# --- profile edit


def edit_profile(name: str | None) -> None:
    """Open an editor at one of the person's own profiles, or at the start of `profiles.yaml`.

    Every error names the copy with the edit, if there is one.
    """
    file, line = _find_profile(name)
    editor = _find_editor()
    before = read_profiles_file(file)
    text = NEW_FILE if before is None else before
    copy = config_folder() / f".edit-{secrets.token_hex(4)}.yaml"  # next to the schema, which the text can name
    with _lock_files():
        _write(copy, text)
    try:
        edited = _edit_until_valid(editor, file, copy, line)
        if edited in (None, text):
            print("nothing was changed")
        else:
            print(f"saved: {replace_profiles_file(file, before, edited)}")
    except GooseLikeError as error:
        if copy.is_file() and copy.read_bytes() != text.encode():
            raise type(error)(f"{error}; your edit is in {copy}") from error
        copy.unlink(missing_ok=True)
        raise
    copy.unlink(missing_ok=True)


def _find_profile(name: str | None) -> tuple[Path, int]:
    file = get_profiles_file()
    try:
        sources = list_profile_sources()
    except ProfileError:  # profiles.yaml is broken: the person wants to repair it
        return file, 1
    if name is None:
        return file, 1
    source = next((source for source in sources if source.name == name), None)
    if source is None:
        raise ProfileError(describe_unknown_profile(name, [source.name for source in sources]))
    if not _is_own(source):
        raise ProfileError(
            f"the profile {name!r} belongs to an installed package; extend it with a profile of your own: "
            f"goose-like profile new {name}"
        )
    return source.file, read_yaml(file).find_lines((name,))[-1] if source.file == file else 1


def _edit_until_valid(editor: list[str], file: Path, copy: Path, line: int) -> str | None:
    """Return the text that the person wrote, or None if the person discards a text with errors."""
    while True:
        if code := _run_editor(editor, copy, line):
            raise GooseLikeError(f"the editor exited with code {code}; {file} is unchanged")
        edited = read_profiles_file(copy)
        if edited is None or (errors := find_errors(file, edited)) is None:
            return edited
        if not has_person():
            raise ProfileError(f"{errors}\n{file} is unchanged")
        print(f"goose-like: {errors}", file=sys.stderr)
        try:
            if not typer.confirm("edit again? (no discards the edit)", default=True, err=True):
                return None
        except typer.Abort:
            raise GooseLikeError(f"{file} is unchanged") from None
        line = int(match[1]) if (match := re.search(r", line (\d+)", errors)) else line


def _find_editor() -> list[str]:
    default = next((name for name in ("editor", "nano") if find_program(name, Path.cwd())), "vi")
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or default
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    program = find_program(words[0], Path.cwd()) if words else None
    if not program:
        raise UsageError(f"the editor {command!r} was not found; set VISUAL or EDITOR, such as EDITOR=nano")
    return [program, *words[1:]]


def _run_editor(editor: list[str], file: Path, line: int) -> int:
    """Open a file, at a line if the editor is known, and return the editor's exit code."""
    place = [f"+{line}"] if Path(editor[0]).name in _LINE_EDITORS else []
    # Ctrl-C belongs to the editor. A handler is not inherited by the editor, while SIG_IGN would be.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        return subprocess.run([*editor, *place, str(file)], check=False).returncode
    except OSError as error:
        raise GooseLikeError(f"the editor cannot be started: {error}; set VISUAL or EDITOR") from error
    finally:
        signal.signal(signal.SIGINT, before)
