"""Kernel: one process that runs cells one after another, from its start to its end."""

import asyncio
import json
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from importlib.resources import files
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.toolkit import ToolError, Workspace
from goose_like.workspace.workspace import Process, describe_exit

from .channels import Channels, Message, connection

_PACKAGE = "goose_like_kernel"
_READY = b"the kernel is ready\n"  # as in inside/launch.py
_START_S = 60.0
_SAID_BYTES = 16_384
_SAID_LINES = 8
_CELL_FRAME = re.compile(r'File ".*ipykernel_\d+/\d+\.py"')
_BELOW_CELL = re.compile(r"^.*IPython/core/interactiveshell\.py", re.MULTILINE)

# Nothing of the workspace may be taken for a module that the start needs, so the folder itself is no place for them.
_BOOT = f"""
import sys
folder = sys.argv.pop()
sys.path[:] = [folder, *filter(None, sys.path)]
from {_PACKAGE}.launch import main
sys.path.remove(folder)
main(folder + "/connection.json")
"""


class Kernel:
    """A kernel's process and its channels. `end` says how it ended, and is empty while it lives."""

    def __init__(self, place: "Place", process: Process, hear: Callable[[Message], None]) -> None:
        self.place = place
        self.end = ""
        self._process = process
        self._hear = hear
        self._said = bytearray()
        self._ready = asyncio.get_running_loop().create_future()
        self._channels: Channels | None = None
        self._cell: tuple[str, Callable[[Message], None], asyncio.Future[str]] | None = None
        self._tasks = [_apart(self._watch())]

    @classmethod
    async def start(
        cls, workspace: Workspace, python: str, setup: Message, hear: Callable[[Message], None]
    ) -> "Kernel":
        """A kernel that takes cells. `setup` is the first message to its desk, `hear` takes what that says.

        Raises:
            ToolError: this Python can't run one.
            GooseLikeError: no process can be started.
        """
        place = await asyncio.to_thread(Place, workspace.tmp)
        inside = workspace.path_in_sandbox(place.folder)
        kernel = None
        try:
            process = await workspace.spawn(
                [python, "-c", _BOOT, inside],
                env=_variables(workspace, inside),
                writes=False,
                subject="the Python kernel",
            )
            kernel = cls(place, process, hear)
            libraries = await Channels.libraries()
            async with asyncio.timeout(_START_S):
                await asyncio.shield(kernel._ready)
                if kernel.end:
                    raise ToolError(_why_not_started(python, kernel.last_words or kernel.end))
                kernel._channels = Channels(libraries, connection(place.key, place.sockets))
                await kernel._channels.opened()
        except BaseException as error:
            await asyncio.shield(kernel.close() if kernel else place.remove())
            if isinstance(error, TimeoutError):
                raise ToolError(f"the kernel did not start within {_START_S:g} s; try again") from error
            raise
        kernel._channels.open(setup | {"artifacts": f"{inside}/artifacts"})
        kernel._tasks.append(_apart(kernel._listen(kernel._channels)))
        return kernel

    async def run(self, code: str, take: Callable[[Message], None]) -> "asyncio.Future[str]":
        """Begins a cell. What it gives is done when the cell is: with "", or with how the process ended meanwhile.

        `take` is given all that is published until then.
        """
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if self._channels is None or self.end:
            done.set_result(self.end)
        else:
            self._cell = (await self._channels.execute(code), take, done)
        return done

    def tell(self, data: Message) -> None:
        """A message to its desk."""
        if self._channels and not self.end:
            self._channels.tell(data)

    def interrupt(self) -> None:
        """Asks the running cell to stop, as Ctrl-C would."""
        self._process.interrupt()

    @property
    def last_words(self) -> str:
        """What the process itself said last, beside its cells: of a crash where it was."""
        text = self._said.decode(errors="replace").replace(_READY.decode(), "")
        _, crash, stack = text.rpartition("Fatal Python error")
        if crash:  # with the calls down to the cell, and not those of IPython that led there
            text = crash + _CELL_FRAME.sub('File "<cell>"', _BELOW_CELL.split(stack)[0])
        lines = [line for line in text.splitlines() if line.strip()]
        return "\n".join(lines[:_SAID_LINES] if crash else lines[-_SAID_LINES:])

    async def close(self) -> None:
        """Ends it and all that it started, at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._process.stop(0)
        if self._channels:
            self._channels.close()
        self._ended("ended")
        await self.place.remove()

    async def _watch(self) -> None:
        """Reads what the process says past its channels, so that it never waits for us, and tells of its end."""
        try:
            while chunk := await self._process.read():
                self._said += chunk
                if _READY in self._said and not self._ready.done():
                    self._ready.set_result(None)
                del self._said[:-_SAID_BYTES]
            self._ended(describe_exit(await self._process.wait()))
        except GooseLikeError as error:
            self._ended(str(error))

    async def _listen(self, channels: Channels) -> None:
        try:
            while True:
                self._take(channels, await channels.next())
        except Exception as error:  # of any kind: whoever has the key may sign messages of any shape
            self._process.interrupt()
            self._ended(f"its messages can't be trusted: {type(error).__name__}: {error}")

    def _take(self, channels: Channels, message: Message) -> None:
        """One message. It comes from the sandbox: what makes no sense is passed over."""
        with suppress(KeyError, TypeError, AttributeError, ValueError):
            if data := channels.told(message):
                self._hear(data)
            elif self._cell:
                began, take, done = self._cell
                if message["msg_type"] != "status":
                    take(message)
                elif message["content"]["execution_state"] == "idle" and message["parent_header"]["msg_id"] == began:
                    self._cell = None
                    done.set_result("")

    def _ended(self, how: str) -> None:
        self.end = self.end or how
        if not self._ready.done():
            self._ready.set_result(None)
        if self._cell:
            *_, done = self._cell
            self._cell = None
            done.set_result(self.end)


class Place:
    """A kernel's folder in the private one: its program, its connection, its sockets, and what it hands over.

    Held by a descriptor, since commands may write there: a name could lead elsewhere by now.
    """

    def __init__(self, tmp: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kernel-", dir=tmp))
        self.key = secrets.token_hex(32)
        self._held = _opened(self.folder)
        package = self._made(_PACKAGE)
        for file in files(__package__).joinpath("worker").iterdir():
            if file.name.endswith(".py"):
                _write(package / file.name, file.read_bytes())
        _write(self._path / "connection.json", json.dumps(connection(self.key)).encode())
        self._made("artifacts")
        self.artifacts = _opened(self._path / "artifacts")

    @property
    def _path(self) -> Path:
        return Path(f"/proc/self/fd/{self._held}")

    @property
    def sockets(self) -> str:
        """How their paths begin: short, however long that of the folder is (108 bytes at most: unix(7))."""
        return f"{self._path}/k"

    def _made(self, name: str) -> Path:
        (self._path / name).mkdir(mode=0o700)
        return self._path / name

    async def remove(self) -> None:
        """Nothing of it is left."""
        for descriptor in (self._held, self.artifacts):
            with suppress(OSError):
                os.close(descriptor)
        self._held = self.artifacts = -1
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


def _apart(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """A task that belongs to no call of a tool: what it tells is told also when the call that began it is over."""
    return asyncio.create_task(work, context=Context())


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _write(file: Path, data: bytes) -> None:
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        new.write(data)


def _variables(workspace: Workspace, inside: str) -> dict[str, str]:
    """Settings of its own, so that those of the person's notebooks neither help nor disturb."""
    variables = {"IPYTHONDIR": f"{inside}/ipython", "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    if workspace.mode == "full":
        return variables
    return variables | {
        "MPLCONFIGDIR": workspace.path_in_sandbox(workspace.tmp / ".matplotlib")
    }  # the person's is read-only


def _why_not_started(python: str, said: str) -> str:
    if "No module named 'ipykernel'" in said:
        return (
            f"{python} has no ipykernel; tell the person to install it there (pip install ipykernel), or to leave "
            "`python` out of the toolkit's config"
        )
    return f"the kernel did not start: {said}"
