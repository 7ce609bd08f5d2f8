"""Running commands, and the clients of the spawner processes that start them."""

import asyncio
import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.threads import run_in_thread

from . import spawner

MAX_OUTPUT_BYTES = 1 << 30
"""The output at which a command of the model is stopped."""
_CHUNK_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024
_LINGER_S = 0.1
_POLL_S = 0.01
_KILL_TIMEOUT_S = 5.0


class Process:
    """A running command with all processes that it started.

    Output and errors come as one stream, in the order of writing. Nothing is read ahead: without calls of `read`, the
    command blocks once the pipe (1 MiB) is full. `started_at` is a time of the event loop. `variables` are those with
    which the command started.
    """

    def __init__(
        self,
        spawner: "SpawnerClient",
        number: int,
        output: int,
        code: "asyncio.Future[int]",
        variables: Mapping[str, str],
    ) -> None:
        self.started_at = asyncio.get_running_loop().time()
        self.variables = variables
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
        while self._output is not None and self._left_bytes > 0:
            try:
                chunk = os.read(self._output, _CHUNK_BYTES)
            except BlockingIOError:
                if not await self._wait_readable(self._output):
                    break
                continue
            if self._code.done():
                self._left_bytes -= len(chunk)  # the command itself cannot have left more than a full pipe
            if not chunk:
                self._close()
            return chunk
        if self._output is not None:  # a background process keeps it open, and must not block
            asyncio.get_running_loop().add_reader(self._output, _discard, self._output)
            self._output = None
        return b""

    async def read_all(self, write: Callable[[bytes], object], limit_bytes: int = MAX_OUTPUT_BYTES) -> bool:
        """Pass the output to `write` until it ends. Return False at once when it is longer than the limit."""
        size_bytes = 0
        while chunk := await self.read():
            write(chunk)
            size_bytes += len(chunk)
            if size_bytes > limit_bytes:
                return False
        return True

    async def wait(self) -> int:
        """Wait for the exit code, negative after a death by signal. Raise GooseLikeError if the sandbox was killed."""
        return await asyncio.shield(self._code)

    @property
    def had_no_route(self) -> bool:
        """True if the command, or another one at that time, tried to reach a machine past the sandbox's proxy."""
        return self._number in self._spawner.unroutable

    async def count_processes(self) -> int:
        """Count the living processes of the command, including those in the background. Raise like `wait`."""
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
        killed_from = loop.time() + grace_s
        which: int = signal.SIGTERM if grace_s else signal.SIGKILL
        try:
            with suppress(GooseLikeError):  # the spawner is gone, together with its processes
                while await self._spawner.signal(self._number, which):
                    await asyncio.sleep(_POLL_S)
                    which = signal.SIGKILL if loop.time() >= killed_from else 0
                    if loop.time() > killed_from + _KILL_TIMEOUT_S:
                        self._spawner.disconnect()
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
        loop.add_reader(output, ready.cancel)  # unlike `set_result`, it may be called twice
        try:
            if not self._code.done():
                await asyncio.wait({ready, self._code}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                self._linger_until = self._linger_until or loop.time() + _LINGER_S
                left_s = max(0.0, self._linger_until - loop.time())
                await asyncio.wait({ready}, timeout=left_s)
            return ready.done()
        finally:
            loop.remove_reader(output)

    def _close(self) -> None:
        if self._output is not None:
            os.close(self._output)
            self._output = None


def _discard(output: int) -> None:
    with suppress(BlockingIOError):
        if not os.read(output, _CHUNK_BYTES):
            asyncio.get_running_loop().remove_reader(output)
            os.close(output)


ServeListener = Callable[[socket.socket, "SpawnerClient"], Coroutine[None, None, None]]
"""Serves the connections to a listening socket of a sandbox."""


class SpawnerClient:
    """A running `spawner.py` behind the command line `sandbox`, if any. All commands get the `variables`.

    The words of `confinement` are those of `spawner.confine`. `user_namespace` is a descriptor
    that the line of the sandbox names; it is closed here.
    """

    def __init__(
        self,
        sandbox: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        confinement: Sequence[str] = (),
        user_namespace: int | None = None,
    ) -> None:
        self._is_process_1 = "--as-pid-1" in sandbox
        self._variables = dict(variables or {})
        self._numbers = count(1)
        self._replies: dict[tuple[int, str], asyncio.Future[int]] = {}
        self.running: dict[int, tuple[str, asyncio.Future[int]]] = {}
        """The commands that run now: their text for people, and their exit code."""
        self.is_for_one_command = False
        """The first command to end takes everything else in the sandbox with it."""
        self.unroutable: set[int] = set()
        """The commands that tried to reach another machine and found no route."""
        self._serve: ServeListener | None = None
        self._listener: socket.socket | None = None
        self._server: asyncio.Task[None] | None = None
        kind = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, kind)
        program = [sys.executable, "-I", "-S", spawner.__file__, str(theirs.fileno())]
        passed = [theirs.fileno()]
        if user_namespace is not None:
            passed.append(user_namespace)
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [*sandbox, *program, *confinement],
                    pass_fds=passed,
                    env={},  # other processes can read it in /proc
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # goose_like handles Ctrl-C in the terminal
                )
        finally:
            if user_namespace is not None:
                os.close(user_namespace)
        self._socket.setblocking(False)
        self.is_alive = True
        self._has_started_command = False
        asyncio.get_running_loop().add_reader(self._socket, self._receive)

    def listen(self, port: int, serve: "ServeListener") -> None:
        """Listen on the loopback address of the sandbox. `serve` starts with the first connection."""
        self._serve = serve
        self.send(0, "listen", port)

    def _await_connection(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener, self._start_server, listener)

    def _start_server(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        if self._serve:
            self._server = loop.create_task(self._serve(listener, self))

    async def spawn(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        descriptors: Mapping[int, int] = {},
        subject: str = "",
        *,
        is_counted: bool = True,
    ) -> Process:
        """Start a command with additional variables, or raise GooseLikeError. Cancelling kills the command.

        `descriptors` are those of the command by their numbers there, at most two. A command with a subject, the text
        for people, is listed in `running`. One that is not counted is no process for `count_processes`.
        """
        for name in env:
            if not name or "=" in name:
                raise GooseLikeError(f"a variable can't be named {name!r}; give it a name without `=`")
        variables = self._variables | dict(env)
        request = _encode_request(argv, cwd, variables)
        number = next(self._numbers)
        started = self._expect(number, "started")
        code = self._expect(number, "code")
        verb = "spawn" if is_counted else "spawn-uncounted"
        output = self._send_request(number, verb, request, descriptors)
        if subject:
            self.running[number] = subject, code
            code.add_done_callback(lambda _: self.running.pop(number, None))
        try:
            await started
        except BaseException as error:
            os.close(output)
            if isinstance(error, asyncio.CancelledError):
                self.send(number, "signal", int(signal.SIGKILL))
            raise
        return Process(self, number, output, code, variables)

    def _send_request(self, number: int, verb: str, request: bytes, descriptors: Mapping[int, int]) -> int:
        """Send the request to start a command, and return the pipe of its output."""
        with ExitStack() as opened:
            try:
                memory = create_file(request)
                opened.callback(os.close, memory)
                output, theirs = os.pipe()
                opened.callback(os.close, theirs)
            except OSError as error:
                raise GooseLikeError(f"can't start the command: {error.strerror}; end other programs first") from error
            os.set_blocking(output, False)
            if sys.platform == "linux":
                with suppress(OSError):  # the number of large pipes per user is limited
                    fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            self._has_started_command = True
            self.send(number, verb, *descriptors, descriptors=[memory, theirs, *descriptors.values()])
        return output

    async def signal(self, number: int, which: int) -> int:
        """Signal every process of a command, and return how many were alive."""
        if self.is_for_one_command and not self.is_alive:
            return 0
        alive = self._expect(number, "alive")
        self.send(number, "signal", int(which))
        return await asyncio.shield(alive)

    async def count_processes(self) -> int:
        """Count the living processes of all commands. Raise GooseLikeError if the spawner is gone."""
        return await self.signal(0, 0)

    def send(self, number: int, *words: object, descriptors: Sequence[int] = ()) -> None:
        """Send one packet. If the spawner is gone, all pending replies fail."""
        packet = " ".join(map(str, (number, *words))).encode()
        if self.is_alive:
            try:
                socket.send_fds(self._socket, [packet], descriptors)
            except OSError:
                self.disconnect()

    async def close(self) -> None:
        """End the spawner and everything that it started."""
        self.disconnect("the session is over")
        try:
            await run_in_thread(self._process.wait, 5)
        except subprocess.TimeoutExpired:
            self._process.kill()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _expect(self, number: int, kind: str) -> "asyncio.Future[int]":
        """Return the future of a reply. Two callers may wait for the same reply."""
        if not self.is_alive:
            raise GooseLikeError("the process that starts commands is gone; try again")
        future = self._replies.get((number, kind))
        if future is None:
            future = asyncio.get_running_loop().create_future()
            future.add_done_callback(_take_exception)  # many wait for no reply
            self._replies[number, kind] = future
        return future

    def _receive(self) -> None:
        """Read all packets that arrived. An invalid packet, which a command may have forged, ends the connection."""
        with suppress(BlockingIOError):
            while self.is_alive:
                try:
                    packet, descriptors, _, _ = socket.recv_fds(self._socket, 4096, 1)
                    self._handle(packet, descriptors)
                except (ValueError, ConnectionError):
                    self.disconnect()

    def _handle(self, packet: bytes, descriptors: Sequence[int]) -> None:
        """Handle a packet of the spawner. Raise ValueError if it is invalid."""
        number, kind, value = packet.decode(errors="replace").split(" ", 2)
        match kind:
            case "listening":
                self._await_connection(socket.socket(fileno=descriptors[0]))
            case "unroutable":
                self.unroutable.add(int(number))
            case "error":
                self._fail(f"can't start the command: {value}", (int(number), "started"), (int(number), "code"))
            case _:
                future = self._replies.pop((int(number), kind), None)
                if future is not None and not future.done():
                    future.set_result(int(value))
        if self.is_for_one_command and kind in ("code", "error"):
            self.disconnect("the command has ended")

    def _fail(self, why: str, *keys: tuple[int, str]) -> None:
        for key in keys:
            future = self._replies.pop(key, None)
            if future is not None and not future.done():
                future.set_exception(GooseLikeError(why))

    def disconnect(self, why: str = "") -> None:
        """End the connection, and fail every pending reply. Without a reason, kill the spawner and its commands."""
        if not self.is_alive:
            return
        self.is_alive = False
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        if self._server:
            self._server.cancel()
        if self._listener:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
        if not why:
            self._process.kill()
            why = f"{self._read_error()} the next command starts a new one"
        # Inside a sandbox, all processes die with process 1.
        if self._has_started_command and not self._is_process_1:
            spawner.signal_command(spawner.format_mark(self._process.pid), signal.SIGKILL)
        self._fail(why, *self._replies)

    def _read_error(self) -> str:
        with suppress(OSError):
            if self._process.stderr is not None:
                os.set_blocking(self._process.stderr.fileno(), False)
                data = self._process.stderr.read() or b""
                text = data.decode(errors="replace").strip()
                if text:
                    return f"the process that starts commands failed: {text.splitlines()[-1]};"
        return "the process that starts commands was killed, and the running command with it;"


def _take_exception(future: "asyncio.Future[int]") -> None:
    """Take the exception of a reply, so that the loop reports none that nobody waits for."""
    if not future.cancelled():
        future.exception()


def _encode_request(argv: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> bytes:
    """Encode the request for a command, as `spawner.start_command` reads it. Raise GooseLikeError if it is invalid."""
    pairs = [f"{name}={value}" for name, value in variables.items()]
    words = [str(cwd), str(len(argv)), *argv, *pairs]
    if any("\0" in word for word in words):
        raise GooseLikeError("a command can't hold a NUL byte; write it as \\0 or in a file")
    try:
        return "\0".join(words).encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise GooseLikeError(f"the command is no valid text: {error.reason}; write it again") from error


def create_file(data: bytes) -> int:
    """Create a file without a name, and return its descriptor."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("request")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        os.pwrite(descriptor, data, 0)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def describe_exit(code: int) -> str:
    """Describe an exit code in words, with signals by name."""
    if code < 0:
        name = _find_signal_name(-code) or f"signal {-code}"
        return f"killed by {name}"
    name = _find_signal_name(code - 128)
    if name:
        return f"exit code {code} ({name})"
    return f"exit code {code}"


def _find_signal_name(number: int) -> str:
    if number in set(signal.Signals):
        return signal.Signals(number).name
    return ""
