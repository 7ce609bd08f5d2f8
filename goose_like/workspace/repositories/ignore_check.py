"""A running `git check-ignore`, which tells at once whether git ignores a new file: to start git takes longer."""

import os
import select
import time
from collections.abc import Callable, Collection, Mapping

from goose_like.workspace.programs import GIT_OPTIONS

_LIMIT_S = 0.3
"""After this, only the look at all files tells."""
_LIMIT_BYTES = 32 << 10
"""More might not fit into a pipe."""
_READ_BYTES = 1 << 16
_OUTPUT = 3
_COMMAND = ("sh", "-c", f'exec "$@" 2>/dev/null >&{_OUTPUT}', "sh", "git", "--no-optional-locks", *GIT_OPTIONS, "-C")
_CHECK = ("check-ignore", "--stdin", "--verbose", "--non-matching", "-z")
_FIELDS = 4  # of each answer: the file of the rule, its line, the rule, and the path

Serve = Callable[[list[str], Mapping[int, int]], None]
"""Starts a command that runs until its input ends, with these descriptors by their numbers there, and closes them."""


class IgnoreCheck:
    """Asks git which new files below a folder it ignores.

    Git knows its rules as they were at the start of the process, so call `stop` when they may have changed. The first
    question starts the process, and gets no answer.
    """

    def __init__(self, root: str, serve: Serve, limit_s: float = _LIMIT_S) -> None:
        """Prepare a check without any work. Each question waits for `limit_s` at most."""
        self._root = root
        self._serve = serve
        self._limit_s = limit_s
        self._pipes: tuple[int, int] | None = None
        self._is_used = False

    def find_ignored(self, paths: Collection[str]) -> frozenset[str] | None:
        """Find those of the paths that git ignores; None if it gives no answer soon.

        A path in a repository below the folder gets no answer.
        """
        if any(map(self._is_in_other_repository, paths)):
            return None
        asked = [self._root, *paths]
        question = b"".join(os.fsencode(path) + b"\0" for path in asked)
        if len(question) > _LIMIT_BYTES:
            return None
        self._is_used = True
        if self._pipes is None:
            self._start()
            return None
        try:
            answer = self._ask(question, len(asked))
        except OSError:
            self.stop()
            return None
        ignored = set()
        for rule, path in zip(answer[2::_FIELDS], answer[3::_FIELDS], strict=True):
            # A rule that begins with `!` says that git does not ignore the path.
            if rule and not rule.startswith(b"!"):
                ignored.add(os.fsdecode(path))
        if self._root in ignored:  # then all files below it count
            return None
        return frozenset(ignored)

    def prepare(self) -> None:
        """Start the process for the next question, if there was ever one."""
        if self._is_used and self._pipes is None:
            self._start()

    def stop(self) -> None:
        """End the process by the end of its input."""
        _close(self._pipes or ())
        self._pipes = None

    def _is_in_other_repository(self, path: str) -> bool:
        folder = os.path.dirname(path)
        while folder.startswith(f"{self._root}/"):
            if os.path.lexists(f"{folder}/.git"):
                return True
            folder = os.path.dirname(folder)
        return False

    def _start(self) -> None:
        """Start the process. Without free descriptors there is none, and no answer."""
        opened: list[int] = []
        try:
            opened += os.pipe()
            opened += os.pipe()
        except OSError:
            _close(opened)
            return
        their_input, our_output, our_input, their_output = opened
        os.set_blocking(our_output, False)  # a pipe may be so small that git would wait for us too
        self._pipes = (our_output, our_input)
        self._serve([*_COMMAND, self._root, *_CHECK], {0: their_input, _OUTPUT: their_output})

    def _ask(self, question: bytes, count: int) -> list[bytes]:
        """Return the fields of the answers. Raise OSError if they do not come."""
        assert self._pipes
        our_output, our_input = self._pipes
        if os.write(our_output, question) < len(question):
            raise BlockingIOError("the question does not fit into the pipe")
        poll = select.poll()
        poll.register(our_input, select.POLLIN)
        until_s = time.monotonic() + self._limit_s
        answer = b""
        while answer.count(b"\0") < count * _FIELDS:
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not poll.poll(left_s * 1000):
                raise TimeoutError("git does not answer")
            part = os.read(our_input, _READ_BYTES)
            if not part:
                raise BrokenPipeError("git has ended")
            answer += part
        return answer.split(b"\0")[:-1]


def _close(descriptors: Collection[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
