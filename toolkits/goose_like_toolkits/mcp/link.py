"""One life of a connection: the SDK's client, entered and left by one task."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextvars import Context
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.providers.connection import describe_cause

from .stdio import StdioTransport

_CLOSE_LIMIT_S = 5.0
_SETTLE_S = 2.0


class SilentError(Exception):
    """A server that did not answer at its start in time."""


class Link:
    """An SDK client that lives in a task of its own, since the scopes of anyio belong to one task.

    Other tasks send requests through `client`. `end` says why the link ended; it is empty while the link is open.
    """

    def __init__(self, on_end: Callable[["Link"], None]) -> None:
        """Open nothing. `on_end` is called when the server ends the link."""
        self.client: Any = None
        self.stdio: StdioTransport | None = None
        self.status = 0
        """The HTTP status of the last answer."""
        self.end = ""
        self._on_end = on_end
        self._leaving = asyncio.Event()
        self._ready = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None

    def note_status(self, status: int) -> None:
        """Keep the status of an answer over HTTP."""
        self.status = status

    def leave(self) -> None:
        """Let the task leave the client: the server has ended."""
        self._leaving.set()

    @property
    def is_open(self) -> bool:
        """True while requests can be sent."""
        return self._ready.is_set() and not self._leaving.is_set() and not self.end

    async def open(self, client: Any, limit_s: float) -> None:
        """Enter the SDK's client.

        Raises:
            SilentError: the server gave no answer in time.
            Exception: it ended, or gave an answer that is none.
        """
        silence_sdk()
        self.client = client
        self._task = asyncio.create_task(self._live(), context=Context())
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait({self._task, ready}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            if self._ready.is_set():
                return
            is_silent = not self._task.done()
            await self.close()
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            ready.cancel()
        if is_silent:
            raise SilentError
        raise find_cause(self._error) if self._error else SilentError

    async def close(self) -> None:
        """Leave the client, and wait until everything that the server started has ended."""
        self._is_closing = True
        task = self._task
        if task is None:
            return
        self._leaving.set()
        if not self._ready.is_set():
            task.cancel()
        _, late = await asyncio.wait({task}, timeout=_CLOSE_LIMIT_S)
        if late:
            task.cancel()
            await asyncio.wait({task}, timeout=_CLOSE_LIMIT_S)

    async def settle(self, error: BaseException) -> None:
        """After an error about a lost connection, wait a moment for the reason."""
        if is_lost(error) and self._task:
            await asyncio.wait({self._task}, timeout=_SETTLE_S)

    def describe_end(self) -> str:
        """Describe the end for the model."""
        if self.stdio and self.stdio.end:
            return self.stdio.describe_end()
        return self.end or "the connection was closed"

    async def _live(self) -> None:
        try:
            async with self.client:
                self._ready.set()
                await self._leaving.wait()
        except asyncio.CancelledError:
            if not self._is_closing:
                raise
        except BaseException as error:  # anyio wraps errors of its tasks into groups
            self._error = error
            if not isinstance(error, Exception):
                raise
        finally:
            self._note_end()

    def _note_end(self) -> None:
        self._leaving.set()
        if self.stdio and self.stdio.end:
            self.end = self.stdio.end
        elif self._error:
            self.end = describe_error(self._error)
        else:
            self.end = "closed"
        if self._ready.is_set() and not self._is_closing:
            self._on_end(self)


def silence_sdk() -> None:
    """Keep the SDK's log off the screen. Everything that matters in it is an error of a call or of the connection."""
    for name in ("mcp", "client"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def find_cause(error: BaseException) -> BaseException:
    """Find the error that says most: one of ours, else the first one in a group."""
    errors = list(_flatten(error))
    for each in errors:
        if isinstance(each, GooseLikeError):
            return each
    return errors[0]


def is_lost(error: BaseException) -> bool:
    """Check for the SDK's errors about a lost connection."""
    from anyio import BrokenResourceError, ClosedResourceError
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    cause = find_cause(error)
    if isinstance(cause, MCPError):
        return cause.error.code == CONNECTION_CLOSED
    return isinstance(cause, BrokenResourceError | ClosedResourceError)


def _flatten(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _flatten(each)
    else:
        yield error


def describe_error(error: BaseException) -> str:
    """Describe an error of the SDK in one line."""
    cause = find_cause(error)
    text = str(cause)
    if not isinstance(cause, GooseLikeError):
        text = describe_cause(cause) or type(cause).__name__
    return " ".join(text.split())
