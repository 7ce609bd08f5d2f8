"""The state of files on disk that were read and checked: a start that finds it unchanged does not do so again.

As in git's index, the state holds the size, the number and the times of each file. A program can set back the time of
the last write, but not that of the last change of any kind (`st_ctime`). The texts in use are always those that the
person trusted, so even a change that the state does not show gives the changed text no effect.
"""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from struct import Struct

from .paths import read_user_file, replace_private_file, state_folder

_FILE = "trusted-files.json"
_MAX_ROOTS = 1_000
_NUMBERS = Struct("QQQQq")
"""The numbers of a status. Written as text, they took three times as long."""
_MASK = 2**64 - 1
SETTLED_NS = 2_000_000_000
"""A file that changed later than this may change again without another time: that of FAT counts in two seconds."""


def describe_state(files: Mapping[str, os.stat_result]) -> str:
    """Return a hash of the state of files by their paths, or an empty text if one of them changed a moment ago."""
    settled_ns = time.time_ns() - SETTLED_NS
    pack = _NUMBERS.pack
    paths = "\0".join(files)
    parts = [paths.encode(errors="surrogateescape")]
    for status in files.values():
        changed_ns = status.st_ctime_ns
        if changed_ns > settled_ns:
            return ""
        written_ns = status.st_mtime_ns & _MASK  # anybody may set it, to the year 2300 too
        parts.append(pack(status.st_mode, status.st_ino, status.st_size, written_ns, changed_ns))
    return sha256(b"\0".join(parts)).hexdigest()


def find_state(place: Path) -> str:
    """Return the state in which a file was right, or the files of a project the trusted ones, or an empty text."""
    return _load_states().get(str(place), "")


def keep_state(place: Path, state: str) -> None:
    """Keep the state in which a file was right, or the files of a project the trusted ones, if there is room for it."""
    states = _load_states()
    if states.pop(str(place), "") == state:
        return
    states[str(place)] = state
    newest = list(states.items())[-_MAX_ROOTS:]
    with suppress(OSError):
        replace_private_file(_get_file(), json.dumps(dict(newest)))


def _load_states() -> dict[str, str]:
    with suppress(OSError, ValueError):  # there are none yet, or the disk was full
        states = json.loads(read_user_file(_get_file()))
        if isinstance(states, dict):
            return states
    return {}


def _get_file() -> Path:
    return state_folder() / _FILE
