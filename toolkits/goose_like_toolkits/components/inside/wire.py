"""The line to the host: JSON, one object a line, in both directions; each side asks and answers."""

import json
import queue
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

Handler = Callable[..., Any]


class HostError(Exception):
    """What the host could not do, in its words."""


class Wire:
    """Questions to the host may come from any thread; its requests are served by the one that calls `serve`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._requests: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._replies: dict[int, queue.SimpleQueue[Mapping[str, Any]]] = {}
        self._number = 0
        self._is_serving = False
        self._is_held = False
        self._was_interrupted = False
        threading.Thread(target=self._read, name="wire", daemon=True).start()

    def call(self, method: str, **params: Any) -> Any:
        """What the host answers.

        Raises:
            HostError: it could not, or is gone.
        """
        reply: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        with self._sending:
            self._number += 1
            number = self._number
        self._replies[number] = reply
        try:
            self._send(_line({"id": number, "method": method, "params": params}))
            answer = reply.get()
        finally:
            self._replies.pop(number, None)
        if "error" in answer:
            raise HostError(answer["error"]["message"])
        return answer.get("result")

    def serve(self, handlers: Mapping[str, Handler], told: Callable[[BaseException], dict[str, Any]]) -> None:
        """Serves one request after another until the host is gone. `told` says what went wrong in one."""
        signal.signal(signal.SIGINT, self._interrupted)
        while (request := self._requests.get()) is not None:
            self._send(self._served(request, handlers, told))

    def _served(
        self, request: Mapping[str, Any], handlers: Mapping[str, Handler], told: Callable[[BaseException], Any]
    ) -> bytes:
        """The line with the reply. An interrupt that comes too late for the request makes no difference."""
        try:
            try:
                self._is_serving = True
                return _line({"id": request["id"], "result": handlers[request["method"]](**request["params"])})
            finally:
                self._is_serving = False
        except BaseException as error:  # strangers' code: `sys.exit` and an interrupt end a request, not us
            return _line({"id": request["id"], "error": told(error)})

    def _interrupted(self, *_: object) -> None:
        if self._is_held:
            self._was_interrupted = self._is_serving
        elif self._is_serving:
            raise KeyboardInterrupt

    def _send(self, line: bytes) -> None:
        """Sends a line as a whole: an interrupt amid it waits for its end."""
        if threading.current_thread() is not threading.main_thread():
            self._put(line)
            return
        self._is_held, self._was_interrupted = True, False
        try:
            self._put(line)
        finally:
            self._is_held = False
        if self._was_interrupted:
            raise KeyboardInterrupt

    def _put(self, line: bytes) -> None:
        try:
            with self._sending:
                self._connection.sendall(line)
        except OSError as error:
            raise HostError("the host is gone") from error

    def _read(self) -> None:
        with self._connection.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "method" in message:
                    self._requests.put(message)
                elif reply := self._replies.get(message["id"]):
                    reply.put(message)
        self._requests.put(None)
        for waiting in list(self._replies.values()):
            waiting.put({"error": {"message": "the host is gone"}})


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=True, allow_nan=True).encode() + b"\n"


_wire: Wire | None = None


def connect(wire: Wire) -> None:
    """From now on `call` asks this wire."""
    global _wire
    _wire = wire


def call(method: str, **params: Any) -> Any:
    """What the host answers; for whoever is not given the wire itself.

    Raises:
        HostError: it could not, or there is none.
    """
    if _wire is None:
        raise HostError("not connected: this runs outside of goose_like's process for components")
    return _wire.call(method, **params)
