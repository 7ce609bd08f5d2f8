"""The program that gives up the rights to all paths but those named, and then runs a command. See landlock(7).

It runs as `python -I -S landlock_start.py RIGHT=PATH... -- COMMAND...`.
"""

import ctypes
import os
import struct
import sys
from contextlib import suppress

# System calls, equal on every machine.
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38  # prctl(2)

# Bits of LANDLOCK_ACCESS_FS: rights to files, and all rights by version.
_EXECUTE = 1
_WRITE_FILE = 2
_READ_FILE = 4
_READ_DIR = 8
_TRUNCATE = 1 << 14
_IOCTL = 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_ALL_RIGHTS = (1 << 15) - 1
_ALL_RIGHTS_FROM_5 = (1 << 16) - 1
_SCOPES_FROM_6 = 3  # no abstract sockets of others, and no signals to others
_RIGHTS = {"read": _EXECUTE | _READ_FILE | _READ_DIR, "list": _READ_DIR, "write": _ALL_RIGHTS_FROM_5}


def read_version() -> int:
    """Read the version of Landlock; -1 if the kernel has none."""
    if sys.platform != "linux":
        return -1
    version = _libc().syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)
    return int(version)


def restrict(words: list[str]) -> None:
    """Give up all rights but those of the words. Paths that do not exist are left out. Raise OSError on failure."""
    libc = _libc()

    def call(number: int, *arguments: object) -> int:
        result = libc.syscall(number, *arguments)
        if result < 0:
            raise OSError(ctypes.get_errno(), "Landlock cannot confine commands here")
        return int(result)

    version = read_version()
    handled = _ALL_RIGHTS_FROM_5 if version >= 5 else _ALL_RIGHTS
    attributes = struct.pack("Q", handled)
    if version >= 6:
        attributes += struct.pack("QQ", 0, _SCOPES_FROM_6)
    ruleset = call(_CREATE_RULESET, attributes, len(attributes), 0)
    for word in words:
        right, _, path = word.partition("=")
        with suppress(FileNotFoundError, PermissionError):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rights = _RIGHTS[right] & handled
            if not os.path.isdir(path):
                rights &= _FILE_RIGHTS
            rule = struct.pack("=Qi", rights, descriptor)
            call(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
            os.close(descriptor)
    libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


if __name__ == "__main__":
    cut = sys.argv.index("--")
    command = sys.argv[cut + 1 :]
    restrict(sys.argv[1:cut])
    os.execv(command[0], command)
