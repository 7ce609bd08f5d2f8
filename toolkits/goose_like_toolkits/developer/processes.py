"""Background processes: commands with short ids that run until they end, are cancelled, or the session ends."""

import asyncio
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from io import FileIO
from itertools import count

from goose_like.core.errors import GooseLikeError
from goose_like.core.masking import mask_text
from goose_like.sessions.output_limit import LimitedOutput, PlainBytes, append_notes
from goose_like.toolkit import RunningTask, ToolError, Workspace
from goose_like.workspace.processes.process import MAX_OUTPUT_BYTES, Process, describe_exit

from .shell import STOP_GRACE_S, Shell

WAIT_S = 1.0
QUIET_S = 0.1
POLL_S = 0.01
MAX_COMMAND_CHARS = 100
MAX_TAIL_BYTES = 4_096
KEPT_ENDED = 20
"""The newest processes that have ended and can still be viewed: each holds output."""


class BackgroundProcess:
    """A running command. A task reads the output all the time, so that the command never blocks."""

    def __init__(
        self, command: str, process: Process, output: LimitedOutput, held: ExitStack, stdin: FileIO | None = None
    ) -> None:
        """Adopt a running command.

        Args:
            command: the command line.
            process: the process.
            output: takes all output from now on.
            held: resources to close when the process has ended.
            stdin: our non-blocking end of its input, if it has one.
        """
        self.command = command
        self.output = output
        self.end = ""  # how it ended; empty while it runs
        self.may_write = True  # it was started with the right to change files
        self.folder = ""  # in which it started
        self.typed = ""  # all text for its input
        self._left_count = 0
        self._tail = b""
        self._process = process
        self._held = held
        self._stdin = stdin
        self._has_output = asyncio.Event()
        output.save_all()
        self._reader = asyncio.create_task(self._read_output())

    @property
    def state(self) -> str:
        """The state in words for the model."""
        if self._left_count:
            left = f"it left {self._left_count} in the background, where output is lost; `stop` ends that"
            return f"{self.end}; {left}"
        if self.end:
            return self.end
        duration_s = asyncio.get_running_loop().time() - self._process.started_at
        return f"running for {_format_duration(duration_s)}"

    @property
    def started_at(self) -> float:
        """The start as a time of the event loop."""
        return self._process.started_at

    def get_tail(self) -> str:
        """Return the last output, which the model may have read or not."""
        plain = PlainBytes()
        data = plain.write(self._tail) + plain.close()
        return mask_text(data.decode(errors="replace"))

    @property
    def is_over(self) -> bool:
        """True when the process and all that it started have ended."""
        return bool(self.end) and not self._left_count

    async def _read_output(self) -> None:
        """Read the output to its end. Cancelling this task stops the command."""
        try:
            while chunk := await self._process.read():
                self.output.write(chunk)
                self._tail = (self._tail + chunk)[-MAX_TAIL_BYTES:]
                self._has_output.set()
                if self.output.size_bytes > MAX_OUTPUT_BYTES:
                    await self._process.stop(STOP_GRACE_S)
                    self.end = "stopped, since it printed more than 1 GiB"
                    return
            code = await self._process.wait()
            self._left_count = await self._process.count_processes()
            self.end = describe_exit(code)
        except GooseLikeError as error:
            self.end = self.end or str(error)
        except asyncio.CancelledError:
            await self._process.stop(STOP_GRACE_S)
            self.end = "cancelled"
        finally:
            self._release()

    def _release(self) -> None:
        self.output.close()
        self.end_input()
        self._held.close()
        self._has_output.set()

    async def wait_for_end(self) -> None:
        """Wait until the process ends, at most a second."""
        await asyncio.wait({self._reader}, timeout=WAIT_S)

    async def wait_for_answer(self) -> None:
        """Wait until new output came and is complete, at most a second."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S):
                await self._has_output.wait()
                while not self.end:
                    self._has_output.clear()
                    await asyncio.wait_for(self._has_output.wait(), QUIET_S)

    async def stop(self) -> None:
        """End the process and everything it started: SIGTERM, and two seconds later SIGKILL."""
        self._reader.cancel()
        await asyncio.wait({self._reader})
        await self._process.stop(STOP_GRACE_S)
        self.end = self.end or "cancelled"
        self._left_count = 0
        self._release()

    @property
    def takes_input(self) -> bool:
        """True while the process has an open input."""
        return self._stdin is not None and not self._stdin.closed

    async def write(self, data: bytes) -> int:
        """Write to the input for at most a second, and return the number of bytes written.

        If the process does not read, its pipe takes 64 KiB.
        """
        self._has_output.clear()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + WAIT_S
        sent = 0
        while self._stdin and sent < len(data) and loop.time() < deadline:
            try:
                written = self._stdin.write(data[sent:])
            except BrokenPipeError:
                self.end_input()
                break
            sent += written or 0  # None: the pipe is full
            await asyncio.sleep(0 if written else POLL_S)
        return sent

    def end_input(self) -> None:
        """Close the input, like Ctrl-D."""
        if self._stdin is not None:
            self._stdin.close()


class BackgroundProcesses:
    """The background processes of a session.

    Each tool returns the new output of a process, and its state in brackets. `show` displays the output for people.
    """

    def __init__(self, shell: Shell, workspace: Workspace, show: Callable[[str], None]) -> None:
        self._shell = shell
        self._workspace = workspace
        self._show = show
        self._processes: dict[str, BackgroundProcess] = {}
        self._numbers = count(1)

    def adopt(
        self,
        command: str,
        process: Process,
        output: LimitedOutput,
        held: ExitStack,
        stdin: FileIO | None = None,
        name: str = "",
    ) -> str:
        """Take over a running command, and return its id, which is new unless it has a `name`.

        Forget the oldest of many processes that are over.
        """
        over = [known for known, running in self._processes.items() if running.is_over]
        for oldest in over[:-KEPT_ENDED]:
            del self._processes[oldest]
        running = BackgroundProcess(command, process, output, held, stdin)
        running.may_write = self._workspace.mode != "read-only"
        name = name or f"p{next(self._numbers)}"
        self._processes[name] = running
        return name

    async def start(self, command: str, output: LimitedOutput, name: str = "") -> str:
        """Start a command with an input in the shell's folder, and describe its state after a second.

        The process gets a new id unless it has a `name`.

        Cancelling ends the command.

        Raises:
            ToolError: see `Shell.start`.
            GooseLikeError: see `Shell.start`.
        """
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        with ExitStack() as held:
            stdin = held.enter_context(FileIO(write_end, "w"))
            try:
                process, _ = await self._shell.start(command, "workspace", held, read_end)
            finally:
                os.close(read_end)
            name = self.adopt(command, process, output, held.pop_all(), stdin, name)
        running = self._processes[name]
        running.folder = self._shell.state.cwd
        try:
            await running.wait_for_end()
        except asyncio.CancelledError:
            await asyncio.shield(running.stop())
            raise
        return await self._describe(name, running)

    def describe_all(self) -> str:
        """Describe each process in a line: id, state, size of the new output, and command."""
        if not self._processes:
            return "[no process was started]"
        lines: list[str] = []
        for name, running in self._processes.items():
            command = _shorten(running.command)
            size = f"{running.output.new_bytes:,} new bytes"
            lines.append(f"{name}: {running.state}, {size}: {command}")
        return "\n".join(lines)

    def list_tasks(self) -> list[RunningTask]:
        """Return the processes that still run, or left others behind."""
        tasks: list[RunningTask] = []
        for name, running in list(self._processes.items()):  # a completion reads this in a thread
            if running.is_over:
                continue
            title = _shorten(running.command)
            tasks.append(RunningTask(name, title, running.started_at, running.get_tail, running.stop))
        return tasks

    async def view(self, name: str) -> str:
        """Return the new output of a process."""
        return await self._describe(name, self._find(name))

    async def cancel(self, name: str) -> str:
        """End a process, and return its last output."""
        running = self._find(name)
        await asyncio.shield(running.stop())
        return await self._describe(name, running)

    async def restart(self, name: str, command: str, output: LimitedOutput) -> str:
        """End a process and start its command again, or another one, under the same id."""
        old = self._find(name)
        await asyncio.shield(old.stop())
        return await self.start(command or old.command, output, name)

    async def write(self, name: str, text: str) -> str:
        """Write lines to a process, with a newline at the end. An empty text ends its input.

        Raises:
            ToolError: the process has no input, does not read it, or may change files while the session may not.
            DeniedError: the text is not allowed.
        """
        running = self._find(name)
        if running.may_write and self._workspace.mode == "read-only":
            raise ToolError(f"{name} may change files, and now nothing may be changed; start another process to read")
        line = text
        if text and not text.endswith("\n"):
            line = f"{text}\n"
        try:
            data = line.encode()
        except UnicodeEncodeError as error:
            raise ToolError(f"the text holds half a character ({text[error.start]!a}); send it whole") from error
        if not running.takes_input:
            raise ToolError(f"{name} has no input, or that has ended; if it needs any, `restart` it")
        if text:
            process = f"process {name} ({running.command})"
            await self._workspace.require_input(line, process=process, earlier=running.typed, folder=running.folder)
            running.typed += line
        sent = await running.write(data)
        if not text:
            running.end_input()
        await running.wait_for_answer()
        if sent < len(data):
            why = "does not read" if running.takes_input else "has closed its input"
            state = await self._describe(name, running)
            raise ToolError(
                f"{state}\n"
                f"[{name} {why}: it took only the first {sent:,} of {len(data):,} bytes; send no more, or cancel it]"
            )
        return await self._describe(name, running)

    async def close(self) -> None:
        """End all processes at the same time."""
        stops = [running.stop() for running in self._processes.values()]
        await asyncio.gather(*stops)

    def _find(self, name: str) -> BackgroundProcess:
        if name in self._processes:
            return self._processes[name]
        hint = "`start` with a command starts one"
        if self._processes:
            hint = "there are: " + ", ".join(self._processes)
        raise ToolError(f"no process {name!r}; {hint}")

    async def _describe(self, name: str, running: BackgroundProcess) -> str:
        notes = await self._workspace.inspect_changes()
        text = running.output.take_new()
        if text:
            self._show(text.removesuffix("\n") + "\n")
        return append_notes(text, [f"{name}: {running.state}", *notes], "no new output")


def _shorten(command: str) -> str:
    first, *rest = command.strip().splitlines()
    if rest or len(first) > MAX_COMMAND_CHARS:
        return f"{first[:MAX_COMMAND_CHARS]}..."
    return first


def _format_duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
