"""The file of earlier inputs, and the terminal that the prompt writes to."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self, cast

from prompt_toolkit.history import FileHistory
from prompt_toolkit.output.vt100 import Vt100_Output
from typing_extensions import override


class InputHistory(FileHistory):
    """Earlier inputs in a private file. Without write access they are forgotten with the session.

    New inputs wait until `save` is called, because their secrets cannot be masked before.
    """

    def __init__(self, filename: str) -> None:
        super().__init__(filename)
        self._waiting: list[str] = []
        self._mask: Callable[[str], str] | None = None

    def save(self, mask: Callable[[str], str]) -> None:
        """Save the inputs so far and all later ones, as `mask` returns them."""
        self._mask = mask
        waiting = self._waiting
        self._waiting = []
        for text in waiting:
            self.store_string(text)

    @override
    def store_string(self, string: str) -> None:
        if self._mask is None:
            self._waiting.append(string)
            return
        with suppress(OSError):
            descriptor = os.open(self.filename, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.close(descriptor)
            os.chmod(self.filename, 0o600)  # earlier versions let others read it
            super().store_string(self._mask(string))


class PromptOutput(Vt100_Output):
    """A terminal that can receive several changes in one write."""

    _is_held = False

    @classmethod
    def open(cls) -> Self:
        """Open the terminal of standard error."""
        output = cls.from_pty(sys.stderr, os.environ.get("TERM"))
        output.enable_cpr = False  # the answers to cursor position requests would mix with typed keys
        return cast(Self, output)

    @contextmanager
    def hold_writes(self) -> Iterator[None]:
        """Write everything of this block at its end."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
            self.flush()

    @override
    def flush(self) -> None:
        if not self._is_held:
            with suppress(OSError):  # the terminal is gone: SIGHUP ends the session
                super().flush()
