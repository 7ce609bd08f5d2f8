"""Running commands, and the clients of the spawner processes that start them."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from fcntl import F_SETPIPE_SZ, fcntl
from itertools import count
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError

from . import spawner
from .policy import Access
from .scope import SandboxScope

_CHUNK_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024
_LINGER_S = 0.1
_POLL_S = 0.01
_KILL_TIMEOUT_S = 5.0


class Process:
    """A running command with all processes that it started.

    Output and errors come as one stream, in the order of writing. Nothing is read ahead: without calls of `read`, the
    command blocks once the pipe (1 MiB) is full. `pid` is the number inside the sandbox. `started_at` is a time of the
    event loop.
    """

    def __init__(
        self, spawner: "SpawnerClient", number: int, pid: int, output: int, code: "asyncio.Future[int]"
    ) -> None:
        self.pid = pid
        self.started_at = asyncio.get_running_loop().time()
        self._spawner = spawner
        self._number = number
        self._output: int | None = output
        self._code = code
        self._linger_until: float | None = None
        self._left_bytes = _PIPE_BYTES

    async def read(self) -> bytes:
        """Read the output since the last call, at most 256 KiB; b"" at the end of the output.

        The output ends with the pipe. If a background process keeps the pipe open, the output ends 0.1 s after the
        command, and later background output is discarded. Cancelling loses nothing: the next call continues.
        """
        await asyncio.sleep(0)  # let other tasks run during a flood of output
        while self._output is not None:
            if self._code.done() and self._left_bytes <= 0:
                self._abandon(self._output)
                break
            try:
                chunk = os.read(self._output, _CHUNK_BYTES)
            except BlockingIOError:
                if not await self._wait_readable(self._output):
                    self._abandon(self._output)
                continue
            if not chunk:
                self._close()
                break
            if self._code.done():
                self._left_bytes -= len(chunk)  # the command itself cannot have left more than a full pipe
            return chunk
        return b""

    async def wait(self) -> int:
        """Wait for the exit code, which is negative after a death by signal.

        Raises:
            GooseLikeError: the sandbox was killed together with the command.
        """
        return await asyncio.shield(self._code)

    async def count_processes(self) -> int:
        """Count the living processes of the command, including those in the background.

        Raises:
            GooseLikeError: the sandbox was killed together with the command.
        """
        return await self._spawner.signal(self._number, 0)

    def interrupt(self) -> None:
        """Send SIGINT to all processes of the command, like Ctrl-C in a terminal. Do not wait."""
        self._spawner.send(self._number, "signal", int(signal.SIGINT))

    async def stop(self, grace_s: float = 1.0) -> None:
        """End the command and everything it started: SIGTERM, and after `grace_s` SIGKILL.

        Return when all processes are dead, including daemons. A daemon that erased its variables ends with the spawner.
        If SIGKILL has no effect for 5 seconds, the spawner is killed.
        """
        loop = asyncio.get_running_loop()
        try:
            with suppress(GooseLikeError):  # the spawner is gone, together with its processes
                alive = await self._spawner.signal(self._number, signal.SIGTERM)
                deadline = loop.time() + grace_s
                while alive and loop.time() < deadline:
                    await asyncio.sleep(_POLL_S)
                    alive = await self._spawner.signal(self._number, 0)
                deadline = loop.time() + _KILL_TIMEOUT_S
                while alive:
                    alive = await self._spawner.signal(self._number, signal.SIGKILL)
                    if loop.time() > deadline:
                        self._spawner.kill()
                    await asyncio.sleep(_POLL_S)
                await self.wait()
        except asyncio.CancelledError:
            self._spawner.send(self._number, "signal", int(signal.SIGKILL))
            raise
        finally:
            self._close()

    async def _wait_readable(self, output: int) -> bool:
        """Wait for output. Return False if the command has ended and no output followed for 0.1 s."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[int] = loop.create_future()
        loop.add_reader(output, _set_ready, ready)
        try:
            if not self._code.done():
                await asyncio.wait({ready, self._code}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                self._linger_until = self._linger_until or loop.time() + _LINGER_S
                await asyncio.wait({ready}, timeout=max(0.0, self._linger_until - loop.time()))
            return ready.done()
        finally:
            loop.remove_reader(output)

    def _abandon(self, output: int) -> None:
        self._output = None
        asyncio.get_running_loop().add_reader(output, _discard, output)

    def _close(self) -> None:
        if self._output is not None:
            os.close(self._output)
            self._output = None


def _set_ready(ready: "asyncio.Future[int]") -> None:
    if not ready.done():
        ready.set_result(0)


def _discard(output: int) -> None:
    with suppress(BlockingIOError):
        if not os.read(output, _CHUNK_BYTES):
            asyncio.get_running_loop().remove_reader(output)
            os.close(output)


class SpawnerClient:
    """A running `spawner.py`, and the connection to it.

    `sandbox` is the front of a command line that enters the sandbox. `variables` are those of every command.
    """

    def __init__(self, sandbox: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> None:
        self._is_confined = bool(sandbox)
        self._variables = dict(variables or {})
        self._numbers = count(1)
        self._replies: dict[tuple[int, str], asyncio.Future[int]] = {}
        self._pids: dict[int, int] = {}
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*sandbox, sys.executable, "-I", "-S", spawner.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={},  # other processes can read it in /proc
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # goose_like handles Ctrl-C in the terminal
            )
        self._socket.setblocking(False)
        self.is_alive = True
        asyncio.get_running_loop().add_reader(self._socket, self._receive)

    async def spawn(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int | None = None) -> Process:
        """Start a command with additional variables. Cancelling kills the command.

        Raises:
            GooseLikeError: the command cannot be started.
        """
        if wrong := [name for name in env if not name or "=" in name]:
            raise GooseLikeError(f"a variable can't be named {wrong[0]!r}; give it a name without `=`")
        variables = self._variables | dict(env)
        words = [str(cwd), str(len(argv)), *argv, *(f"{name}={value}" for name, value in variables.items())]
        if any("\0" in word for word in words):
            raise GooseLikeError("a command can't hold a NUL byte; write it as \\0 or in a file")
        try:
            request = b"\0".join(word.encode(errors="surrogateescape") for word in words)
        except UnicodeEncodeError as error:
            raise GooseLikeError(f"the command is no valid text: {error.reason}; write it again") from error
        number = next(self._numbers)
        started, code = self._get_reply(number, "pid"), self._get_reply(number, "code")
        output, theirs = os.pipe()
        memory = os.memfd_create("request")
        try:
            os.set_blocking(output, False)
            with suppress(OSError):  # the number of large pipes per user is limited
                fcntl(output, F_SETPIPE_SZ, _PIPE_BYTES)
            os.write(memory, request)
            self.send(number, "spawn", descriptors=[memory, theirs, *([] if stdin is None else [stdin])])
        finally:
            os.close(memory)
            os.close(theirs)
        try:
            pid = await started
        except BaseException as error:
            os.close(output)
            if isinstance(error, asyncio.CancelledError):
                self.send(number, "signal", int(signal.SIGKILL))
            raise
        return Process(self, number, pid, output, code)

    async def signal(self, number: int, which: int) -> int:
        """Signal every process of a command, and return how many were alive."""
        alive = self._get_reply(number, "alive")
        self.send(number, "signal", int(which))
        return await alive

    def send(self, number: int, *words: object, descriptors: Sequence[int] = ()) -> None:
        """Send one packet. If the spawner is gone, all pending replies fail."""
        packet = " ".join(map(str, (number, *words))).encode()
        if self.is_alive:
            try:
                socket.send_fds(self._socket, [packet], descriptors)
            except OSError:
                self._disconnect()

    def kill(self) -> None:
        """Kill the spawner. Nothing inside a sandbox survives that."""
        self._disconnect()

    async def close(self) -> None:
        """End the spawner and everything that it started."""
        self._disconnect("the session is over")
        try:
            await asyncio.to_thread(self._process.wait, 5)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _get_reply(self, number: int, kind: str) -> "asyncio.Future[int]":
        """Return the future of a reply. Two callers may wait for the same reply."""
        future = self._replies.get((number, kind))
        if future is None:
            future = asyncio.get_running_loop().create_future()
            future.add_done_callback(lambda done: done.cancelled() or done.exception())  # many wait for no reply
            if self.is_alive:
                self._replies[number, kind] = future
            else:
                future.set_exception(GooseLikeError("the process that starts commands is gone; try again"))
        return future

    def _receive(self) -> None:
        """Read all packets that arrived. An invalid packet, which a command may have forged, ends the connection."""
        with suppress(BlockingIOError):
            while self.is_alive:
                try:
                    number, kind, value = self._socket.recv(4096).decode(errors="replace").split(" ", 2)
                    if kind == "error":
                        self._set_reply(int(number), "code", GooseLikeError(value))
                        self._set_reply(int(number), "pid", GooseLikeError(f"can't start the command: {value}"))
                    else:
                        if kind == "pid":
                            self._pids[int(number)] = int(value)
                        elif kind == "code":
                            self._pids.pop(int(number), None)
                        self._set_reply(int(number), kind, int(value))
                except (ValueError, ConnectionError):
                    self._disconnect()

    def _set_reply(self, number: int, kind: str, value: int | Exception) -> None:
        future = self._replies.pop((number, kind), None)
        if future is None or future.done():
            return
        if isinstance(value, Exception):
            future.set_exception(value)
        else:
            future.set_result(value)

    def _disconnect(self, why: str = "") -> None:
        """End the connection, and fail every pending reply with the reason."""
        if not self.is_alive:
            return
        self.is_alive = False
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        if not why:
            self._process.kill()
            why = f"{self._read_error()} the next command starts a new one"
        if not self._is_confined:  # inside a sandbox, all processes die with process 1
            for number, pid in self._pids.items():
                spawner.signal_command(self._process.pid, b"%d" % number, pid, signal.SIGKILL)
        for number, kind in list(self._replies):
            self._set_reply(number, kind, GooseLikeError(why))

    def _read_error(self) -> str:
        with suppress(OSError):
            if self._process.stderr is not None:
                os.set_blocking(self._process.stderr.fileno(), False)
                if text := (self._process.stderr.read() or b"").decode(errors="replace").strip():
                    return f"the process that starts commands failed: {text.splitlines()[-1]};"
        return "the process that starts commands was killed, and the running command with it;"


class SpawnerPool:
    """One spawner for each access and scope, started with the first command that needs it."""

    def __init__(self, start: Callable[[Access, SandboxScope | None], Coroutine[Any, Any, SpawnerClient]]) -> None:
        self._start = start
        self._tasks: dict[tuple[Access, SandboxScope | None], asyncio.Task[SpawnerClient]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def request(self, access: Access, scope: SandboxScope | None = None) -> "asyncio.Task[SpawnerClient]":
        """Return the task that starts the spawner. A spawner that died or failed to start is started again."""
        task = self._tasks.get((access, scope))
        if task is None or (task.done() and (task.cancelled() or task.exception() or not task.result().is_alive)):
            task = self._tasks[access, scope] = asyncio.create_task(self._start(access, scope))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # reported to whoever awaits it
        return task

    def request_later(self, access: Access, delay_s: float) -> None:
        """Start the spawner after a delay, so that the first command finds it running."""
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.request, access)

    async def close(self) -> None:
        """End all spawners and everything that they started."""
        if self._timer:
            self._timer.cancel()
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            with suppress(GooseLikeError, OSError):
                await (await task).close()


def describe_exit(code: int) -> str:
    """Describe an exit code in words, with signals by name."""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    by = f" ({signal.Signals(code - 128).name})" if code - 128 in set(signal.Signals) else ""
    return f"exit code {code}{by}"
