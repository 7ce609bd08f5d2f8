"""Our end of a spawner: processes whose output is read as it comes, and the connection that starts them."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fcntl import F_SETPIPE_SZ, fcntl
from itertools import count
from pathlib import Path

from goose_like.core.errors import GooseLikeError

from . import spawner

_CHUNK_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024
_LINGER_S = 0.1
_POLL_S = 0.01
_KILL_S = 5.0


class Process:
    """A running command with all that it started. `pid` counts within its sandbox, `began` is the loop's time.

    Output and errors come as one stream, in the order in which they were written. Nothing is read ahead: who does
    not call `read` stops the command once the pipe (1 MiB) is full.
    """

    def __init__(self, connection: "Spawner", number: int, pid: int, output: int, code: "asyncio.Future[int]") -> None:
        self.pid = pid
        self.began = asyncio.get_running_loop().time()
        self._connection = connection
        self._number = number
        self._output: int | None = output
        self._code = code
        self._linger_until: float | None = None
        self._left_bytes = _PIPE_BYTES

    async def read(self) -> bytes:
        """What came since the last call, at most 256 KiB; b"" at the end of the output.

        That is the end of the pipe, or, where something in the background keeps the pipe open, 0.1 s after the
        command's own end. What the background then says is thrown away, so that it goes on without us. Cancelling
        loses nothing: another call goes on from there.
        """
        await asyncio.sleep(0)  # a flood leaves time for others
        while self._output is not None:
            if self._code.done() and self._left_bytes <= 0:
                self._abandon(self._output)
                break
            try:
                chunk = os.read(self._output, _CHUNK_BYTES)
            except BlockingIOError:
                if not await self._readable(self._output):
                    self._abandon(self._output)
                continue
            if not chunk:
                self._close()
                break
            if self._code.done():
                self._left_bytes -= len(chunk)  # the command itself can't have left more than a pipe holds
            return chunk
        return b""

    async def wait(self) -> int:
        """The exit code, negative for a death by signal.

        Raises:
            GooseLikeError: the sandbox itself was killed, and the command with it.
        """
        return await asyncio.shield(self._code)

    async def count(self) -> int:
        """How many processes of it live, those that it left in the background too.

        Raises:
            GooseLikeError: the sandbox itself was killed, and they with it.
        """
        return await self._connection.signal(self._number, 0)

    def interrupt(self) -> None:
        """Asks it to leave off, as Ctrl-C in a terminal would: INT to all of its processes. Does not wait."""
        self._connection.send(self._number, "signal", int(signal.SIGINT))

    async def stop(self, grace_s: float = 1.0) -> None:
        """Ends the command and everything it started: TERM, and after `grace_s` KILL.

        Returns when all are dead. Daemons are among them, but for one that erased its variables: that ends with the
        spawner. So does, after 5 s, what even KILL does not reach.
        """
        loop = asyncio.get_running_loop()
        try:
            with suppress(GooseLikeError):  # the spawner is gone, and they with it
                alive = await self._connection.signal(self._number, signal.SIGTERM)
                patience_ends = loop.time() + grace_s
                while alive and loop.time() < patience_ends:
                    await asyncio.sleep(_POLL_S)
                    alive = await self._connection.signal(self._number, 0)
                patience_ends = loop.time() + _KILL_S
                while alive:
                    alive = await self._connection.signal(self._number, signal.SIGKILL)
                    if loop.time() > patience_ends:
                        self._connection.kill()
                    await asyncio.sleep(_POLL_S)
                await self.wait()
        except asyncio.CancelledError:
            self._connection.send(self._number, "signal", int(signal.SIGKILL))
            raise
        finally:
            self._close()

    async def _readable(self, output: int) -> bool:
        """Waits for output; false when the command has ended and none came for a while."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[int] = loop.create_future()
        loop.add_reader(output, _set, ready)
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


def _set(ready: "asyncio.Future[int]") -> None:
    if not ready.done():
        ready.set_result(0)


def _discard(output: int) -> None:
    with suppress(BlockingIOError):
        if not os.read(output, _CHUNK_BYTES):
            asyncio.get_running_loop().remove_reader(output)
            os.close(output)


