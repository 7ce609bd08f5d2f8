"""The worker process of components, and the JSON lines between it and goose_like."""

import asyncio
import codecs
import json
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from itertools import count
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.toolkit import ToolError
from goose_like.workspace.processes.process import Process, describe_exit

from ..bridges.exchange import SpentError
from .failures import MAX_EQUAL_FAILURES, FailureWatch, TracebackReader

Message = dict[str, Any]
Answer = Callable[[str, Message], Awaitable[Any]]
"""Answers a request of the worker: a method and its parameters. An error goes to the component."""

WORKER_FOLDER = Path(__file__).parents[1] / "worker"

_INTERRUPT_GRACE_S = 4.0
_START_S = 60.0
_KEPT_BYTES = 16_384
_SHOWN_LINES = 8
_MAX_LINE_BYTES = 256 << 20
_MAX_ERROR_CHARACTERS = 8_000
_MAX_REQUESTS = 64
_EXIT_WAIT_S = 1.0
_MAX_UNANSWERED = 3

# The worker's files form a package of their own, under a name that no component uses.
_BOOT = """
import importlib.util, sys
folder = sys.argv.pop()
spec = importlib.util.spec_from_file_location(
    "goose_like_worker", folder + "/__init__.py", submodule_search_locations=[folder]
)
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
from goose_like_worker.launch import main
main()
"""


class WorkerError(ToolError):
    """The worker ended with this call, or had to be ended; everything that components held is gone."""


class ComponentError(ToolError):
    """An error that a component raised."""


