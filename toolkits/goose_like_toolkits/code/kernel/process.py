"""One kernel process with its private folder, from its start to its end."""

import asyncio
import json
import os
import re
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.core.threads import run_in_thread
from goose_like.toolkit import ToolError, Workspace
from goose_like.workspace.processes.process import Process, describe_exit
from goose_like_toolkits.code import worker
from goose_like_toolkits.code.worker import READY_LINE

from .channels import Channels, Message, make_connection_info

_WORKER_PACKAGE = "goose_like_kernel"
_WORKER_SOURCE = Path(worker.__file__).parent
_START_S = 60.0
_OUTPUT_BYTES = 16_384
_OUTPUT_LINES = 8
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CELL_FRAME = re.compile(r'File ".*ipykernel_\d+/\d+\.py"')
_FRAMES_BELOW_CELL = re.compile(r"^.*IPython/core/interactiveshell\.py", re.MULTILINE)

# The folder is on `sys.path` only for this import, because files in the workspace must not shadow modules of the start.
_BOOT = f"""
import sys
folder = sys.argv.pop()
sys.path[:] = [folder, *filter(None, sys.path)]
from {_WORKER_PACKAGE}.launch import main
sys.path.remove(folder)
main(folder + "/connection.json")
"""


class KernelFolder:
    """A folder with the worker's code, its connection file, its sockets and its artifacts.

    File descriptors hold the folder and `artifacts`: commands may write there too, so a name could lead elsewhere.
    """

    def __init__(self, tmp: Path) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="kernel-", dir=tmp))
        self.key = secrets.token_hex(32)
        self._descriptor = _open_folder(self.path)
        for source in [_WORKER_SOURCE, *sorted(_WORKER_SOURCE.rglob("*"))]:
            target = self._held_path / _WORKER_PACKAGE / source.relative_to(_WORKER_SOURCE)
            if source.suffix == ".py":
                _write_new(target, source.read_bytes())
            elif source.is_dir() and source.name != "__pycache__":
                target.mkdir(mode=0o700)
        connection_info = json.dumps(make_connection_info(self.key))
        _write_new(self._held_path / "connection.json", connection_info.encode())
        (self._held_path / "artifacts").mkdir(mode=0o700)
        self.artifacts = _open_folder(self._held_path / "artifacts")

    @property
    def _held_path(self) -> Path:
        return Path(f"/proc/self/fd/{self._descriptor}")

    @property
    def sockets(self) -> str:
        """Prefix of the socket paths, short enough for the 108 bytes of a socket path (unix(7))."""
        return f"{self._held_path}/k"

    def write_reply(self, name: str, data: Mapping[str, str]) -> None:
        """Write an answer for the kernel as a whole. Raise OSError if there is a file of this name."""
        temporary = f"{name}.new"
        _write_new(self._held_path / temporary, json.dumps(data).encode())
        os.rename(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    async def remove(self) -> None:
        """Remove the folder with all files."""
        for descriptor in (self._descriptor, self.artifacts):
            with suppress(OSError):
                os.close(descriptor)
        self._descriptor = -1
        self.artifacts = -1
        await run_in_thread(shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Cell:
    """The running cell. `request` is the id of the message that started it."""

    request: str
    on_output: Callable[[Message], None]
    done: "asyncio.Future[str]"

    def ends_with(self, message: Message) -> bool:
        """Check whether a status message tells the end of this cell."""
        if message["content"]["execution_state"] != "idle":
            return False
        request: str = message["parent_header"]["msg_id"]
        return request == self.request


class KernelProcess:
    """A kernel's process with its channels. `exit_reason` is empty while the process lives."""

    def __init__(self, folder: KernelFolder, process: Process, on_message: Callable[[Message], None]) -> None:
        self.folder = folder
        self.exit_reason = ""
        self._process = process
        self._on_message = on_message
        self._output = bytearray()
        self._ready = asyncio.get_running_loop().create_future()
        self._channels: Channels | None = None
        self._cell: _Cell | None = None
        self._tasks = [_create_detached_task(self._watch_output())]

    @classmethod
    async def start(
        cls, workspace: Workspace, python: str, setup: Message, on_message: Callable[[Message], None]
    ) -> "KernelProcess":
        """Start a kernel that accepts cells. `setup` is the first message to its plugin manager.

        Raises:
            ToolError: This interpreter cannot run a kernel.
            GooseLikeError: The process cannot be started.
        """
        folder = await run_in_thread(KernelFolder, workspace.tmp)
        inside = workspace.path_in_sandbox(folder.path)
        kernel = None
        try:
            process = await workspace.spawn(
                [python, "-c", _BOOT, inside],
                env=_make_variables(workspace, inside),
                writes=False,
                subject="the Python kernel",
            )
            kernel = cls(folder, process, on_message)
            libraries = await Channels.import_libraries()
            async with asyncio.timeout(_START_S):
                await asyncio.shield(kernel._ready)
                if kernel.exit_reason:
                    output = kernel.last_output or kernel.exit_reason
                    raise ToolError(_explain_failed_start(python, output))
                kernel._channels = Channels(libraries, make_connection_info(folder.key, folder.sockets))
                await kernel._channels.wait_until_open()
        except BaseException as error:
            await asyncio.shield(kernel.close() if kernel else folder.remove())
            if isinstance(error, TimeoutError):
                raise ToolError(f"the kernel did not start within {_START_S:g} s; try again") from error
            raise
        kernel._channels.open_comm(setup | {"artifacts": f"{inside}/artifacts"})
        kernel._tasks.append(_create_detached_task(kernel._receive_messages(kernel._channels)))
        return kernel

    async def run(self, code: str, on_output: Callable[[Message], None]) -> "asyncio.Future[str]":
        """Start a cell and return a future for its end.

        The future's result is "" at the end of the cell, or the exit reason if the process ended. Until then
        `on_output` takes all published messages.
        """
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if self._channels is None or self.exit_reason:
            done.set_result(self.exit_reason)
        else:
            request = await self._channels.execute(code)
            self._cell = _Cell(request, on_output, done)
        return done

    def send(self, data: Message) -> None:
        """Send a message to the plugin manager of the kernel."""
        if self._channels and not self.exit_reason:
            self._channels.send_comm(data)

    def interrupt(self) -> None:
        """Interrupt the running cell, as Ctrl-C would."""
        self._process.interrupt()

    @property
    def last_output(self) -> str:
        """Last lines that the process printed outside its cells; after a crash, the place of the crash."""
        text = self._output.decode(errors="replace").replace(READY_LINE.decode(), "")
        _, crash, stack = text.rpartition("Fatal Python error")
        if crash:  # keep the calls down to the cell, without those of IPython
            calls = _FRAMES_BELOW_CELL.split(stack)[0]
            text = crash + _CELL_FRAME.sub('File "<cell>"', calls)
        lines = [line for line in text.splitlines() if line.strip()]
        shown = lines[:_OUTPUT_LINES] if crash else lines[-_OUTPUT_LINES:]
        return "\n".join(shown)

    async def close(self) -> None:
        """End the process and all processes that it started."""
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._process.stop(0)
        if self._channels:
            self._channels.close()
        self._set_exited("ended")
        await self.folder.remove()

    async def _watch_output(self) -> None:
        """Read what the process prints outside its cells, so that a full pipe never blocks it, and notice its end."""
        try:
            while chunk := await self._process.read():
                self._output += chunk
                if READY_LINE in self._output and not self._ready.done():
                    self._ready.set_result(None)
                del self._output[:-_OUTPUT_BYTES]
            code = await self._process.wait()
            self._set_exited(describe_exit(code))
        except GooseLikeError as error:
            self._set_exited(str(error))

    async def _receive_messages(self, channels: Channels) -> None:
        try:
            while True:
                message = await channels.receive()
                self._dispatch(channels, message)
                await asyncio.sleep(0)  # a waiting message is received without a pause: a flood would block the loop
        except Exception as error:  # code in the kernel knows the key, so it can sign messages of any shape
            self._process.interrupt()
            self._set_exited(f"its messages can't be trusted: {type(error).__name__}: {error}")

    def _dispatch(self, channels: Channels, message: Message) -> None:
        """Dispatch a message from the sandbox; ignore malformed ones."""
        with suppress(KeyError, TypeError, AttributeError, ValueError):
            if data := channels.read_comm(message):
                self._on_message(data)
                return
            cell = self._cell
            if cell is None:
                return
            if message["msg_type"] != "status":
                cell.on_output(message)
            elif cell.ends_with(message):
                self._cell = None
                cell.done.set_result("")

    def _set_exited(self, reason: str) -> None:
        self.exit_reason = self.exit_reason or reason
        if not self._ready.done():
            self._ready.set_result(None)
        if self._cell:
            done = self._cell.done
            self._cell = None
            done.set_result(self.exit_reason)


def _create_detached_task(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Create a task without the context of the current tool call, because it outlives the call."""
    return asyncio.create_task(work, context=Context())


def _make_variables(workspace: Workspace, inside: str) -> dict[str, str]:
    """Return environment variables that isolate the kernel from the settings of the user's notebooks."""
    variables = {"IPYTHONDIR": f"{inside}/ipython", "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    if workspace.mode != "full":  # home is read-only
        variables["MPLCONFIGDIR"] = workspace.path_in_sandbox(workspace.tmp / ".matplotlib")
    return variables


def _explain_failed_start(python: str, output: str) -> str:
    if "No module named 'ipykernel'" in output:
        return (
            f"{python} has no ipykernel; install it there ({shlex.quote(python)} -m pip install ipykernel), or "
            "remove `python` from the config of the toolkit"
        )
    return f"the kernel did not start: {output}"


def _open_folder(folder: Path) -> int:
    return os.open(folder, _FOLDER_FLAGS)


def _write_new(file: Path, data: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as new:
        new.write(data)
