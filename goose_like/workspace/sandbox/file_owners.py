"""Workspaces of other users: commands of root get a user namespace in which root may change their files.

Bubblewrap's own namespace knows root alone, so that even root could not write the files of others, such as a folder
that was mounted into a container.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from goose_like.core.dataclass import dataclass

CAPABILITIES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER")
"""What root may do with files. In the namespace, they hold for the files of its users and groups alone."""

CLOSED_FILES_ADVICE = (
    "commands cannot change the files of other users here, not even as root: change them with the other tools, or tell "
    "the person, who can change their owner or use --sandbox full"
)

_MAX_IDS = 100  # the kernel takes 340 lines
_PROGRAM = "import ctypes, sys; print(ctypes.CDLL(None).unshare(0x10000000), flush=True); sys.stdin.read()"


@dataclass(frozen=True, slots=True)
class FileOwners:
    """The users and groups of files in a workspace, with root."""

    users: frozenset[int]
    groups: frozenset[int]


def find_file_owners(folders: Iterable[Path]) -> FileOwners | None:
    """Find the owners of folders and their entries. Return None if root owns all, or for another user than root."""
    if os.getuid() != 0 or sys.platform != "linux":
        return None
    users = {0}
    groups = {0, os.getgid()}
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            found = [os.stat(folder)]
            found += [entry.stat(follow_symlinks=False) for entry in entries]
            for status in found:
                users.add(status.st_uid)
                groups.add(status.st_gid)
    if users == {0} or len(users) > _MAX_IDS or len(groups) > _MAX_IDS:
        return None
    return FileOwners(frozenset(users), frozenset(groups))


def open_user_namespace(owners: FileOwners) -> int:
    """Create a user namespace with these users and groups, and return its descriptor. Raise OSError if denied."""
    line = [sys.executable, "-I", "-S", "-c", _PROGRAM]
    holder = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}, cwd="/")
    with holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        if holder.stdout.readline().strip() != b"0":
            raise OSError("the kernel denies a user namespace")
        process = Path("/proc", str(holder.pid))
        (process / "uid_map").write_text(_format_map(owners.users))
        (process / "gid_map").write_text(_format_map(owners.groups))
        return os.open(process / "ns/user", os.O_RDONLY | os.O_CLOEXEC)


def find_owner_problem(folder: Path) -> str | None:
    """Return the reason why commands of root cannot change the files of others in a folder; None if they can."""
    owners = find_file_owners([folder])
    if owners is None:
        return None
    try:
        os.close(open_user_namespace(owners))
    except OSError as error:
        return f"commands cannot change the files of other users in {folder}: {error.strerror or error}"
    return None


def _format_map(numbers: Iterable[int]) -> str:
    lines = [f"{number} {number} 1\n" for number in sorted(numbers)]
    return "".join(lines)
