"""`profile edit`: the person's editor on a copy, which takes the file's place when nothing is wrong with it."""

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
from goose_like.config.profile import own_file, sources, unknown
from goose_like.core.errors import GooseLikeError, ProfileError, UsageError
from goose_like.terminal.interaction import has_person

from .profile_editor import NEW_FILE, fault_in, is_own, read, replace

_AT_LINE = {
    "+{line} {file}": ("vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "mg"),
    "{file}:{line}": ("hx", "subl", "zed"),
    "--wait --goto {file}:{line}": ("code", "codium", "cursor"),
}
"""How an editor is told the line; others are given the file alone."""


def edit_profile(name: str | None) -> None:
    """Edits the file that a profile of the person's is in, at its line; without a name `profiles.yaml`.

    Raises:
        ProfileError: no such profile, one of a package, or a bad edit and nobody there to mend it.
        GooseLikeError: the editor failed, or the file was changed meanwhile; the copy is kept and named.
    """
    file, line = _where(name)
    editor = _editor()
    before = read(file)
    text = NEW_FILE if before is None else before
    descriptor, copy_name = tempfile.mkstemp(prefix=".edit-", suffix=".yaml", dir=_folder())
    copy = Path(copy_name)
    with open(descriptor, "wb") as new:
        new.write(text.encode())
    kept = f"what you wrote is in {copy}"
    while True:
        code = _edit(editor, copy, line)
        try:
            edited = read(copy)
        except ProfileError as error:
            raise ProfileError(f"{error}; nothing was saved") from None
        if edited is None or edited == text:
            copy.unlink(missing_ok=True)
            if code:
                raise GooseLikeError(f"the editor ended with {code}; nothing was changed")
            print("nothing was changed")
            return
        if code:
            raise GooseLikeError(f"the editor ended with {code}; {file} is as it was, and {kept}")
        fault = fault_in(file, edited)
        if fault is None:
            break
        if not has_person():
            raise ProfileError(f"{fault}\n{file} is as it was; {kept}")
        print(f"goose-like: {fault}", file=sys.stderr)
        try:
            if not typer.confirm("edit again? (no drops this edit)", default=True, err=True):
                copy.unlink(missing_ok=True)
                print(f"dropped; {file} is as it was")
                return
        except typer.Abort:
            raise GooseLikeError(f"{file} is as it was, and {kept}") from None
        line = int(found[1]) if (found := re.search(r", line (\d+)", fault)) else line
    try:
        print(f"saved: {replace(file, before, edited)}")
    except GooseLikeError as error:
        raise GooseLikeError(f"{error}; {kept}") from error
    copy.unlink(missing_ok=True)


def _where(name: str | None) -> tuple[Path, int]:
    """The file of a profile, and its line there."""
    try:
        every = sources()
    except ProfileError:  # `profiles.yaml` is broken, which is why it is edited
        return own_file(), 1
    if name is None:
        return own_file(), 1
    source = next((source for source in every if source.name == name), None)
    if source is None:
        raise ProfileError(unknown(name, [source.name for source in every]))
    if not is_own(source.file):
        raise ProfileError(
            f"the profile {name!r} comes with an installed package; make one of your own that extends it: "
            f"goose-like profile new {name}"
        )
    key = re.compile(rf"['\"]?{re.escape(name)}['\"]?\s*:")
    lines = (read(source.file) or "").splitlines() if source.file == own_file() else []
    return source.file, next((number for number, line in enumerate(lines, 1) if key.match(line)), 1)


def _folder() -> Path:
    """Where the copy lies: beside the schema that its first line may name, and where no profiles are looked for."""
    try:
        config_folder().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GooseLikeError(f"{config_folder()} can't be used: {error}") from error
    return config_folder()


def _editor() -> list[str]:
    """The words that start the person's editor."""
    given = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not given:
        given = next((name for name in ("editor", "nano", "vi") if shutil.which(name)), None)
        if not given:
            raise UsageError("there is no editor; set VISUAL or EDITOR, e.g. EDITOR=nano")
    try:
        words = shlex.split(given)
    except ValueError:
        words = []
    if not words or not shutil.which(words[0]):
        raise UsageError(f"the editor {given!r} is not there; set VISUAL or EDITOR")
    return words


def _edit(editor: list[str], file: Path, line: int) -> int:
    """The exit code of the editor, opened at that line if we know how."""
    name = Path(editor[0]).name
    form = next((form for form, editors in _AT_LINE.items() if name in editors), "{file}")
    # Ctrl-C is the editor's own. A handler of ours is not inherited by it, as ignoring the signal would be.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        words = [word.format(file=file, line=line) for word in form.split()]
        return subprocess.run([*editor, *words], check=False).returncode
    except OSError as error:
        print(f"goose-like: {error}", file=sys.stderr)
        return 126  # as a shell has it
    finally:
        signal.signal(signal.SIGINT, before)
