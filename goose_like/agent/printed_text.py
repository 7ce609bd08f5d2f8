"""Text that toolkits print: shown as notes, because standard output and the screen belong to the front-end."""

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import Context
from io import RawIOBase, TextIOWrapper
from typing import Any

from typing_extensions import override

from goose_like.core.notifier import Notifier


@contextmanager
def redirect_prints(notifier: Notifier) -> Iterator[None]:
    """Log what Python code prints, from any thread. The output of child processes is not logged."""
    sink = _LogSink(notifier)
    file = TextIOWrapper(sink, "utf-8", errors="backslashreplace", write_through=True)  # type: ignore[type-var]
    with redirect_stdout(file):
        yield
    sink.log_rest()


class _LogSink(RawIOBase):
    """A binary file that logs what is written to it, in whole lines."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier
        self._rest = b""

    @override
    def writable(self) -> bool:
        return True

    @override
    def write(self, data: Any) -> int:
        text = self._rest + bytes(data)
        lines, end, self._rest = text.rpartition(b"\n")
        if end:
            self._log(lines)
        return len(data)

    def log_rest(self) -> None:
        """Log the last line, which has no end."""
        rest = self._rest
        self._rest = b""
        if rest:
            self._log(rest)

    def _log(self, lines: bytes) -> None:
        # In a context of its own, since what is printed while a call of a subagent runs belongs to no call of ours.
        Context().run(self._notifier.log, lines.decode(errors="replace"))
