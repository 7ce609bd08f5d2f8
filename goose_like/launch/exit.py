"""Exit codes and error messages of every command."""

import atexit
import errno
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from io import TextIOWrapper, UnsupportedOperation
from typing import Any, NoReturn, TextIO, cast

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
        finally:  # not at the exit of the interpreter, where an error would be a traceback
            for stream in (sys.stdout, sys.stderr):
                _flush(stream)
    except OSError as error:
        if error.errno not in _WRITE_ERRORS:
            raise
        print(f"goose-like: {_WRITE_ERRORS[error.errno]}", file=sys.stderr)
        return 1
    return code


def leave(code: int) -> NoReturn:
    """End the process with an exit code, at once if no other thread works any more.

    Python would free each object first, which takes longer than the rest of the way out.
    """
    if threading.active_count() == 1:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        os._exit(code)
    sys.exit(code)


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


def run_async(work: Coroutine[Any, Any, int]) -> int:
    """Run work in a new event loop, and return its exit code. Standard output is kept for answers."""
    import asyncio  # imported here: `--version` needs none of this

    from goose_like.config.private_folder import remove_abandoned_folders

    remove_abandoned_folders()
    with keep_stdout():
        return asyncio.run(work)


def _replace_closed_streams() -> None:
    """Replace each closed standard stream by /dev/null, so that no other file gets its number and its output.

    Output for a closed standard output is an error: the null device is opened for reading, and a write fails.
    """
    if sys.stdin is None:
        sys.stdin = _open_null(os.O_RDONLY, "r")
    if sys.stdout is None:
        sys.stdout = _open_null(os.O_RDONLY, "w")
    if sys.stderr is None:
        sys.stderr = _open_null(os.O_WRONLY, "w")


def _open_null(flags: int, mode: str) -> TextIO:
    descriptor = os.open(os.devnull, flags)
    return cast(TextIO, open(descriptor, mode, encoding="utf-8"))


def _get_exit_code(act: Callable[[], int | None]) -> int:
    try:
        os.getcwd()
    except FileNotFoundError:
        print("goose-like: the current folder was deleted; cd to an existing folder", file=sys.stderr)
        return 2
    try:
        return act() or 0
    except SystemExit as end:
        if isinstance(end.code, int):
            return end.code
        return 1 if end.code else 0
    except GooseLikeError as error:
        from goose_like.core.masking import mask_text  # imported here: a command without an error starts faster
        from goose_like.terminal.escape import escape_controls

        print(escape_controls(f"goose-like: {mask_text(str(error))}"), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has exited
        return 1
    except OSError as error:
        advice = _advise(error)
        if error.errno in _WRITE_ERRORS or not advice:
            raise
        print(f"goose-like: cannot use {error.filename}: {error.strerror}; {advice}", file=sys.stderr)
        return 1


def _advise(error: OSError) -> str:
    """Return the next step after an error about goose_like's own folders or a folder above; else an empty text."""
    from pathlib import Path  # imported here: `--version` needs no paths

    from goose_like.config.paths import FOLDER_ADVICE, cache_folder, config_folder, state_folder

    path = Path(str(error.filename))
    for folder in (config_folder(), state_folder(), cache_folder()):
        if path.is_relative_to(folder) or path in folder.parents:
            return FOLDER_ADVICE
    return ""


def _flush(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError as error:  # a reader that is gone must not make the interpreter fail at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if error.errno in _WRITE_ERRORS:
            raise
