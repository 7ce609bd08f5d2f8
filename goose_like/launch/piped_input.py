"""Standard input as a part of the task: text through a pipe or from a file."""

import os
import select
import stat
import sys
import time

from goose_like.terminal.interaction import is_terminal

MAX_TASK_BYTES = 10_000_000
"""The largest text of a task: no model takes more."""
_WAIT_S = 3.0


def has_piped_text() -> bool:
    """Return whether somebody sends text through standard input unasked: `git diff | goose-like ...`.

    A pipe that stays silent is left out, because cron and CI leave pipes open that nobody writes to. So is a file of
    which another program has read a part: it belongs to a loop such as `while read line; do goose-like ...`.
    """
    if sys.stdin is None:
        return False
    descriptor = sys.stdin.fileno()
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return _is_unread(descriptor)
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return False
    if select.select([descriptor], [], [], _WAIT_S)[0]:
        return True
    _note("nothing came through standard input, so it is not read; to wait for it, add - to the task")
    return False


def read_standard_input(*, is_asked_for: bool) -> bytes:
    """Read standard input to its end. Say so if the end is long in coming, or if nobody asked for the text.

    Of a longer text than a task may have, the rest is left unread.
    """
    descriptor = sys.stdin.fileno()
    deadline = time.monotonic() + _WAIT_S
    must_warn = not is_terminal(sys.stdin)
    data = bytearray()
    while len(data) <= MAX_TASK_BYTES:
        left_s = max(0.0, deadline - time.monotonic())
        if must_warn and not select.select([descriptor], [], [], left_s)[0]:
            must_warn = False
            _note("waiting for the end of standard input; stop with Ctrl-C, or leave it out with </dev/null")
        chunk = os.read(descriptor, 1 << 20)
        if not chunk:
            break
        data += chunk
    is_added = 0 < len(data) <= MAX_TASK_BYTES
    if is_added and not is_asked_for:
        _note(f"standard input ({len(data):,} bytes) is added to the task; to leave it out: </dev/null")
    return bytes(data)


def _is_unread(descriptor: int) -> bool:
    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    if position == 0:
        return True
    if position < os.fstat(descriptor).st_size:
        _note(
            "standard input is not read, as another program has read a part of it; to read the rest, add - to the task"
        )
    return False


def _note(text: str) -> None:
    print(f"goose-like: {text}", file=sys.stderr)
