"""Files, reached only where the sandbox's rules let a command reach them: by real path, at the moment of use."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.workspace.undo.snapshot import open_folder

from .sandbox import Rule, Rules

_FOLLOW_NONE = os.O_NOFOLLOW | os.O_CLOEXEC


class Jail:
    """Reads and writes as `rules` say; without rules whatever the operating system allows."""

    def __init__(self, root: Path, rules: Rules | None) -> None:
        self._root = root
        self._rules = rules

    def real(self, path: str | Path) -> Path:
        """Where a path leads after all links, as the machine sees it: the sandbox's /tmp is a private folder."""
        try:
            place = Path(os.path.realpath(self._root / Path(path).expanduser()))
        except (ValueError, RuntimeError) as error:
            raise GooseLikeError(f"{str(path)!r} is no path: {error}") from error
        for _ in range(8 if self._rules else 0):  # a link in the private folder may lead to /tmp again
            before, place = place, self._on_this_side(place)
            if place == before:
                break
        return place

    def rule(self, place: Path) -> Rule:
        """What may be done with a real path. Hooks and settings of any repository are protected."""
        if self._rules is None:
            return "write"
        rule = self._rules.of(place)
        parts = place.parts
        in_git = parts[parts.index(".git") + 1 :] if ".git" in parts else None
        is_run_by_git = in_git == () or (
            in_git is not None and ("hooks" in in_git or in_git[-1] in ("config", "config.worktree", "commondir"))
        )
        return "protected" if is_run_by_git and rule in ("write", "pin") else rule

    def read_bytes(self, path: str | Path, limit_bytes: int | None = None) -> bytes:
        """The file's bytes.

        Raises:
            FileNotFoundError, OSError: as the operating system says.
            DeniedError: the file is a secret.
            GooseLikeError: a folder, a device or a pipe, or more than `limit_bytes`.
        """
        place = self.real(path)
        self._refuse_hidden(path, place)
        # Without O_NONBLOCK the opening of a pipe would wait for a writer.
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            self._refuse_hidden(path, Path(os.readlink(f"/proc/self/fd/{descriptor}")))  # a link may have come since
            status = os.fstat(descriptor)
            _refuse_no_file(path, status.st_mode)
            if limit_bytes is not None and status.st_size > limit_bytes:
                raise GooseLikeError(
                    f"{path} has {status.st_size:,} bytes, more than {limit_bytes:,}; "
                    "take a smaller one, or look at a part of it"
                )
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)

    def names(self, path: str | Path) -> list[str]:
        """What stands in a folder, sorted; the names of folders end with a slash.

        Raises:
            NotADirectoryError, OSError: as the operating system says.
            DeniedError: the folder is a secret.
        """
        place = self.real(path)
        self._refuse_hidden(path, place)
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._refuse_hidden(path, Path(os.readlink(f"/proc/self/fd/{folder}")))
            with os.scandir(folder) as entries:
                return sorted(entry.name + "/" * entry.is_dir(follow_symlinks=False) for entry in entries)
        finally:
            os.close(folder)

    def write_bytes(self, place: Path, data: bytes) -> None:
        """Puts a whole file at a real path, at once or not at all; makes folders, keeps mode and owner.

        Follows no link on the way: whoever put one there after the path was checked gets an error, not a file.
        """
        folder = open_folder(place.parent)
        try:
            old = None
            with suppress(FileNotFoundError):
                old = os.stat(place.name, dir_fd=folder, follow_symlinks=False)
                _refuse_no_file(place, old.st_mode)
            temporary = f".{place.name[:80]}.{secrets.token_hex(6)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FOLLOW_NONE
            try:
                with open(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
                    file.write(data)
                    if old is not None:
                        with suppress(PermissionError):
                            os.fchown(file.fileno(), old.st_uid, old.st_gid)
                        os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
                os.rename(temporary, place.name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
                raise
        finally:
            os.close(folder)

    def append_bytes(self, place: Path, data: bytes) -> None:
        """Adds to the end of the file at a real path, in one write; makes it and its folders, follows no link."""
        folder = open_folder(place.parent)
        try:
            with suppress(FileNotFoundError):  # before it is opened: that would wait for the reader of a pipe
                _refuse_no_file(place, os.stat(place.name, dir_fd=folder, follow_symlinks=False).st_mode)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | _FOLLOW_NONE
            with open(os.open(place.name, flags, 0o666, dir_fd=folder), "wb", buffering=0) as file:
                if (written := file.write(data)) != len(data):
                    raise GooseLikeError(f"{place} took {written:,} of {len(data):,} bytes; free some space")
        finally:
            os.close(folder)

    def _on_this_side(self, place: Path) -> Path:
        return Path(os.path.realpath(self._rules.on_this_side(place))) if self._rules else place

    def _refuse_hidden(self, path: str | Path, place: Path) -> None:
        # `tmp` is here what the machine itself has below /tmp, which is not ours to see.
        if self.rule(place) in ("hidden", "tmp"):
            raise DeniedError(f"{path} is hidden from you: it may hold secrets; work without it")


def _refuse_no_file(path: str | Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise GooseLikeError(f"{path} is a folder; see what is in it with `ls` or `rg --files` in the shell")
    if not stat.S_ISREG(mode):
        raise GooseLikeError(f"{path} is a device, pipe or socket, no file")
