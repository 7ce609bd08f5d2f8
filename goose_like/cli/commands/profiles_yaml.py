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
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from goose_like.config.entry_points import list_names
from goose_like.config.paths import config_folder, lock_folder
from goose_like.config.profile import ToolkitChoice, build_profiles_schema
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
  # limits: {steps: 256}
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
    known = _get_first_by_name(list_profile_sources())
    if name in known and _is_own(known[name]):
        place = known[name].locate()
        raise ProfileError(f"there is a profile {name!r} already: {place}; edit it: goose-like profile edit {name}")
    if not base:
        base = name if name in known else "default"
    if base not in known:
        raise ProfileError(describe_unknown_profile(base, known))
    added: dict[str, Any] = {"extends": base}
    if name in list_names("goose_like.toolkit"):
        profile, _ = load_profile(base)
        if all(toolkit.name != name for toolkit in profile.toolkits):
            added["toolkits"] = [*map(_shorten_toolkit, profile.toolkits), name]
    return _change_file({name: added}, hints=_list_hints(added))


def _shorten_toolkit(toolkit: ToolkitChoice) -> Any:
    """Return a toolkit as a person writes it: its name, or a mapping if it has more keys."""
    entry = toolkit.model_dump(exclude_defaults=True)
    if entry.keys() == {"name"}:
        return toolkit.name
    return entry


def _list_hints(present: Collection[str]) -> str:
    """Return the hints about keys that a profile has not yet."""
    hints = ""
    for line in HINTS.splitlines(keepends=True):
        _, key, *_ = line.split()
        if key.strip(":") not in present:
            hints += line
    return hints


def _get_first_by_name(sources: Sequence[YamlSource]) -> dict[str, YamlSource]:
    """Return the profiles by name. Of several with one name, the first is used."""
    return {source.name: source for source in reversed(sources)}


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
    known = _get_first_by_name(sources)
    file = get_profiles_file()
    if name not in known:
        raise ProfileError(f"{file}: use: {describe_unknown_profile(name, known)}")
    before = read_profiles_file(file)
    source = known[name]
    models = {"processor": processor}
    if accelerator:
        models["accelerator"] = accelerator
    bases_are_shipped = _are_bases_shipped(sources, name)
    if not _is_own(source):
        values = {"extends": name, **models}
        if processor == "local" and name == "default" and bases_are_shipped:
            values = {"extends": "local"}
        return before, _draft_addition(file, before, {name: values})
    if source.error or not isinstance(source.data, Mapping | None):
        load_profile(name)  # raises the error with its place
    change = _plan_change(source.data or {}, models, bases_are_shipped=bases_are_shipped)
    if source.file == file:
        draft = _draft_change(file, before or "", name, change)
        if draft is not None:
            load_profile(name, drafts={file: draft})
            return before, draft
    raise ProfileError(f"{change.describe_removal()}add this to your profile {name!r} in {source.file}: {change}")


