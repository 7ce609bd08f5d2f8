"""Stage: the process in which components run, started with the first call and anew after its end."""

import asyncio
import codecs
import json
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.toolkit import ToolError
from goose_like.workspace.processes.process import Process, describe_exit

Message = dict[str, Any]
Answer = Callable[[str, Message], Awaitable[Any]]
"""What the stage asks of the host: a method and its parameters; what it raises is told to the component."""

INSIDE = Path(__file__).with_name("inside")

_INTERRUPT_GRACE_S = 4.0
_FINISH_S = 10.0
_START_S = 60.0
_OWN_ERROR = "HostError"
_SAID_BYTES = 16_384
_SAID_LINES = 8
_LINE_BYTES = 256 << 20
_ERROR_CHARACTERS = 8_000
_QUESTIONS = 64
_CLOSED_S = 1.0

# A package of its own, found by no name that a component could mean.
_BOOT = """
import importlib.util, sys
folder = sys.argv.pop()
spec = importlib.util.spec_from_file_location(
    "goose_like_stage", folder + "/__init__.py", submodule_search_locations=[folder]
)
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
from goose_like_stage.launch import main
main()
"""


class StageError(ToolError):
    """The process ended, or was ended, with this call: what its components held is gone."""


class ComponentError(ToolError):
    """What a component raised. `kind` is the name of the exception's class."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(slots=True)
class _Clock:
    """How long a call has run by itself: the time that it waits for the host is not its own."""

    began: float
    asking: int = 0
    waited_s: float = 0.0
    since: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def left_s(self, limit_s: float | None) -> float | None:
        now = asyncio.get_running_loop().time()
        return None if self.asking or limit_s is None else limit_s - (now - self.began - self.waited_s)

    def ask(self) -> None:
        self.asking += 1
        if self.asking == 1:
            self.since = asyncio.get_running_loop().time()
            self.changed.set()

    def told(self) -> None:
        self.asking -= 1
        if not self.asking:
            self.waited_s += asyncio.get_running_loop().time() - self.since
            self.changed.set()


class Stage:
    """One living process. `end` says how it ended, and is empty while it lives."""

    def __init__(
        self, process: Process, connection: socket.socket, answer: Answer, show: Callable[[str], None]
    ) -> None:
        """`show` takes what components print."""
        self.end = ""
        self._process = process
        self._connection = connection
        self._answer = answer
        self._show = show
        self._said = bytearray()
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._clock: _Clock | None = None
        self._speaking = Context()
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._questions: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_QUESTIONS)

    @classmethod
    async def start(
        cls,
        spawn: Callable[[Sequence[str], int], Awaitable[Process]],
        python: Path,
        settings: Message,
        answer: Answer,
        show: Callable[[str], None],
    ) -> "Stage":
        """A process that takes calls.

        Args:
            spawn: starts a command line with this descriptor as its standard input.
            python: of the environment that the components have.
            settings: of `setup` in inside/launch.py.

        Raises:
            ToolError: it does not start.
        """
        ours, theirs = socket.socketpair()
        try:
            process = await spawn([str(python), "-I", "-X", "utf8", "-c", _BOOT, str(INSIDE)], theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        stage = cls(process, ours, answer, show)
        try:
            await stage._open()
            await stage.call("setup", settings, _START_S)
        except BaseException as error:
            await through(stage.close())
            if isinstance(error, StageError | ComponentError):
                raise ToolError(f"the process for components does not start: {error}") from error
            raise
        return stage

    async def _open(self) -> None:
        reader, self._writer = await asyncio.open_connection(sock=self._connection, limit=_LINE_BYTES)
        self._begin(self._watch(), Context())
        self._begin(self._listen(reader, self._writer), Context())

    async def call(self, method: str, params: Message, limit_s: float | None) -> Any:
        """What it answers. One at a time; where one is cancelled, it is interrupted, and ended where it ignores that.

        What the stage asked meanwhile is given up with a call that is cancelled. The time that it waits for the host
        does not count to `limit_s`.

        Raises:
            ComponentError: what a component raised.
            StageError: the process is gone, or had to be ended.
            ToolError: the time limit was over, and the process lives on.
        """
        clock = self._clock = _Clock(asyncio.get_running_loop().time())
        self._speaking = copy_context()  # what is asked meanwhile is asked by who called
        number = next(self._numbers)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = done
        try:
            self._send({"id": number, "method": method, "params": params})
            if not await self._done_within(done, clock, limit_s):
                await self._stopped(done, f"its time limit of {limit_s:g} s was over")
        except asyncio.CancelledError:
            for question in self._questions:
                question.cancel()
            await through(self._settled(done))
            raise
        finally:
            self._waiting.pop(number, None)
            self._clock, self._speaking = None, Context()
        return done.result()

    @property
    def last_words(self) -> str:
        """What the process said last, past its line: of a crash where it was."""
        said = self._said.decode(errors="replace").splitlines()
        lines = [line for line in said if line.strip() and str(INSIDE) not in line and 'File "<string>"' not in line]
        return "\n".join(lines[-_SAID_LINES:])

    async def close(self) -> None:
        """Ends it at once, with all that it started."""
        self._ended("ended")
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
        """Ends the call that runs, if one does; the process with it where it ignores that."""
        for done in list(self._waiting.values()):
            await self._settled(done)

    async def finish(self) -> list[str]:
        """Has all components finalised, then ends the process; gives what went wrong."""
        faults: list[str] = []
        if not self.end:
            try:
                told = await self.call("finish", {}, _FINISH_S)
                faults = [str(fault) for fault in told] if isinstance(told, list) else []
            except ToolError as error:
                faults = [str(error)]
        await self.close()
        return faults

    # --- the time limit

    async def _done_within(self, done: "asyncio.Future[Any]", clock: _Clock, limit_s: float | None) -> bool:
        while not done.done():
            left_s = clock.left_s(limit_s)
            if left_s is not None and left_s <= 0:
                return False
            clock.changed.clear()
            changed = asyncio.ensure_future(clock.changed.wait())
            try:
                await asyncio.wait({done, changed}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
        return True

    async def _stopped(self, done: "asyncio.Future[Any]", why: str) -> None:
        """After an interrupt: says whether the process could be kept."""
        if await self._settled(done):
            raise ToolError(f"stopped, as {why}; what the components hold is as it was then")
        raise StageError(f"stopped, as {why}; it ignored that, so its process was ended")

    async def _settled(self, done: "asyncio.Future[Any]") -> bool:
        """Interrupts what runs; whether it ended by that. If not, the process is ended."""
        self._process.interrupt()
        await asyncio.wait({done}, timeout=_INTERRUPT_GRACE_S)
        if done.done() and not self.end:
            done.exception()
            return True
        self._ended("it had to be ended")
        done.exception() if done.done() else None
        await self._process.stop(0)
        return False

    # --- the line

    def _send(self, message: Message) -> None:
        if self.end or self._writer is None:
            raise StageError(self._how_it_ended())
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes what it says. It comes from a stranger: what makes no sense is its end."""
        try:
            while line := await reader.readline():
                message = json.loads(line)
                if "method" in message:
                    # Who asks faster than we answer, or takes no answers, is not heard meanwhile.
                    await self._room.acquire()
                    await writer.drain()
                    self._hear(message["id"], str(message["method"]), dict(message["params"]))
                elif (done := self._waiting.get(message["id"])) and not done.done():
                    _settle(done, message)
            await asyncio.sleep(_CLOSED_S)  # of a process that died, `_watch` says how
            why = "it closed its line"
        except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
            why = f"it said what is none of its language ({type(error).__name__}: {error})"
        self._ended(why)
        await self._process.stop(0)

    def _hear(self, number: Any, method: str, params: Message) -> None:
        task = self._begin(self._serve(number, method, params), self._speaking)
        self._questions.add(task)
        task.add_done_callback(self._questions.discard)
        task.add_done_callback(lambda _: self._room.release())

    async def _serve(self, number: Any, method: str, params: Message) -> None:
        """One question of the stage."""
        clock = self._clock
        if clock:
            clock.ask()
        answer: Message = {"error": {"message": f"{method}: it was given up"}}
        try:
            answer = {"result": await self._answer(method, params)}
        except GooseLikeError as error:
            answer = {"error": {"message": str(error)}}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OSError) as error:
            answer = {"error": {"message": f"{method}: {type(error).__name__}: {error}"}}
        finally:
            if clock:
                clock.told()
            with suppress(StageError):
                self._send({"id": number, **answer})

    async def _watch(self) -> None:
        """Reads what the process prints, so that it never waits for us, and tells of its end."""
        text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        try:
            while chunk := await self._process.read():
                self._said += chunk
                del self._said[:-_SAID_BYTES]
                self._speaking.copy().run(self._show, text.decode(chunk))
            self._ended(describe_exit(await self._process.wait()))
        except GooseLikeError as error:
            self._ended(str(error))

    def _ended(self, how: str) -> None:
        self.end = self.end or how
        for done in self._waiting.values():
            if not done.done():
                done.set_exception(StageError(self._how_it_ended()))

    def _how_it_ended(self) -> str:
        said = self.last_words
        hint = ", perhaps for want of memory" if "SIGKILL" in self.end else ""
        return f"the components' process died ({self.end}{hint})" + (f"; it said last:\n{said}" if said else "")

    def _begin(self, work: Coroutine[Any, Any, None], context: Context) -> asyncio.Task[None]:
        task = asyncio.create_task(work, context=context.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def through(work: Coroutine[Any, Any, Any]) -> None:
    """Does something to its end, however often it is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)


def _settle(done: "asyncio.Future[Any]", message: Message) -> None:
    """Raises: ValueError, KeyError, TypeError: it is no reply."""
    if "error" not in message:
        done.set_result(message.get("result"))
        return
    error = dict(message["error"])
    kind, frames = str(error["type"]), "".join(f"\n  {frame}" for frame in list(error.get("frames", ())))
    named = "" if kind == _OWN_ERROR else f"{kind}: "  # words that were ours in the first place
    done.set_exception(ComponentError(f"{named}{_clipped(str(error['message']))}{_clipped(frames)}", kind))


def _clipped(text: str) -> str:
    return text if len(text) <= _ERROR_CHARACTERS else f"{text[:_ERROR_CHARACTERS]}..."
