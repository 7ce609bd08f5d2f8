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
        try:
            code = _get_exit_code(act)
        finally:
            for stream in filter(None, (sys.stdout, sys.stderr)):
                _flush(stream)
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        print(f"goose-like: {os.strerror(errno.ENOSPC)}; free some space and try again", file=sys.stderr)
        return 1
    return code


def _get_exit_code(act: Callable[[], int | None]) -> int:
    try:
        os.getcwd()
    except FileNotFoundError:
        print("goose-like: the current folder was deleted; cd to an existing folder", file=sys.stderr)
        return 2
    try:
        return act() or 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1 if end.code else 0
    except GooseLikeError as error:
        from goose_like.core.masking import mask_text  # imported here: a command without an error starts faster
        from goose_like.terminal.escape import escape_controls

        print(escape_controls(f"goose-like: {mask_text(str(error))}"), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has exited
        return 1


def _flush(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError as error:  # a reader that is gone must not make the interpreter fail at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if error.errno in _DISK_FULL:
            raise
