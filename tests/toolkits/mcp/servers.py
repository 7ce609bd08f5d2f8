"""Servers for tests, and a session around a connection to one."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from goose_like_toolkits.mcp.connection import Connection
from goose_like_toolkits.mcp.server import ServerConfig
from goose_like_toolkits.mcp.surroundings import Surroundings

from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.core.events import Answer, Logged
from goose_like.core.notifier import Recorder
from goose_like.workspace.workspace import Workspace

SCRIPTS = Path(__file__).parent / "scripts"
GIT = (str(Path(sys.executable).parent / "mcp-server-git"),)
FETCH = str(Path(sys.executable).parent / "mcp-server-fetch")


def script(name: str, *arguments: str) -> tuple[str, ...]:
    """The command of a script in the folder `scripts`."""
    return (sys.executable, str(SCRIPTS / name), *arguments)


def find_port() -> int:
    """A port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start_at(transport: str, port: int) -> "subprocess.Popen[bytes]":
    """Start the demo server at a port."""
    server = subprocess.Popen(script("demo_server.py", transport, str(port)), stderr=subprocess.DEVNULL)
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert server.poll() is None
            time.sleep(0.05)
        else:
            return server
    raise AssertionError("the server does not start")


@contextmanager
def serve(transport: str) -> Iterator[str]:
    """The address of a demo server that runs."""
    port = find_port()
    server = start_at(transport, port)
    try:
        path = "sse" if transport == "sse" else "mcp"
        yield f"http://127.0.0.1:{port}/{path}"
    finally:
        server.kill()
        server.wait()


async def wait_until(is_so: Callable[[], object]) -> None:
    """Wait at most a minute."""
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class Desk:
    """What a session around connections holds."""

    def __init__(self, root: Path, workspace: Workspace, recorder: Recorder) -> None:
        self.root, self.workspace, self.recorder = root, workspace, recorder
        self.shown: list[str] = []
        self.connections: list[Connection] = []
        self.around = Surroundings(workspace, recorder, self.shown.append, root.parent / "outputs")

    def connect(self, *command: str, era: str = "", probe_s: float = 60, url: str = "", **fields: Any) -> Connection:
        """Create a connection. The slow machines of tests get a longer limit for the probe."""
        if url:
            fields.setdefault("transport", "http")
        server = ServerConfig(name="demo", origin="the test", command=command, url=url, **fields)
        connection = Connection(server, self.around, era=era, probe_s=probe_s)
        self.connections.append(connection)
        return connection

    @property
    def logged(self) -> list[str]:
        return [event.text for event in self.recorder.events if isinstance(event, Logged)]

    @property
    def asked(self) -> list[str]:
        return [question.text for question in self.recorder.questions]


@asynccontextmanager
async def desk(
    folder: Path,
    *,
    mode: SandboxMode = "workspace",
    approval: ApprovalMode = "auto",
    recorder: Recorder | None = None,
) -> AsyncIterator[Desk]:
    root = folder / "project"
    root.mkdir(exist_ok=True)
    recorder = recorder or Recorder(Answer(choice="allow", by="person"))
    where = Workspace(root, mode=mode, approval=approval, notifier=recorder, session_folder=folder / "session")
    async with where as workspace:
        made = Desk(root, workspace, recorder)
        try:
            yield made
        finally:
            for connection in made.connections:
                await connection.close()
