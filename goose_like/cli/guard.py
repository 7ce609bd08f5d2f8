"""Around every command: a failure of ours is one line on stderr, and an exit code that tells the truth."""

import errno
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper

from ..errors import GooseLikeError


def guarded(act: Callable[[], int | None]) -> int:
    """The exit code of what is done: its own, that of `sys.exit`, or of the error that it ended with."""
    if isinstance(sys.stdout, TextIOWrapper):  # none where it was closed before we began
        sys.stdout.reconfigure(errors="backslashreplace")  # no answer is lost to a locale
    try:
        os.getcwd()
    except FileNotFoundError:
        print("goose-like: the current folder is gone; cd into one that is there", file=sys.stderr)
        return 2
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
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"goose-like: {error.strerror}: nothing more can be written; make room", file=sys.stderr)
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, AttributeError):  # who should have read it is gone: the interpreter must not fail for it
                if stream:
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
