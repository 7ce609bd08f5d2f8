"""The connection to goose_like: one JSON object per line in each direction; both sides send requests."""

import json
import queue
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

Handler = Callable[..., Any]
Describe = Callable[[BaseException], dict[str, Any]]


class HostError(Exception):
    """A request that goose_like refused or could not answer; the text is for the component."""


class Connection:
    """The worker's end. Any thread may send requests; the thread that calls `serve` answers those of goose_like."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._requests: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._replies: dict[int, queue.SimpleQueue[Mapping[str, Any]]] = {}
        self._number = 0
        self._is_serving = False
        self._is_held = False
        self._was_interrupted = False
        threading.Thread(target=self._read, name="connection", daemon=True).start()

    def call(self, method: str, **params: Any) -> Any:
        """Send a request and return its result. Raise HostError if it fails or goose_like is gone."""
        reply: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        with self._sending:
            self._number += 1
            number = self._number
        self._replies[number] = reply
        try:
            self._send(_encode({"id": number, "method": method, "params": params}))
            answer = reply.get()
        finally:
            self._replies.pop(number, None)
        if "error" in answer:
            raise HostError(answer["error"]["message"])
        return answer.get("result")

    def serve(self, handlers: Mapping[str, Handler], describe: Describe) -> None:
        """Answer one request after another until goose_like is gone. `describe` encodes the error of a failed one."""
        signal.signal(signal.SIGINT, self._interrupt)
        while (request := self._requests.get()) is not None:
            answer = self._answer(request, handlers, describe)
            self._send(answer)

    def _answer(self, request: Mapping[str, Any], handlers: Mapping[str, Handler], describe: Describe) -> bytes:
        try:
            try:
                self._is_serving = True
                handle = handlers[request["method"]]
                result = handle(**request["params"])
                return _encode({"id": request["id"], "result": result})
            finally:
                self._is_serving = False
        except BaseException as error:  # foreign code: `sys.exit` and an interrupt end the request only
            return _encode({"id": request["id"], "error": describe(error)})

    def _interrupt(self, *_: object) -> None:
        if self._is_held:
            self._was_interrupted = self._is_serving
        elif self._is_serving:
            raise KeyboardInterrupt

    def _send(self, line: bytes) -> None:
        """Send a whole line. Delay an interrupt until the line is sent."""
        if threading.current_thread() is not threading.main_thread():
            self._write(line)
            return
        self._was_interrupted = False
        self._is_held = True
        try:
            self._write(line)
        finally:
            self._is_held = False
        if self._was_interrupted:
            raise KeyboardInterrupt

    def _write(self, line: bytes) -> None:
        try:
            with self._sending:
                self._connection.sendall(line)
        except OSError as error:
            raise HostError("goose_like is gone") from error

    def _read(self) -> None:
        with self._connection.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "method" in message:
                    self._requests.put(message)
                    continue
                reply = self._replies.get(message["id"])
                if reply:
                    reply.put(message)
        self._requests.put(None)
        for waiting in list(self._replies.values()):
            waiting.put({"error": {"message": "goose_like is gone"}})


def _encode(message: Mapping[str, Any]) -> bytes:
    line = json.dumps(message, ensure_ascii=True, allow_nan=True)
    return f"{line}\n".encode()


_connection: Connection | None = None


def connect(connection: Connection) -> None:
    """Use this connection for `call`."""
    global _connection
    _connection = connection


def call(method: str, **params: Any) -> Any:
    """Send a request through the connection of this process. Raise HostError if there is none or it fails."""
    if _connection is None:
        raise HostError("this component is not connected to goose_like")
    return _connection.call(method, **params)
