"""Processes: what runs on beside the conversation, under short ids, until it ends, is cancelled, or the session is."""

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from io import FileIO
from itertools import count

from goose_like.core.errors import GooseLikeError
from goose_like.core.output_limit import Output, told
from goose_like.toolkit import ToolError, Workspace
from goose_like.workspace.workspace import Process, ending

from .shell import MAX_OUTPUT_BYTES, STOP_GRACE_S, Shell

MOMENT_S = 1.0
QUIET_S = 0.1
POLL_S = 0.01
MAX_COMMAND_LETTERS = 100


class Running:
    """A command that goes on. Its output is read all the time, so that it never waits for us.

    `end` says how it ended; while that is empty it runs. `stdin` is our end of its input, if it has one, and does not
    block; `held` is closed when it has ended.
    """

    def __init__(
        self, command: str, process: Process, output: Output, held: ExitStack, stdin: FileIO | None = None
    ) -> None:
        self.command = command
        self.output = output
        self.end = ""
        self._left = 0
        self._process = process
        self._held = held
        self._stdin = stdin
        self._news = asyncio.Event()
        output.keep_all()
        self._following = asyncio.create_task(self._follow())

    @property
    def state(self) -> str:
        if self._left:
            return f"{self.end}; it left {self._left} in the background, where output is lost; cancel_process ends that"
        return self.end or f"running for {_age(asyncio.get_running_loop().time() - self._process.began)}"

    async def _follow(self) -> None:
        """Reads to the end. Cancelling this is stopping the command."""
        try:
            while chunk := await self._process.read():
                self.output.write(chunk)
                self._news.set()
                if self.output.size_bytes > MAX_OUTPUT_BYTES:
                    await self._process.stop(STOP_GRACE_S)
                    self.end = "stopped, since it printed more than 1 GiB"
                    return
            code = await self._process.wait()
            self._left = await self._process.count()
            self.end = ending(code)
        except GooseLikeError as error:
            self.end = self.end or str(error)
        except asyncio.CancelledError:
            await self._process.stop(STOP_GRACE_S)
            self.end = "cancelled"
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self.output.close()
        self.end_input()
        self._held.close()
        self._news.set()

    async def ended(self) -> None:
        """Returns when it has ended, after a second in any case."""
        await asyncio.wait({self._following}, timeout=MOMENT_S)

    async def answered(self) -> None:
        """Returns when it has said something new and is quiet again, after a second in any case."""
        with suppress(TimeoutError):
            async with asyncio.timeout(MOMENT_S):
                await self._news.wait()
                while not self.end:
                    self._news.clear()
                    await asyncio.wait_for(self._news.wait(), QUIET_S)

    async def stop(self) -> None:
        """Ends it and all that it started, what it left in the background too: TERM, and two seconds later KILL."""
        self._following.cancel()
        await asyncio.wait({self._following})
        await self._process.stop(STOP_GRACE_S)
        self.end, self._left = self.end or "cancelled", 0
        self._let_go()

    @property
    def takes_input(self) -> bool:
        return self._stdin is not None and not self._stdin.closed

    async def write(self, data: bytes) -> int:
        """How many of the bytes it took within a second: of one that does not read, a pipe takes 64 KiB."""
        self._news.clear()
        sent, patience_ends = 0, asyncio.get_running_loop().time() + MOMENT_S
        while self._stdin and sent < len(data) and asyncio.get_running_loop().time() < patience_ends:
            try:
                written = self._stdin.write(data[sent:])
            except BrokenPipeError:
                self.end_input()
                break
            sent += written or 0  # None: the pipe is full
            await asyncio.sleep(0 if written else POLL_S)
        return sent

    def end_input(self) -> None:
        """What it reads next is the end, as after Ctrl-D."""
        if self._stdin is not None:
            self._stdin.close()


class Processes:
    """The processes of a session. What a tool answers of one is its new output, which `show` takes as well, and in
    brackets how it is."""

    def __init__(self, shell: Shell, workspace: Workspace, show: Callable[[str], None]) -> None:
        self._shell = shell
        self._workspace = workspace
        self._show = show
        self._table: dict[str, Running] = {}
        self._numbers = count(1)

    def keep(self, command: str, process: Process, output: Output, held: ExitStack, stdin: FileIO | None = None) -> str:
        """Takes over a command that runs (see `Running`) and gives its id."""
        name = f"p{next(self._numbers)}"
        self._table[name] = Running(command, process, output, held, stdin)
        return name

    async def start(self, command: str, output: Output) -> str:
        """Starts a command where the shell is, with an input; tells how it is after a second, or what it died of.

        Cancelling ends it. Raises what `Shell.start` does.
        """
        theirs, ours = os.pipe()
        os.set_blocking(ours, False)
        with ExitStack() as held:
            stdin = held.enter_context(FileIO(ours, "w"))
            try:
                process, _ = await self._shell.start(command, "workspace", held, theirs)
            finally:
                os.close(theirs)
            name = self.keep(command, process, output, held.pop_all(), stdin)
        running = self._table[name]
        try:
            await running.ended()
        except asyncio.CancelledError:
            await asyncio.shield(running.stop())
            raise
        return await self._told(name, running)

    def listed(self) -> str:
        """A line for each: id, state, how much of its output was not viewed, command."""
        lines = [
            f"{name}: {running.state}, {running.output.new_bytes:,} new bytes: {_short(running.command)}"
            for name, running in self._table.items()
        ]
        return "\n".join(lines) or "[no process was started]"

    async def view(self, name: str) -> str:
        """What it printed since it was last told."""
        return await self._told(name, self._find(name))

    async def cancel(self, name: str) -> str:
        """Ends it; see `Running.stop`."""
        running = self._find(name)
        await asyncio.shield(running.stop())
        return await self._told(name, running)

    async def write(self, name: str, text: str) -> str:
        """Gives it a line, or several; a newline is added where it is missing. No text at all ends its input.

        Raises:
            ToolError: it has no input, or did not read what it was given before.
        """
        running = self._find(name)
        try:
            data = (text if text.endswith("\n") or not text else f"{text}\n").encode()
        except UnicodeEncodeError as error:
            raise ToolError(f"the text holds half a character ({text[error.start]!a}); send it whole") from error
        if not running.takes_input:
            raise ToolError(f"{name} has no input, or that has ended; if it needs any, start it with start_process")
        sent = await running.write(data)
        if not text:
            running.end_input()
        await running.answered()
        if sent < len(data):
            why = "does not read" if running.takes_input else "has closed its input"
            raise ToolError(
                f"{await self._told(name, running)}\n"
                f"[{name} {why}: it took only the first {sent:,} of {len(data):,} bytes; send no more, or cancel it]"
            )
        return await self._told(name, running)

    async def close(self) -> None:
        """Ends all of them, side by side."""
        await asyncio.gather(*(running.stop() for running in self._table.values()))

    def _find(self, name: str) -> Running:
        if name not in self._table:
            there = f"there are: {', '.join(self._table)}" if self._table else "start_process starts one"
            raise ToolError(f"no process {name!r}; {there}")
        return self._table[name]

    async def _told(self, name: str, running: Running) -> str:
        left_behind = await self._workspace.inspect_changes()
        text = running.output.take()
        if text:
            self._show(text.removesuffix("\n") + "\n")
        return told(text, [f"{name}: {running.state}", *left_behind], "no new output")


def _short(command: str) -> str:
    first, *rest = command.strip().splitlines()
    return first[:MAX_COMMAND_LETTERS] + ("..." if rest or len(first) > MAX_COMMAND_LETTERS else "")


def _age(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
