"""Blocking calls in daemon threads."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

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
    context, future = copy_context(), Future[T]()

    def run() -> None:
        future.set_running_or_notify_cancel()  # from now on, a cancelled caller leaves the future as it is
        try:
            future.set_result(context.run(function))
        except BaseException as error:
            is_safe = isinstance(error, Exception) and not isinstance(error, StopIteration)
            future.set_exception(error if is_safe else RuntimeError(f"{type(error).__name__}: {error}"))

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)