def _are_bases_shipped(sources: Sequence[YamlSource], name: str) -> bool:
    """Return whether nobody but the profile of this name replaces the shipped profiles `default` and `local`."""
    for source in sources:
        if source.name == name or source.name not in ("default", "local"):
            continue
        if source.is_project or _is_own(source):
            return False
    return True


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a profile: the `old` data, the values to set, and the keys to remove."""

    old: Mapping[str, Any]
    values: dict[str, str]
    removed: Sequence[str]

    def __str__(self) -> str:
        return " and ".join(f"`{key}: {value}`" for key, value in self.values.items())

    @property
    def new(self) -> dict[str, Any]:
        """The data after the change."""
        kept = {key: value for key, value in self.old.items() if key not in self.removed}
        return {**kept, **self.values}

    def describe_removal(self) -> str:
        """Return the words about keys to remove, which stand before those about values to add."""
        return "".join(f"remove `{key}` and " for key in self.removed if key in self.old)

    def edit(self, block: str) -> str:
        """Return the text of the profile after the change."""
        keys = "|".join(self.removed)
        block = re.sub(rf"(?m)^[ \t]+({keys}):[ \t]*[^\s{{#].*(\r?\n|\Z)", "", block)
        for key, value in reversed(self.values.items()):
            entry = format_document({key: value}).strip()
            if key in self.old:
                block = _replace_line(block, key, entry)
            else:
                block = _add_line(block, entry)
        return block


def _plan_change(old: Mapping[str, Any], models: Mapping[str, str], *, bases_are_shipped: bool) -> _Change:
    """Plan how a person's own profile gets other models.

    A profile that only extends a shipped one and names models extends the shipped profile that fits the new models.
    """
    processor = models["processor"]
    values = dict(models)
    if "accelerator" in old:
        values.setdefault("accelerator", processor)
    has_models_only = old.keys() <= {"extends", "processor", "accelerator"}
    extends_shipped = bases_are_shipped and old.get("extends") in ("default", "local")
    if not extends_shipped or not has_models_only:
        return _Change(old, values, ["provider"])
    if processor == "local":
        return _Change(old, {"extends": "local"}, ["provider", "processor", "accelerator"])
    return _Change(old, {"extends": "default", **values}, ["provider"])


def _draft_change(file: Path, text: str, name: str, change: _Change) -> str | None:
    """Return the text of the file with a change in a profile, or None if the profile is written in another form."""
    block = re.compile(rf"(?m)^{re.escape(name)}:[ \t]*(#.*)?(\r?\n|\Z)(([ \t]+.*|[ \t]*)(\r?\n|\Z))*")
    match = block.search(text)
    if not match:
        return None
    before = text[: match.start()]
    after = text[match.end() :]
    draft = before + change.edit(match[0]) + after
    expected = {**_parse(file, text), name: change.new}
    if not _has_data(file, draft, expected):
        return None
    return draft


def _replace_line(block: str, key: str, entry: str) -> str:
    """Return the text of a profile with another value of a key."""
    line = re.compile(rf"(?m)^([ \t]+){key}:[ \t]*[^\s{{#][^#\r\n]*?(?=[ \t]*(#.*)?\r?$)")
    return line.sub(lambda match: f"{match[1]}{entry}", block, count=1)


def _add_line(block: str, entry: str) -> str:
    """Return the text of a profile with one more line, below the first."""
    head, _, rest = block.partition("\n")
    match = re.search(r"(?m)^([ \t]+)[^\s#]", rest)
    indent = match[1] if match else "  "
    end = "\r\n" if head.endswith("\r") else "\n"
    return f"{head}\n{indent}{entry}{end}{rest}"


def find_errors(file: Path, text: str) -> str | None:
    """Return the errors that `text` would cause in a file of profiles, with line numbers, or None."""
    drafts = {file: text}
    try:
        sources = list_profile_sources(drafts=drafts)
    except ProfileError as error:
        return str(error)
    names = [source.name for source in sources if source.file == file]
    errors: dict[str, None] = {}  # each once, in this order
    for name in [*names, None]:
        try:
            load_profile(name, drafts=drafts)
        except ProfileError as error:
            for line in str(error).splitlines():
                if line.startswith(str(file)):  # errors in other files cannot be corrected here
                    errors[line] = None
    return "\n".join(errors) or None


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
    schema = resolve_path(config_folder() / _SCHEMA_NAME)
    write_file(schema, format_schema().encode())
    real = resolve_path(file)
    write_file(real, text.encode())
    return real


def format_schema() -> str:
    """Return the JSON Schema of profiles as text."""
    return json.dumps(build_profiles_schema(), indent=2) + "\n"


def _change_file(wanted: dict[str, Any], replaces: re.Pattern[str] | None = None, hints: str = "") -> Path:
    """Append data and comments to the file, or put the data where `replaces` matches."""
    file = get_profiles_file()
    with _lock_files():
        before = read_profiles_file(file)
        return _write(file, _draft_addition(file, before, wanted, replaces, hints))


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
        changed = text
        if text and not text.endswith("\n"):
            changed += end
        changed += end + added + end + hints.replace("\n", end)
    expected = {**_parse(file, text), **wanted}
    if not _has_data(file, changed, expected):
        entry = json.dumps(wanted)[1:-1]
        raise ProfileError(f"{file} has a form that cannot be changed automatically; add this by hand: {entry}")
    (name,) = wanted
    load_profile(None if name == "use" else name, drafts={file: changed})
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
    """Return the file and the line of a profile, or the start of `profiles.yaml`."""
    file = get_profiles_file()
    try:
        known = _get_first_by_name(list_profile_sources())
    except ProfileError:  # profiles.yaml is broken: the person wants to repair it
        return file, 1
    if name is None:
        return file, 1
    if name not in known:
        raise ProfileError(describe_unknown_profile(name, known))
    source = known[name]
    if not _is_own(source):
        raise ProfileError(
            f"the profile {name!r} belongs to an installed package; extend it with a profile of your own: "
            f"goose-like profile new {name}"
        )
    if source.file != file:
        return source.file, 1
    lines = read_yaml(file).find_lines((name,))
    return file, lines[-1]


def _edit_until_valid(editor: list[str], file: Path, copy: Path, line: int) -> str | None:
    """Return the text that the person wrote, or None if the person discards a text with errors."""
    while True:
        if code := _run_editor(editor, copy, line):
            raise GooseLikeError(f"the editor exited with code {code}; {file} is unchanged")
        edited = read_profiles_file(copy)
        if edited is None:
            return None
        errors = find_errors(file, edited)
        if errors is None:
            return edited
        if not has_person():
            raise ProfileError(f"{errors}\n{file} is unchanged")
        print(f"goose-like: {errors}", file=sys.stderr)
        try:
            if not typer.confirm("edit again? (no discards the edit)", default=True, err=True):
                return None
        except typer.Abort:
            raise GooseLikeError(f"{file} is unchanged") from None
        if match := re.search(r", line (\d+)", errors):
            line = int(match[1])


def _find_editor() -> list[str]:
    """Return the command that starts the person's editor."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _find_default_editor()
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    program = find_program(words[0], Path.cwd()) if words else None
    if not program:
        raise UsageError(f"the editor {command!r} was not found; set VISUAL or EDITOR, such as EDITOR=nano")
    return [program, *words[1:]]


def _find_default_editor() -> str:
    for name in ("editor", "nano"):
        if find_program(name, Path.cwd()):
            return name
    return "vi"


def _run_editor(editor: list[str], file: Path, line: int) -> int:
    """Open a file, at a line if the editor is known, and return the editor's exit code."""
    command = list(editor)
    if Path(editor[0]).name in _LINE_EDITORS:
        command.append(f"+{line}")
    command.append(str(file))
    # Ctrl-C belongs to the editor. A handler is not inherited by the editor, while SIG_IGN would be.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        return subprocess.run(command, check=False).returncode
    except OSError as error:
        raise GooseLikeError(f"the editor cannot be started: {error}; set VISUAL or EDITOR") from error
    finally:
        signal.signal(signal.SIGINT, before)
