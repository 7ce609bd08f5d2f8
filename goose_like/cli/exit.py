"""Around every command: a failure of ours is one line on stderr, and an exit code that tells the truth."""

import errno
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import TextIO

from goose_like.core.errors import GooseLikeError

_FULL = (errno.ENOSPC, errno.EDQUOT)


def guarded(act: Callable[[], int | None]) -> int:
    """The exit code of what is done: its own, that of `sys.exit`, or of the error that it ended with."""
    if isinstance(sys.stdout, TextIOWrapper):  # none where it was closed before we began
        sys.stdout.reconfigure(errors="backslashreplace")  # no answer is lost to a locale
    try:
        os.getcwd()
    except FileNotFoundError:
        print("goose-like: the current folder is gone; cd into one that is there", file=sys.stderr)
        return 2
    is_lost = False
    try:
        code = _ended(act)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        is_lost = True
    finally:
        is_lost |= _is_lost(sys.stdout) | _is_lost(sys.stderr)
    if not is_lost:
        return code
    print(f"goose-like: {os.strerror(errno.ENOSPC)}: nothing more can be written; make room", file=sys.stderr)
    return 1


def _ended(act: Callable[[], int | None]) -> int:
    try:
        return act() or 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1 if end.code else 0
    except GooseLikeError as error:
        print(f"goose-like: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of a list has left
        return 1


def _is_lost(stream: TextIO | None) -> bool:
    """Writes what is still to be written; whether a full disk kept it from that."""
    try:
        if stream:
            stream.flush()
    except OSError as error:  # else who should have read it is gone: the interpreter must not fail for it
        assert stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error.errno in _FULL
    return False
