"""The work of `profile edit`: the person's editor on a copy, which replaces the file only if it has no errors."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import typer

from goose_like.config.paths import config_folder
from goose_like.config.profile_loader import describe_unknown_profile, get_profiles_file, list_profile_sources
from goose_like.core.errors import GooseLikeError, ProfileError, UsageError
from goose_like.terminal.interaction import has_person

from .profiles_yaml import NEW_FILE, find_errors, is_own_profile, read_profiles_file, replace_profiles_file

_LINE_ARGUMENTS = {
    "+{line} {file}": ("vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "mg"),
    "{file}:{line}": ("hx", "subl", "zed"),
    "--wait --goto {file}:{line}": ("code", "codium", "cursor"),
}
"""Arguments that open an editor at a line; other editors get only the file."""


def edit_profile(name: str | None) -> None:
    """Open an editor at one of the person's own profiles, or at the start of `profiles.yaml`.

    Raises:
        ProfileError: The profile does not exist or belongs to a package, or the edit has errors.
        GooseLikeError: The editor failed, or the file has changed meanwhile. The message names the copy with the edit.
    """
    file, line = _find_profile(name)
    editor = _find_editor()
    before = read_profiles_file(file)
    text = NEW_FILE if before is None else before
    copy = _make_copy(text)
    saved = f"your edit is in {copy}"
    while True:
        code = _run_editor(editor, copy, line)
        edited = _read_edit(copy)
        if edited is None or edited == text:
            copy.unlink(missing_ok=True)
            if code:
                raise GooseLikeError(f"the editor exited with code {code}; nothing was changed")
            print("nothing was changed")
            return
        if code:
            raise GooseLikeError(f"the editor exited with code {code}; {file} is unchanged, and {saved}")
        errors = find_errors(file, edited)
        if errors is None:
            break
        if not has_person():
            raise ProfileError(f"{errors}\n{file} is unchanged; {saved}")
        print(f"goose-like: {errors}", file=sys.stderr)
        try:
            if not typer.confirm("edit again? (no discards the edit)", default=True, err=True):
                copy.unlink(missing_ok=True)
                print(f"edit discarded; {file} is unchanged")
                return
        except typer.Abort:
            raise GooseLikeError(f"{file} is unchanged, and {saved}") from None
        line = int(match[1]) if (match := re.search(r", line (\d+)", errors)) else line
    try:
        print(f"saved: {replace_profiles_file(file, before, edited)}")
    except GooseLikeError as error:
        raise GooseLikeError(f"{error}; {saved}") from error
    copy.unlink(missing_ok=True)


def _find_profile(name: str | None) -> tuple[Path, int]:
    """Return the file of a profile and the line where the profile begins."""
    try:
        sources = list_profile_sources()
    except ProfileError:  # profiles.yaml is broken: the person wants to repair it
        return get_profiles_file(), 1
    if name is None:
        return get_profiles_file(), 1
    source = next((source for source in sources if source.name == name), None)
    if source is None:
        raise ProfileError(describe_unknown_profile(name, [source.name for source in sources]))
    if not is_own_profile(source.file):
        raise ProfileError(
            f"the profile {name!r} belongs to an installed package; extend it with a profile of your own: "
            f"goose-like profile new {name}"
        )
    key = re.compile(rf"['\"]?{re.escape(name)}['\"]?\s*:")
    lines = (read_profiles_file(source.file) or "").splitlines() if source.file == get_profiles_file() else []
    return source.file, next((number for number, line in enumerate(lines, 1) if key.match(line)), 1)


def _make_copy(text: str) -> Path:
    """Write text to a file next to the schema, which the text can name, under a name that is not a profile's."""
    try:
        config_folder().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GooseLikeError(f"{config_folder()} cannot be used: {error}") from error
    descriptor, name = tempfile.mkstemp(prefix=".edit-", suffix=".yaml", dir=config_folder())
    with open(descriptor, "wb") as file:
        file.write(text.encode())
    return Path(name)


def _read_edit(copy: Path) -> str | None:
    try:
        return read_profiles_file(copy)
    except ProfileError as error:
        raise ProfileError(f"{error}; nothing was saved") from None


def _find_editor() -> list[str]:
    """Return the command of the person's editor."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not command:
        command = next((name for name in ("editor", "nano", "vi") if shutil.which(name)), None)
        if not command:
            raise UsageError("no editor was found; set VISUAL or EDITOR, such as EDITOR=nano")
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words or not shutil.which(words[0]):
        raise UsageError(f"the editor {command!r} was not found; set VISUAL or EDITOR")
    return words


def _run_editor(editor: list[str], file: Path, line: int) -> int:
    """Open a file at a line, if the editor is known, and return the editor's exit code."""
    name = Path(editor[0]).name
    form = next((form for form, editors in _LINE_ARGUMENTS.items() if name in editors), "{file}")
    # Ctrl-C belongs to the editor. A handler is not inherited by the editor, while SIG_IGN would be.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        words = [word.format(file=file, line=line) for word in form.split()]
        return subprocess.run([*editor, *words], check=False).returncode
    except OSError as error:
        print(f"goose-like: {error}", file=sys.stderr)
        return 126  # the exit code of a shell for a command that cannot run
    finally:
        signal.signal(signal.SIGINT, before)
