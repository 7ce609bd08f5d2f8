"""The visit of a login page: a browser that comes back to this machine, or an address that the person pastes."""

import asyncio
import os
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import field
from urllib.parse import parse_qs, urlsplit

from goose_like.core.dataclass import dataclass
from goose_like.core.errors import UsageError
from goose_like.core.threads import run_in_daemon_thread
from goose_like.terminal.escape import escape_invisible

_PATH = "/callback"
_MAX_LINE_BYTES = 16_384
_READ_S = 5.0
_PAGE = "<!doctype html><meta charset=utf-8><title>goose-like</title><p>{text}"


@dataclass(slots=True)
class CallbackServer:
    """A server on this machine to which a login leads. Only the answer with the expected `state` counts."""

    port: int = 0
    state: str = ""
    answer: "asyncio.Future[str]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def url(self) -> str:
        """The address to which a login leads."""
        return f"http://127.0.0.1:{self.port}{_PATH}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            async with asyncio.timeout(_READ_S):
                line = await reader.readline()
            target = line.decode("latin-1").split(" ")[1]
            has_answer = self._take(target)
        except (IndexError, ValueError, TimeoutError, OSError):
            has_answer = False
        status = "404 Not Found"
        text = "This is not the page of a login."
        if has_answer:
            status = "200 OK"
            text = "goose-like has the answer. You can close this page."
        page = _PAGE.format(text=text)
        head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\nConnection: close\r\n"
        writer.write(f"{head}\r\n{page}".encode())
        writer.close()

    def _take(self, target: str) -> bool:
        """Take the target of a request as the answer if it is one."""
        parts = urlsplit(target)
        states = parse_qs(parts.query).get("state", [])
        # Any page in the browser can send requests here, but does not know the state.
        if parts.path != _PATH or not self.state or states != [self.state]:
            return False
        if not self.answer.done():
            self.answer.set_result(f"{self.url}?{parts.query}")
        return True


@asynccontextmanager
async def open_callback(port: int = 0, *, is_fixed: bool = False) -> AsyncIterator[CallbackServer]:
    """Listen on a port of this machine, or on any other if it is taken and not fixed.

    Raises:
        UsageError: the fixed port is taken.
    """
    callback = CallbackServer()
    try:
        server = await asyncio.start_server(callback.handle, "127.0.0.1", port, limit=_MAX_LINE_BYTES)
    except OSError as error:
        if is_fixed:
            text = f"the port {port} of this login is in use ({error.strerror}); end the program that uses it"
            raise UsageError(text) from error
        server = await asyncio.start_server(callback.handle, "127.0.0.1", 0, limit=_MAX_LINE_BYTES)
    async with server:
        callback.port = server.sockets[0].getsockname()[1]
        yield callback


async def visit(url: str, callback: CallbackServer, tell: Callable[[str], None], *, has_browser: bool) -> str:
    """Let the person log in at a page. Return the address to which the page led.

    A person without a browser on this machine opens the page elsewhere, and pastes the address at the end.

    Raises:
        UsageError: standard input ended, and no browser came back.
    """
    states = parse_qs(urlsplit(url).query).get("state", [])
    callback.state = states[0] if states else ""
    tell(f"log in at this page:\n\n  {escape_invisible(url)}\n")
    is_open = has_browser and await run_in_daemon_thread(lambda: webbrowser.open(url))
    if is_open:
        tell("waiting for the browser; if it runs on another machine, paste the address at which it ends:")
    else:
        tell("open it in any browser. It ends at a page that cannot be shown; paste the address of that page here:")
    typing = asyncio.ensure_future(_read_address())
    await asyncio.wait({typing, callback.answer}, return_when=asyncio.FIRST_COMPLETED)
    if not callback.answer.done() and not typing.result() and is_open:
        await callback.answer  # nobody can type here, but the browser may come back
    if callback.answer.done():
        typing.cancel()
        return callback.answer.result()
    address = typing.result()
    if not address:
        raise UsageError("no address was given; start again, and paste the address at which the login ends")
    return address


async def _read_address() -> str:
    """Read a line in a thread that the end of the process does not wait for."""
    line: str = await run_in_daemon_thread(sys.stdin.readline, "reading of an address")
    return line.strip()


def find_browser() -> bool:
    """Return whether this machine can show a page to the person: not in a terminal over SSH, or without a screen."""
    if os.environ.get("BROWSER"):
        return True
    if os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