class Spawner:
    """A living `spawner.py`, in the sandbox that `sandbox` (the front of a command line) enters; empty for none.

    `variables` are those of each command.
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
                env={},  # it can be read in /proc by whatever runs beside it
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in the terminal is ours to handle
            )
        self._socket.setblocking(False)
        self.is_alive = True
        asyncio.get_running_loop().add_reader(self._socket, self._receive)

    async def spawn(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int | None = None) -> Process:
        """Starts a command, with `env` on top of its variables. Cancelling kills it.

        Raises:
            GooseLikeError: it can't be started.
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
            raise GooseLikeError(f"the command is no valid text: {error.reason}; write it anew") from error
        number = next(self._numbers)
        started, code = self._expect(number, "pid"), self._expect(number, "code")
        output, theirs = os.pipe()
        memory = os.memfd_create("request")
        try:
            os.set_blocking(output, False)
            with suppress(OSError):  # a user may have only so many large pipes
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
        """Signals every process of a command; how many lived."""
        alive = self._expect(number, "alive")
        self.send(number, "signal", int(which))
        return await alive

    def send(self, number: int, *words: object, descriptors: Sequence[int] = ()) -> None:
        """One packet. If the other side is gone, the answers that are waited for say so."""
        packet = " ".join(map(str, (number, *words))).encode()
        if self.is_alive:
            try:
                socket.send_fds(self._socket, [packet], descriptors)
            except OSError:
                self._lose()

    def kill(self) -> None:
        """Ends it at once; in a sandbox nothing survives that."""
        self._lose()

    async def close(self) -> None:
        """Ends the spawner, which takes everything that it started with it."""
        self._lose("the session is over")
        try:
            await asyncio.to_thread(self._process.wait, 5)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _expect(self, number: int, kind: str) -> "asyncio.Future[int]":
        """The answer to come. If one is waited for already, it serves both."""
        future = self._replies.get((number, kind))
        if future is None:
            future = asyncio.get_running_loop().create_future()
            future.add_done_callback(_look_away)
            if self.is_alive:
                self._replies[number, kind] = future
            else:
                future.set_exception(GooseLikeError("the process that starts commands is gone; try again"))
        return future

    def _receive(self) -> None:
        """Takes all packets that are there. They come from within the sandbox: whatever else they hold is its end."""
        with suppress(BlockingIOError):
            while self.is_alive:
                try:
                    number, kind, value = self._socket.recv(4096).decode(errors="replace").split(" ", 2)
                    if kind == "error":
                        self._answer(int(number), "code", GooseLikeError(value))
                        self._answer(int(number), "pid", GooseLikeError(f"can't start the command: {value}"))
                    else:
                        if kind == "pid":
                            self._pids[int(number)] = int(value)
                        elif kind == "code":
                            self._pids.pop(int(number), None)
                        self._answer(int(number), kind, int(value))
                except (ValueError, ConnectionError):
                    self._lose()

    def _answer(self, number: int, kind: str, value: int | Exception) -> None:
        future = self._replies.pop((number, kind), None)
        if future is None or future.done():
            return
        if isinstance(value, Exception):
            future.set_exception(value)
        else:
            future.set_result(value)

    def _lose(self, why: str = "") -> None:
        """The connection is over: every open question is answered with that."""
        if not self.is_alive:
            return
        self.is_alive = False
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        if not why:
            self._process.kill()
            why = f"{self._complaint()} the next command starts a new one"
        if not self._is_confined:  # inside a sandbox all die with their process 1
            for number, pid in self._pids.items():
                spawner.signal_command(self._process.pid, b"%d" % number, pid, signal.SIGKILL)
        for number, kind in list(self._replies):
            self._answer(number, kind, GooseLikeError(why))

    def _complaint(self) -> str:
        with suppress(OSError):
            if self._process.stderr is not None:
                os.set_blocking(self._process.stderr.fileno(), False)
                if text := (self._process.stderr.read() or b"").decode(errors="replace").strip():
                    return f"the process that starts commands failed: {text.splitlines()[-1]};"
        return "the process that starts commands was killed, and the running command with it;"


def _look_away(future: "asyncio.Future[int]") -> None:
    """An error that nobody asks for is not worth asyncio's complaint."""
    if not future.cancelled():
        future.exception()


def ending(code: int) -> str:
    """The exit code in words, those of signals by name."""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    by = f" ({signal.Signals(code - 128).name})" if code - 128 in set(signal.Signals) else ""
    return f"exit code {code}{by}"
