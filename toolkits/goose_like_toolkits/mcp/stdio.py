"""Servers that are processes: messages over their input and output, one a line."""

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from goose_like.config.paths import create_private_folder
from goose_like.core.errors import GooseLikeError
from goose_like.core.json_bytes import repair_json
from goose_like.workspace.processes.process import Process, describe_exit
from goose_like.workspace.sandbox.scope import SandboxScope

from .server import ServerConfig
from .surroundings import Surroundings

MAX_LINE_BYTES = 32 << 20
_MAX_SKIPPED_BYTES = 32 << 20
_FIRST_MESSAGES = 20_000
_MESSAGES_PER_S = 200
_KEPT_BYTES = 8_192
_SHOWN_LINES = 4
_SHOWN_CHARACTERS = 800
_EXIT_WAIT_S = 1.0
_CLOSE_GRACE_S = 0.5
_STOP_GRACE_S = 0.5
_LINGER_S = 0.2
CLOSED = "closed"
"""The end of a process that goose_like ended."""


class FloodError(Exception):
    """A server that writes more than anybody can read."""


class StdioTransport:
    """A transport of the SDK to a process in the sandbox. `end` says how the process ended; empty while it runs.

    The process starts when the transport is entered. Leaving closes the process's input, waits a moment, and ends
    everything that it started.
    """

    def __init__(self, server: ServerConfig, around: Surroundings, on_end: Callable[[], None]) -> None:
        """Start nothing; `on_end` is called when the process ends by itself."""
        self.end = ""
        self._server = server
        self._around = around
        self._on_end = on_end
        self._words = bytearray()
        self._process: Process | None = None
        self._streams: list[Any] = []
        self._reading: asyncio.Task[None] | None = None
        self._has_read_all = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._meter = _Meter()
        self._sent_ids: set[str] = set()
        self._open_ids: set[str] = set()
        self.has_wrong_ids = False
        """True if the server answered requests that nobody sent."""

    async def __aenter__(self) -> tuple[Any, Any]:
        """Start the process. Return the SDK's streams to read from and to write to.

        Raises:
            GooseLikeError: it does not start.
        """
        import anyio

        stdin, our_stdin = os.pipe()
        our_stdout, stdout = os.pipe()
        try:
            self._process = await self._spawn({0: stdin, 1: stdout})
        except BaseException:
            os.close(our_stdin)
            os.close(our_stdout)
            raise
        finally:
            os.close(stdin)
            os.close(stdout)
        reader = await self._open_reader(our_stdout)
        writer = await self._open_writer(our_stdin)
        incoming, received = anyio.create_memory_object_stream[Any](0)
        sent, outgoing = anyio.create_memory_object_stream[Any](0)
        self._streams += [incoming, received, sent, outgoing]
        self._reading = asyncio.create_task(self._read(reader, incoming))
        self._tasks = [
            self._reading,
            asyncio.create_task(self._write(writer, outgoing)),
            asyncio.create_task(self._watch(self._process)),
        ]
        return received, sent

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process and everything that it started."""
        reading, writing, watching = self._tasks
        has_ended_by_itself = bool(self.end)
        self.end = self.end or CLOSED
        writing.cancel()
        await asyncio.wait({writing})
        process = self._process
        if process and not has_ended_by_itself:
            await asyncio.wait({watching}, timeout=_CLOSE_GRACE_S)
        if process:
            await process.stop(_STOP_GRACE_S)
        for task in (reading, watching):
            task.cancel()
        await asyncio.wait({reading, watching})
        for stream in self._streams:
            stream.close()

    @property
    def last_words(self) -> Sequence[str]:
        """The last lines that the process wrote to its standard error."""
        lines = self._words.decode(errors="replace").splitlines()
        return [line.strip() for line in lines if line.strip()][-_SHOWN_LINES:]

    def describe_end(self) -> str:
        """Describe the end for the model, with the last words."""
        words = "\n".join(self.last_words)[-_SHOWN_CHARACTERS:]
        if not words:
            return self.end
        return f"{self.end}; it said last:\n{words}"

    async def _spawn(self, descriptors: dict[int, int]) -> Process:
        scope = None
        if self._server.data_folder:
            data = create_private_folder(Path(self._server.data_folder))
            scope = SandboxScope(writable=(data,), is_wide=True)
        return await self._around.workspace.spawn(
            self._server.command,
            cwd=self._server.folder or None,
            env=self._server.variables,
            descriptors=descriptors,
            subject=f"the MCP server {self._server.name}",
            scope=scope,
            is_apart=True,  # other commands could read its variables in /proc
            is_own=True,  # the person added the server, or trusted the file that names it
        )

    async def _open_reader(self, descriptor: int) -> asyncio.StreamReader:
        reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(descriptor, "rb", 0))
        self._streams.append(transport)
        return reader

    async def _open_writer(self, descriptor: int) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        file = os.fdopen(descriptor, "wb", 0)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, file)
        return asyncio.StreamWriter(transport, protocol, None, loop)

    # --- messages

    async def _read(self, reader: asyncio.StreamReader, incoming: Any) -> None:
        """Pass on what the process writes, until it ends. Closing `incoming` tells the SDK about the end."""
        import anyio

        try:
            while line := await reader.readline():
                message = self._parse(line)
                if message is not None:
                    self._meter.count_message()
                    await incoming.send(message)
            self._has_read_all.set()
            await asyncio.sleep(_EXIT_WAIT_S)  # `_watch` knows more about a process that died
            self._set_end("it closed its output")
        except ValueError:
            self._set_end(f"it wrote a message of more than {MAX_LINE_BYTES >> 20} MB")
        except FloodError as error:
            self._set_end(str(error))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._set_end(CLOSED)  # the SDK has left
        finally:
            self._has_read_all.set()
            incoming.close()

    def _parse(self, line: bytes) -> Any:
        """Return the message in a line, or None for other output. Output that is no message is noted once."""
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

        text = line.strip()
        if not text:
            return None
        try:
            message = jsonrpc_message_adapter.validate_json(repair_json(text), by_name=False)
        except (ValueError, RecursionError):
            failure = self._fail_request(text)
            if failure is not None:
                return failure
            shown = text[:80].decode(errors="replace")
            if self._meter.count_other(len(line)):
                self._log(f"writes text to its standard output, which is for messages alone; it is skipped: {shown}")
            return None
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._open_ids.discard(str(message.id))
            is_wrong = message.id is not None and str(message.id) not in self._sent_ids
            if is_wrong and not self.has_wrong_ids:
                self.has_wrong_ids = True
                self._log(f"answers a request that nobody sent (id {message.id!r}); such answers are lost")
        return SessionMessage(message)

    def _fail_request(self, text: bytes) -> Any:
        """Return an error for the request that a wrong message answers, or None if it answers none that is open."""
        from mcp.shared.message import SessionMessage
        from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(answer, dict) or "method" in answer:
            return None
        number = answer.get("id")
        if str(number) not in self._open_ids:
            return None
        self._open_ids.discard(str(number))
        shown = text[:_SHOWN_CHARACTERS].decode(errors="replace")
        data = ErrorData(code=INTERNAL_ERROR, message=f"its answer breaks the protocol: {shown}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=data))

    async def _write(self, writer: asyncio.StreamWriter, outgoing: Any) -> None:
        """Pass on what the SDK sends. Closing the writer closes the process's input."""
        try:
            async for item in outgoing:
                self._note_request(item.message)
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                await writer.drain()
        except OSError:
            await asyncio.sleep(_EXIT_WAIT_S)  # `_watch` knows more about a process that died
            self._set_end("it closed its input")
            self._stop_reading()
        finally:
            writer.close()

    def _note_request(self, message: Any) -> None:
        """Note which requests wait for an answer."""
        number = str(getattr(message, "id", ""))
        self._sent_ids.add(number)
        self._open_ids.add(number)
        if getattr(message, "method", "") == "notifications/cancelled":
            self._open_ids.discard(str(message.params["requestId"]))

    async def _watch(self, process: Process) -> None:
        """Keep the last words of the process, and note its end."""
        try:
            while chunk := await process.read():
                self._words += chunk
                del self._words[:-_KEPT_BYTES]
            code = await process.wait()
        except GooseLikeError as error:
            self._set_end(str(error))
        else:
            # What it wrote before its end still counts. A child of it may keep the output open.
            with suppress(TimeoutError):
                async with asyncio.timeout(_LINGER_S):
                    await self._has_read_all.wait()
            self._set_end(describe_exit(code))
        self._stop_reading()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading.cancel()

    def _log(self, text: str) -> None:
        self._around.notifier.log(f"the MCP server {self._server.name} {text}")

    def _set_end(self, how: str) -> None:
        if not self.end:
            self.end = how
            self._on_end()


class _Meter:
    """A count of what a server writes, which raises FloodError beyond any sensible use."""

    def __init__(self) -> None:
        self._start = asyncio.get_running_loop().time()
        self._messages = 0
        self._skipped_bytes = 0

    def count_message(self) -> None:
        """Count a message. A burst is fine; thousands a second for long are not."""
        self._messages += 1
        if self._messages % 1_000:
            return
        elapsed_s = asyncio.get_running_loop().time() - self._start
        if self._messages > _FIRST_MESSAGES + _MESSAGES_PER_S * elapsed_s:
            raise FloodError(f"it flooded the session with {self._messages:,} messages")

    def count_other(self, size_bytes: int) -> bool:
        """Count output that is no message. Return True the first time."""
        is_first = self._skipped_bytes == 0
        self._skipped_bytes += size_bytes
        if self._skipped_bytes > _MAX_SKIPPED_BYTES:
            raise FloodError(f"it wrote {self._skipped_bytes >> 20} MB of text instead of messages")
        return is_first
