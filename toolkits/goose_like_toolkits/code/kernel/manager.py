"""Notebook: cells one after another, in a kernel that is started when one is needed and anew when it has ended."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from goose_like.toolkit import ToolError, Workspace

from .cell import Cell
from .channels import Message
from .process import Kernel

INTERRUPT_GRACE_S = 4.0
_NAMES = 30
_MOST_NAMES = 2_000
_NAME_CHARACTERS = 100


class Notebook:
    """The kernel of a session, whichever it is. `names` are the variables that there are in it.

    `setup` gives the first message to a new kernel's desk, `changes` what one that has run before is told ahead of a
    cell; `hear` takes what the desk says.
    """

    def __init__(
        self,
        workspace: Workspace,
        python: str,
        setup: Callable[[], Message],
        changes: Callable[[], Sequence[Message]],
        hear: Callable[[Message], None],
        lost: Sequence[str] = (),
    ) -> None:
        """`lost` are the names that a kernel of this session had which is gone."""
        self.names: list[str] = []
        self.kernel: Kernel | None = None
        self._workspace = workspace
        self._python = python
        self._setup = setup
        self._changes = changes
        self._hear = hear
        self._lost = f"that of before is no more; {_gone(lost)}" if lost else ""
        self._settling: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    async def run(self, code: str, cell: Cell, timeout_s: float, first: Sequence[Message] = ()) -> list[str]:
        """Runs a cell; gives what else the model must know. Cancelling interrupts the cell, and keeps the kernel.

        `first` is told to the desk of a kernel that has run before.

        Raises:
            Stopped: the cell was ended by its time limit or with its kernel.
            ToolError, GooseLikeError: no kernel can be started.
        """
        if self._settling:
            await asyncio.shield(self._settling)
        former = self.kernel
        kernel = await self._alive()
        for message in [*self._changes(), *first] if kernel is former else ():
            kernel.tell(message)
        notes = [f"this is a new kernel, as {self._lost}"] if self._lost else []
        self._lost = ""
        done = await kernel.run(code, cell.take)
        try:
            why = await _stopped(kernel, done, cell, timeout_s)
        except asyncio.CancelledError:
            kernel.interrupt()
            self._settling = asyncio.create_task(self._settle(kernel, done))
            raise
        words = ""
        if not done.done():
            end = f"stopped, as {why}; it ignored that, so the kernel was ended too"
        elif how := done.result():
            words = kernel.last_words
            hint = ", perhaps for want of memory" if "SIGKILL" in how else ""
            end = f"the kernel died{f' when it was stopped, as {why}' if why else ''} ({how}{hint})"
        elif why:
            raise Stopped([*notes, f"stopped, as {why}; the kernel goes on, with its variables as they are"])
        else:
            return notes
        await self._dropped(kernel)
        raise Stopped([*notes, f"{end}; {_gone(self._taken())}; the next cell starts a new one"], words)

    def take(self, message: Message) -> None:
        """What the desk in the kernel says."""
        if message.get("type") == "names":
            names = [name for name in message["names"] if isinstance(name, str) and name.isidentifier()]
            self.names = [name[:_NAME_CHARACTERS] for name in names[:_MOST_NAMES]]
        else:
            self._hear(message)

    async def reset(self) -> list[str]:
        """Ends the kernel; gives the names that went with it."""
        if self._settling:
            await asyncio.shield(self._settling)
        names = self.names
        if self.kernel:
            await self._dropped(self.kernel)
        self.names, self._lost = [], ""
        return names

    async def close(self) -> None:
        """Leaves nothing running."""
        if self._settling:
            self._settling.cancel()
            await asyncio.wait({self._settling})
        if self.kernel:
            await self._dropped(self.kernel)
        elif self._ending:
            await self._ending

    async def _alive(self) -> Kernel:
        if self.kernel and self.kernel.end:
            how = self.kernel.end
            await self._dropped(self.kernel)
            self._lost = f"the last one has ended ({how}); {_gone(self._taken())}"
        if self.kernel is None:
            self.kernel = await Kernel.start(self._workspace, self._python, self._setup(), self.take)
        return self.kernel

    async def _settle(self, kernel: Kernel, done: "asyncio.Future[str]") -> None:
        """After a cancelled cell: it must not run on."""
        await asyncio.wait({done}, timeout=INTERRUPT_GRACE_S)
        if not done.done():
            await self._dropped(kernel)
            self._lost = f"a cancelled cell did not stop and was ended with the last one; {_gone(self._taken())}"

    def _dropped(self, kernel: Kernel) -> "asyncio.Future[None]":
        """Done when the kernel has ended; whoever waits for that may be cancelled."""
        self.kernel = None
        self._ending = asyncio.create_task(kernel.close())
        return asyncio.shield(self._ending)

    def _taken(self) -> list[str]:
        names, self.names = self.names, []
        return names


class Stopped(ToolError):
    """A cell that did not end by itself. `notes` are for the model, `words` what the process said last."""

    def __init__(self, notes: Sequence[str], words: str = "") -> None:
        super().__init__("; ".join(notes))
        self.notes = notes
        self.words = words


async def _stopped(kernel: Kernel, done: "asyncio.Future[str]", cell: Cell, timeout_s: float) -> str:
    """Why the cell was told to stop; empty when it ended by itself."""
    ends: tuple[asyncio.Future[Any], ...] = (done, cell.flooded)
    await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    if done.done():
        return ""
    kernel.interrupt()
    await asyncio.wait({done}, timeout=INTERRUPT_GRACE_S)
    return "it printed more than 1 GiB" if cell.flooded.done() else f"its time limit of {timeout_s:g} s was over"


def _gone(names: Sequence[str]) -> str:
    """What was lost with a kernel."""
    return f"its variables are gone ({listed(names)})" if names else "it held no variables"


def listed(names: Sequence[str], most: int = _NAMES) -> str:
    """The names, of many the first."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
