"""Cells one after another, in a kernel that starts when a cell needs one."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from goose_like.toolkit import ToolError, Workspace

from .cell import CellOutput
from .channels import Message
from .process import KernelProcess

INTERRUPT_GRACE_S = 4.0
_SHOWN_NAMES = 30
_MAX_NAMES = 2_000
_NAME_CHARACTERS = 100


class KernelManager:
    """The current kernel of a session. `names` are the user's variables in it.

    `find_python` returns the interpreter of a new kernel. `make_setup` returns the first message to its plugin manager,
    `list_changes` the messages before the next cell of a running one. `lost_names` are the variables in the kernel of
    the session's previous process.
    """

    def __init__(
        self,
        workspace: Workspace,
        find_python: Callable[[], str],
        make_setup: Callable[[], Message],
        list_changes: Callable[[], Sequence[Message]],
        on_message: Callable[[Message], None],
        lost_names: Sequence[str] = (),
    ) -> None:
        self.names: list[str] = []
        self.kernel: KernelProcess | None = None
        self._workspace = workspace
        self._find_python = find_python
        self._make_setup = make_setup
        self._list_changes = list_changes
        self._on_message = on_message
        self._lost = ""  # what the next cell is told about the kernel before
        if lost_names:
            self._lost = f"the previous kernel ended with its session; {_describe_loss(lost_names)}"
        self._settling: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def run(self, code: str, cell: CellOutput, timeout_s: float, messages: Sequence[Message] = ()) -> list[str]:
        """Run a cell and return notes for the model. Cancelling interrupts the cell and keeps the kernel.

        `messages` go to the plugin manager before the cell, if the kernel has run before.

        Raises:
            CellStopped: The cell reached its time limit, or its kernel died.
            GooseLikeError: No kernel can be started.
        """
        if self._settling:
            await asyncio.shield(self._settling)
        former = self.kernel
        kernel = await self._get_kernel()
        if kernel is former:
            for message in (*self._list_changes(), *messages):
                kernel.send(message)
        notes = []
        if self._lost:
            notes.append(f"this is a new kernel: {self._lost}")
        self._lost = ""
        done = await kernel.run(code, cell.handle)
        try:
            reason = await self._wait_or_interrupt(kernel, done, cell, timeout_s)
        except asyncio.CancelledError:
            kernel.interrupt()
            self._settling = asyncio.create_task(self._settle(kernel, done))
            raise
        if done.done() and not done.result():
            if reason:
                raise CellStopped([*notes, f"stopped: {reason}; the kernel still runs, with its variables"])
            return notes
        last_output = ""
        if done.done():
            last_output = kernel.last_output
            end = _describe_death(done.result(), reason)
        else:
            end = f"stopped: {reason}; the cell ignored the interrupt, so the kernel was ended too"
        await self._close_kernel(kernel)
        loss = _describe_loss(self._take_names())
        raise CellStopped([*notes, f"{end}; {loss}; the next cell starts a new kernel"], last_output)

    def handle(self, message: Message) -> None:
        """Handle a message of the plugin manager."""
        if message.get("type") == "names":
            names = [name for name in message["names"] if _is_name(name)]
            self.names = [name[:_NAME_CHARACTERS] for name in names[:_MAX_NAMES]]
        else:
            self._on_message(message)

    async def reset(self) -> list[str]:
        """End the kernel and return the names of its variables."""
        if self._settling:
            await asyncio.shield(self._settling)
        names = self.names
        if self.kernel:
            await self._close_kernel(self.kernel)
        self.names = []
        self._lost = ""
        return names

    async def close(self) -> None:
        """End the kernel and all tasks."""
        if self._settling:
            self._settling.cancel()
            await asyncio.wait({self._settling})
        if self.kernel:
            await self._close_kernel(self.kernel)
        elif self._closing:
            await self._closing

    async def _get_kernel(self) -> KernelProcess:
        if self.kernel and self.kernel.exit_reason:
            reason = self.kernel.exit_reason
            await self._close_kernel(self.kernel)
            self._lost = f"the last one ended ({reason}); {_describe_loss(self._take_names())}"
        if self.kernel is None:
            python = self._find_python()
            setup = self._make_setup()
            self.kernel = await KernelProcess.start(self._workspace, python, setup, self.handle)
        return self.kernel

    async def _wait_or_interrupt(
        self, kernel: KernelProcess, done: "asyncio.Future[str]", cell: CellOutput, timeout_s: float
    ) -> str:
        """Wait for the end of a cell; return why the cell was interrupted, or ""."""
        ends: tuple[asyncio.Future[Any], ...] = (done, cell.overflow)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s) as limit:
                with self._workspace.pause_for_questions(limit):
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if done.done():
            return ""
        kernel.interrupt()
        await asyncio.wait({done}, timeout=INTERRUPT_GRACE_S)
        if cell.overflow.done():
            return cell.overflow.result()
        return f"its time limit of {timeout_s:g} s was over"

    async def _settle(self, kernel: KernelProcess, done: "asyncio.Future[str]") -> None:
        """Wait until a cancelled cell stops, or end its kernel."""
        await asyncio.wait({done}, timeout=INTERRUPT_GRACE_S)
        if not done.done():
            await self._close_kernel(kernel)
            loss = _describe_loss(self._take_names())
            self._lost = f"a cancelled cell did not stop, so the last kernel was ended; {loss}"

    def _close_kernel(self, kernel: KernelProcess) -> "asyncio.Future[None]":
        """Return a future for the end of the kernel; cancelling the future does not keep the kernel alive."""
        self.kernel = None
        self._closing = asyncio.create_task(kernel.close())
        return asyncio.shield(self._closing)

    def _take_names(self) -> list[str]:
        names = self.names
        self.names = []
        return names


class CellStopped(ToolError):
    """An error for a cell that was stopped. `last_output` is the last output of a process that died."""

    def __init__(self, notes: Sequence[str], last_output: str = "") -> None:
        super().__init__("; ".join(notes))
        self.notes = notes
        self.last_output = last_output


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier()


def _describe_death(exit_reason: str, stop_reason: str) -> str:
    end = "the kernel died"
    if stop_reason:
        end += f" when it was stopped ({stop_reason})"
    hint = ", perhaps out of memory" if "SIGKILL" in exit_reason else ""
    return f"{end} ({exit_reason}{hint})"


def _describe_loss(names: Sequence[str]) -> str:
    if not names:
        return "it had no variables"
    return f"its variables are gone ({format_names(names)})"


def format_names(names: Sequence[str], limit: int = _SHOWN_NAMES) -> str:
    """Format the first names as a list."""
    text = ", ".join(names[:limit])
    left_out = len(names) - limit
    if left_out > 0:
        text += f" and {left_out:,} more"
    return text
