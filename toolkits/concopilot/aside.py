"""Aside: what blocks, in a thread that nobody has to wait for."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


async def aside(work: Callable[[], T]) -> T:
    """What a call gives that may block for long; it runs in a copy of this context, as part of the same tool's call.

    Where this is cancelled the call goes on by itself, at most until the process ends, which does not wait for it.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(given: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error:
            done.set_exception(error)
        else:
            done.set_result(given)  # type: ignore[arg-type]

    def act() -> None:
        given, error = None, None
        try:
            given = work()
        except BaseException as raised:  # it is raised where it is waited for
            error = raised
        with suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(settle, given, error)

    threading.Thread(target=copy_context().run, args=(act,), daemon=True).start()
    return await done