class TimeLimit:
    """A time limit that stands still at times, such as while the worker waits for goose_like."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self._open_requests = 0
        self._left_s: float | None = None

    def pause(self) -> None:
        """Stand still until each pause has its `resume`."""
        when = self._timeout.when()
        self._open_requests += 1
        if self._open_requests == 1 and when is not None and not self._timeout.expired():
            self._left_s = when - asyncio.get_running_loop().time()
            self._timeout.reschedule(None)

    def resume(self) -> None:
        """Go on after a pause."""
        self._open_requests -= 1
        if not self._open_requests and self._left_s is not None:
            with suppress(RuntimeError):  # the call has ended
                self._timeout.reschedule(asyncio.get_running_loop().time() + self._left_s)
            self._left_s = None


class WorkerProcess:
    """A living worker. `end` says how it ended, and is empty while it lives."""

    def __init__(
        self, process: Process, connection: socket.socket, answer: Answer, show: Callable[[str], None]
    ) -> None:
        """Wrap a started process; `show` takes what components print."""
        self.end = ""
        self._process = process
        self._connection = connection
        self._answer = answer
        self._show = show
        self._printed = bytearray()
        self._numbers = count(1)
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._limit: TimeLimit | None = None
        self._stop: asyncio.Future[GooseLikeError] | None = None
        self._is_run = False
        self._unanswered_count = 0
        self._failures = FailureWatch()
        self._tracebacks = TracebackReader()
        self._context = Context()
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(_MAX_REQUESTS)

    @classmethod
    async def start(
        cls,
        spawn: Callable[[Sequence[str], int], Awaitable[Process]],
        settings: Message,
        answer: Answer,
        show: Callable[[str], None],
    ) -> "WorkerProcess":
        """Start a worker.

        Args:
            spawn: starts a command line with a descriptor as its standard input.
            settings: the parameters of `setup` in worker/launch.py.
            answer: answers requests of the worker.
            show: takes what components print.

        Raises:
            ToolError: it does not start.
        """
        ours, theirs = socket.socketpair()
        try:
            command = [sys.executable, "-I", "-X", "utf8", "-c", _BOOT, str(WORKER_FOLDER)]
            process = await spawn(command, theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        worker = cls(process, ours, answer, show)
        try:
            reader, worker._writer = await asyncio.open_connection(sock=ours, limit=_MAX_LINE_BYTES)
            worker._begin(worker._watch(), Context())
            worker._begin(worker._listen(reader, worker._writer), Context())
            await worker.call("setup", settings, _START_S)
        except BaseException as error:
            await finish(worker.close())
            if isinstance(error, WorkerError | ComponentError):
                raise ToolError(f"the process for components does not start: {error}") from error
            raise
        return worker

    async def call(self, method: str, params: Message, limit_s: float | None) -> Any:
        """Call the worker and return its result. Only one call runs at a time.

        A cancelled or late call is interrupted; if the worker ignores that, it is ended.

        Raises:
            ComponentError: a component raised an error.
            WorkerError: the worker ended.
            SpentError: a run of a copilot used up a limit.
            ToolError: the time limit passed or the same failure came too often, and the worker lives on.
        """
        self._context = copy_context()  # requests of the worker belong to the tool call that runs
        number = next(self._numbers)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls[number] = done
        stop = self._stop = asyncio.get_running_loop().create_future()
        self._is_run = method == "run"
        self._failures.clear()
        self._unanswered_count = 0
        try:
            async with asyncio.timeout(limit_s) as timeout:
                self._limit = TimeLimit(timeout)
                self._send({"id": number, "method": method, "params": params})
                await asyncio.wait({done, stop}, return_when=asyncio.FIRST_COMPLETED)
            if stop.done() and not done.done():
                await self._interrupt(done)
                raise stop.result()
        except TimeoutError:
            reason = f"stopped, as its time limit of {limit_s:g} s was over"
            if not await self._interrupt(done):
                raise WorkerError(f"{reason}; it ignored that, so its process was ended") from None
            raise ToolError(f"{reason}; what the components hold is as it was then") from None
        except asyncio.CancelledError:
            for request in self._requests:
                request.cancel()
            await finish(self._interrupt(done))
            raise
        finally:
            self._calls.pop(number, None)
            self._limit = None
            self._stop = None
            self._context = Context()
        return done.result()

    @property
    def last_words(self) -> str:
        """The last lines that the process printed, such as the place of a crash."""
        kept = []
        for text in self._printed.decode(errors="replace").splitlines():
            is_our_own = str(WORKER_FOLDER) in text or '"<string>"' in text
            if text.strip() and not is_our_own:
                kept.append(text)
        return "\n".join(kept[-_SHOWN_LINES:])

    async def close(self) -> None:
        """End the process at once, with its children."""
        self._set_end("ended")
        await self._process.stop(0)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._writer:
            self._writer.close()
        else:
            self._connection.close()

    async def interrupt(self) -> None:
        """End the call that runs, if any; end the process if it ignores that."""
        for done in list(self._calls.values()):
            await self._interrupt(done)

    async def _interrupt(self, done: "asyncio.Future[Any]") -> bool:
        """Interrupt a call; return False if the process had to be ended."""
        self._process.interrupt()
        await asyncio.wait({done}, timeout=_INTERRUPT_GRACE_S)
        if done.done() and not self.end:
            done.exception()
            return True
        self._set_end("it had to be ended")
        if done.done():
            done.exception()
        await self._process.stop(0)
        return False

    # --- the connection

    def _send(self, message: Message) -> None:
        if self.end or self._writer is None:
            raise WorkerError(self._describe_end())
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Receive messages. The worker runs foreign code, so a message that makes no sense ends it."""
        try:
            while line := await reader.readline():
                message = json.loads(line)
                if "method" in message:
                    await self._slots.acquire()  # a worker that asks too fast waits
                    await writer.drain()
                    self._accept(message["id"], str(message["method"]), dict(message["params"]))
                    continue
                done = self._calls.get(message["id"])
                if done and not done.done():
                    _settle(done, message)
            await asyncio.sleep(_EXIT_WAIT_S)  # `_watch` knows more about a process that died
            reason = "it closed its connection"
        except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
            reason = f"it sent a wrong message ({type(error).__name__}: {error})"
        self._set_end(reason)
        await self._process.stop(0)

    def _accept(self, number: Any, method: str, params: Message) -> None:
        task = self._begin(self._serve(number, method, params), self._context)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        task.add_done_callback(lambda _: self._slots.release())

    async def _serve(self, number: Any, method: str, params: Message) -> None:
        limit = self._limit
        if limit:
            limit.pause()
        answer: Message = {"error": {"message": f"{method}: the call was stopped"}}
        try:
            result = await self._answer(method, params)
            answer = {"result": result}
            self._note_success(method, result)
        except GooseLikeError as error:
            answer = {"error": {"message": str(error)}}
            self._note_failure(method, error)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
            answer = {"error": {"message": f"{method}: {type(error).__name__}: {error}"}}
        finally:
            if limit:
                limit.resume()
            with suppress(WorkerError):
                self._send({"id": number, **answer})

    def _note_success(self, method: str, result: Any) -> None:
        if method in ("llm", "interact"):
            self._failures.add_answer()
        elif method == "ask" and result is not None:
            self._failures.clear()
        elif method == "ask":
            self._unanswered_count += 1
            if self._is_run and self._unanswered_count == _MAX_UNANSWERED:
                self._stop_call(ToolError("the input has ended, and the copilot asks on; it was stopped"))

    def _note_failure(self, method: str, error: GooseLikeError) -> None:
        """Stop a run that used up a limit, and any call whose requests fail in the same way again and again."""
        if self._is_run and isinstance(error, SpentError):
            self._stop_call(error)
        elif self._failures.is_stuck(f"{method} {error}"):
            text = f"stopped, as a request of the component failed {MAX_EQUAL_FAILURES} times in the same way: {error}"
            self._stop_call(ToolError(text))

    def _note_tracebacks(self, text: str) -> None:
        """Stop a run that prints the same traceback again and again. A command may do so for each part of its work."""
        for frames, last_line in self._tracebacks.read(text):
            kind = last_line.partition(":")[0]
            if self._is_run and self._failures.is_stuck(f"{frames}\n{kind}"):
                times = f"{MAX_EQUAL_FAILURES} times in the same way"
                text = f"the copilot failed {times} and was stopped; its output names the place: {_clip(last_line)}"
                self._stop_call(ToolError(text))

    def _stop_call(self, error: GooseLikeError) -> None:
        if self._stop and not self._stop.done():
            self._stop.set_result(error)

    async def _watch(self) -> None:
        """Read what the process prints, and note its end."""
        text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        try:
            while chunk := await self._process.read():
                self._printed += chunk
                del self._printed[:-_KEPT_BYTES]
                shown = text.decode(chunk)
                self._context.copy().run(self._show, shown)
                self._note_tracebacks(shown)
            self._set_end(describe_exit(await self._process.wait()))
        except GooseLikeError as error:
            self._set_end(str(error))

    def _set_end(self, how: str) -> None:
        self.end = self.end or how
        for done in self._calls.values():
            if not done.done():
                done.set_exception(WorkerError(self._describe_end()))

    def _describe_end(self) -> str:
        hint = ", perhaps for want of memory" if "SIGKILL" in self.end else ""
        text = f"the components' process died ({self.end}{hint})"
        words = self.last_words
        if words:
            text += f"; it said last:\n{words}"
        return text

    def _begin(self, work: Coroutine[Any, Any, None], context: Context) -> asyncio.Task[None]:
        task = asyncio.create_task(work, context=context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def finish(work: Coroutine[Any, Any, Any]) -> None:
    """Run work to its end, however often it is cancelled."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)


def _settle(done: "asyncio.Future[Any]", message: Message) -> None:
    if "error" not in message:
        done.set_result(message.get("result"))
        return
    error = dict(message["error"])
    kind = error["type"]
    text = _clip(str(error["message"]))
    if kind != "HostError":  # the text of a HostError is our own
        text = f"{kind}: {text}"
    frames = "".join(f"\n  {frame}" for frame in list(error.get("frames", ())))
    done.set_exception(ComponentError(text + _clip(frames)))


def _clip(text: str) -> str:
    if len(text) <= _MAX_ERROR_CHARACTERS:
        return text
    return f"{text[:_MAX_ERROR_CHARACTERS]}..."
