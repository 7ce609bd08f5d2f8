"""Exit codes and error messages of every command."""

import errno
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import TextIO

from goose_like.core.errors import GooseLikeError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def run_guarded(act: Callable[[], int | None]) -> int:
    """Run a command and return its exit code; print a GooseLikeError as one line."""
    if isinstance(sys.stdout, TextIOWrapper):  # None if it was closed at start
        sys.stdout.reconfigure(errors="backslashreplace")  # any locale can print any answer
    try:
        os.getcwd()
    except FileNotFoundError:
        print("goose-like: the current folder was deleted; cd to an existing folder", file=sys.stderr)
        return 2
    is_lost = False
    try:
        code = _get_exit_code(act)
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        is_lost = True
    finally:
        is_lost |= _flush_loses_output(sys.stdout) | _flush_loses_output(sys.stderr)
    if not is_lost:
        return code
    print(f"goose-like: {os.strerror(errno.ENOSPC)}; free some space and try again", file=sys.stderr)
    return 1


def _get_exit_code(act: Callable[[], int | None]) -> int:
    try:
        return act() or 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1 if end.code else 0
    except GooseLikeError as error:
        print(f"goose-like: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has exited
        return 1


def _flush_loses_output(stream: TextIO | None) -> bool:
    """Flush a stream; return whether a full disk prevented this."""
    try:
        if stream:
            stream.flush()
    except OSError as error:  # a reader that is gone must not make the interpreter fail at exit
        assert stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error.errno in _DISK_FULL
    return False
