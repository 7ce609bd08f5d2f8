"""Channels to a kernel: the sockets and signed messages of jupyter_client, in our own event loop."""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from uuid import uuid4

from goose_like.core.threads import run_in_thread
from goose_like_toolkits.code.worker import COMM_TARGET

Message = dict[str, Any]

_PORTS = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5}
_ASK_AGAIN_S = 0.5
_MAX_WAITING = 16


def make_connection_info(key: str, sockets: str = "") -> dict[str, Any]:
    """Return the connection settings of Jupyter; the kernel itself finds its sockets, so it gets no path."""
    info = {"transport": "ipc", "key": key, "signature_scheme": "hmac-sha256", **_PORTS}
    if sockets:
        info["ip"] = sockets
    return info


class Channels:
    """A client that sends cells and receives all messages that a kernel publishes."""

    def __init__(self, libraries: tuple[Any, Any], info: Mapping[str, Any]) -> None:
        zmq, client = libraries
        self._context = zmq.Context()
        self._context.rcvhwm = _MAX_WAITING  # the kernel waits then, and drops nothing
        self._client = client.AsyncKernelClient(context=self._context)
        self._client.load_connection_info(dict(info))
        self._client.start_channels(stdin=False, hb=False, control=False)
        self._published = self._client.iopub_channel.socket
        self._comm = uuid4().hex

    @staticmethod
    async def import_libraries() -> tuple[Any, Any]:
        """Import zmq and jupyter_client in a thread (0.3 s), while the kernel starts."""
        zmq = await run_in_thread(import_module, "zmq.asyncio")
        client = await run_in_thread(import_module, "jupyter_client.asynchronous")
        return zmq, client

    async def wait_until_open(self) -> None:
        """Wait for the first published message."""
        while True:
            try:
                async with asyncio.timeout(_ASK_AGAIN_S):
                    await self.receive()
                    return
            except TimeoutError:  # ipykernel before 7 sends no welcome message
                self._client.kernel_info()

    async def receive(self) -> Message:
        """Return the next published message. Raise ValueError if its signature is invalid."""
        frames = await self._published.recv_multipart()
        session = self._client.session
        _, signed = session.feed_identities(frames)
        message: Message = session.deserialize(signed)
        return message

    async def execute(self, code: str) -> str:
        """Send a cell; return the message id that its outputs have as their parent."""
        replies = self._client.shell_channel.socket
        while await replies.poll(0):  # their content is published too
            await replies.recv_multipart()
        request: str = self._client.execute(code, allow_stdin=False, stop_on_error=False)
        return request

    def open_comm(self, data: Message) -> None:
        """Send the first message to the plugin manager of the kernel."""
        self._send("comm_open", {"target_name": COMM_TARGET, "data": data})

    def send_comm(self, data: Message) -> None:
        """Send a message to the plugin manager, which handles it before the next cell."""
        self._send("comm_msg", {"data": data})

    def _send(self, kind: str, content: Message) -> None:
        message = self._client.session.msg(kind, {"comm_id": self._comm, **content})
        self._client.shell_channel.send(message)

    def read_comm(self, message: Message) -> Message | None:
        """Return the data of a message from the plugin manager, or None for other messages."""
        content = message["content"]
        if message["msg_type"] != "comm_msg" or content["comm_id"] != self._comm:
            return None
        data: Message = content["data"]
        return data

    def close(self) -> None:
        """Close the sockets and drop unsent messages."""
        self._context.destroy(linger=0)
