"""Aside: what blocks, in a thread that nobody has to wait for."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T], name: str = "aside") -> T:
    """What a call gives that may block for long; it runs in a copy of this context, as part of the same tool's call.

    Where this is cancelled the call goes on by itself, at most until the process ends: its thread is a daemon, unlike
    those of `asyncio.to_thread`, because it can't be cancelled and the end of the process must not wait for it.

    Raises:
        Exception: what it raised.
        RuntimeError: it raised what would end the loop (`sys.exit`, KeyboardInterrupt), or what no future carries.
    """
    loop, context = asyncio.get_running_loop(), copy_context()
    done: asyncio.Future[T] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if done.done():
            return  # cancelled meanwhile: nobody waits for this
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def act() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(work)
        except StopIteration as stop:
            error = RuntimeError(f"StopIteration: {stop}")
        except Exception as raised:
            error = raised
        except BaseException as raised:
            error = RuntimeError(f"{type(raised).__name__}: {raised}")
        with suppress(RuntimeError):  # the loop is closed: nobody waits for this
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=act, name=name, daemon=True).start()
    return await done
