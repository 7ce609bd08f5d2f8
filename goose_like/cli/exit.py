"""Exit codes and error messages of every command."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper, UnsupportedOperation
from typing import TextIO

from goose_like.core.errors import GooseLikeError

_FULL = f"{os.strerror(errno.ENOSPC)}; free some space and try again"
_WRITE_ERRORS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EBADF: "standard output is closed; redirect it, for example to /dev/null, and try again",
}


def run_guarded(act: Callable[[], int | None]) -> int:
    """Run a command and return its exit code; print a GooseLikeError as one line."""
    _replace_closed_streams()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # any locale can print any answer
    try:
        try:
            code = _get_exit_code(act)
        finally:
            for stream in (sys.stdout, sys.stderr):
                _flush(stream)
    except OSError as error:
        if error.errno not in _WRITE_ERRORS:
            raise
        print(f"goose-like: {_WRITE_ERRORS[error.errno]}", file=sys.stderr)
        return 1
    return code


@contextmanager
def keep_stdout() -> Iterator[None]:
    """Keep standard output for answers: child processes and C code of toolkits write to standard error instead."""
    original = sys.stdout
    original.flush()
    try:
        number = original.fileno()
    except UnsupportedOperation:  # a caller collects the output in memory
        yield
        return
    with open(os.dup(number), "w", encoding=original.encoding, errors=original.errors) as sys.stdout:
        os.dup2(sys.stderr.fileno(), number)
        try:
            yield
        finally:
            os.dup2(sys.stdout.fileno(), number)
            sys.stdout = original


def _replace_closed_streams() -> None:
    """Replace each closed standard stream by /dev/null, so that no other file gets its number and its output.

    Output that is lost with standard output is an error. Nobody would read one about standard error.
    """
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            setattr(sys, name, open(descriptor, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115 (open until the end)


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
        if error.errno in _WRITE_ERRORS:
            raise
