"""Blocking calls in daemon threads."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(function: Callable[[], T], name: str = "blocking call") -> T:
    """Run a blocking call in a daemon thread so that process exit never waits for it.

    The thread runs in a copy of the current context, so it belongs to the same tool call. Cancelling this coroutine
    abandons the thread: a thread cannot be cancelled.

    Raises:
        Exception: whatever `function` raises.
        RuntimeError: `function` raised `StopIteration`, `SystemExit`, `KeyboardInterrupt` or a similar exception,
            which would stop the event loop.
    """
    loop, context = asyncio.get_running_loop(), copy_context()
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return  # cancelled in the meantime
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def run() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except StopIteration as stop:
            error = RuntimeError(f"StopIteration: {stop}")
        except Exception as raised:
            error = raised
        except BaseException as raised:
            error = RuntimeError(f"{type(raised).__name__}: {raised}")
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future
