"""The channels to a kernel: jupyter_client's sockets and signed messages, in our own loop and without a thread."""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from uuid import uuid4

Message = dict[str, Any]

_TARGET = "goose_like"
_PORTS = {f"{name}_port": number for number, name in enumerate(("shell", "iopub", "stdin", "control", "hb"), 1)}
_ASK_AGAIN_S = 0.5


def connection(key: str, ip: str = "") -> dict[str, Any]:
    """What both ends must know: ours with the place of the sockets, and the kernel's, which finds it itself."""
    known = {"transport": "ipc", "key": key, "signature_scheme": "hmac-sha256", **_PORTS}
    return known | ({"ip": ip} if ip else {})


class Channels:
    """Sends cells and takes in all that a kernel publishes."""

    def __init__(self, libraries: tuple[Any, Any], info: Mapping[str, Any]) -> None:
        zmq, client = libraries
        self._context = zmq.Context()
        self._context.rcvhwm = 0  # a message that is dropped may be the end of a cell
        self._client = client.AsyncKernelClient(context=self._context)
        self._client.load_connection_info(dict(info))
        self._client.start_channels(stdin=False, hb=False, control=False)
        self._published = self._client.iopub_channel.socket
        self._comm = uuid4().hex

    @staticmethod
    async def libraries() -> tuple[Any, Any]:
        """zmq and jupyter_client, which take a third of a second to import: in a thread, while the kernel starts."""
        zmq = await asyncio.to_thread(import_module, "zmq.asyncio")
        return zmq, await asyncio.to_thread(import_module, "jupyter_client.asynchronous")

    async def opened(self) -> None:
        """Returns when the kernel publishes to us."""
        while True:
            try:
                async with asyncio.timeout(_ASK_AGAIN_S):
                    await self.next()
                    return
            except TimeoutError:  # ipykernel before 7 greets nobody
                self._client.kernel_info()

    async def next(self) -> Message:
        """The next message that was published.

        Raises:
            ValueError: it has no valid signature.
        """
        frames = await self._published.recv_multipart()
        session = self._client.session
        message: Message = session.deserialize(session.feed_identities(frames)[1])
        return message

    async def execute(self, code: str) -> str:
        """Sends a cell; gives the id that its messages have as their parent's."""
        replies = self._client.shell_channel.socket
        while await replies.poll(0):  # what they say was published as well
            await replies.recv_multipart()
        sent: str = self._client.execute(code, allow_stdin=False, stop_on_error=False)
        return sent

    def open(self, data: Message) -> None:
        """The first message to the desk in the kernel."""
        self._send("comm_open", {"target_name": _TARGET, "data": data})

    def tell(self, data: Message) -> None:
        """A message to the desk, which has it before the next cell."""
        self._send("comm_msg", {"data": data})

    def _send(self, kind: str, content: Message) -> None:
        message = self._client.session.msg(kind, {"comm_id": self._comm, **content})
        self._client.shell_channel.send(message)

    def told(self, message: Message) -> Message | None:
        """What the desk in the kernel said with this message; None if it is none of its."""
        content = message["content"]
        if message["msg_type"] != "comm_msg" or content["comm_id"] != self._comm:
            return None
        data: Message = content["data"]
        return data

    def close(self) -> None:
        """Closes the sockets; what was not sent yet is not."""
        self._context.destroy(linger=0)
