"""Blocking calls in threads, whose exceptions always reach the caller."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def run_in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking call to its end in a thread, also after a cancellation: process exit waits for it.

    Raises:
        Exception: whatever `function` raises.
        RuntimeError: `function` raised an exception that no future can carry, such as `StopIteration`.
    """
    return await asyncio.to_thread(_call, partial(function, *args, **kwargs))


def is_running(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether the caller runs in this event loop, and not in another thread."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:  # no event loop runs in this thread
        return False


def run_in_executor(executor: Executor | None, function: Callable[[], T]) -> "asyncio.Future[T]":
    """Run a blocking call in a thread of an executor, None for that of the loop. It raises like `run_in_thread`."""
    return asyncio.get_running_loop().run_in_executor(executor, _call, function)


async def run_in_daemon_thread(function: Callable[[], T], name: str = "blocking call") -> T:
    """Run a blocking call in a daemon thread so that process exit never waits for it.

    The thread runs in a copy of the current context, so it belongs to the same tool call. Cancelling this coroutine
    abandons the thread: a thread cannot be cancelled. It raises like `run_in_thread`.
    """
    context = copy_context()
    future = Future[T]()

    def run() -> None:
        # From now on, a cancelled caller leaves the future as it is.
        if not future.set_running_or_notify_cancel():
            return
        try:
            value = context.run(_call, function)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(value)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)


def _call(function: Callable[[], T]) -> T:
    """Call a function. Turn an exception that would stop the event loop, or never reach it, into a RuntimeError."""
    try:
        return function()
    except (StopIteration, concurrent.futures.CancelledError) as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
    except Exception:
        raise
    except BaseException as error:  # SystemExit, KeyboardInterrupt and the like
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
