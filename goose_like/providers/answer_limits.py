"""Limits on the HTTP answers of model servers. Imports httpx2, so import this module where it is first used."""

import zlib
from collections.abc import AsyncIterator

import httpx2
from typing_extensions import override

from goose_like.core.errors import BrokenStreamError, ModelUnavailableError

_MAX_BYTES = 64 * 2**20
_MAX_ERROR_BYTES = 2**20

HEADERS = {"accept-encoding": "identity"}
"""Headers of each request. Servers that compress nevertheless are understood, see `limit_answer`."""


async def limit_answer(response: httpx2.Response) -> None:
    """Bound the size of an answer, also after decompression. Use it as a hook of a client.

    Raises:
        ModelUnavailableError: the server redirects to another one, which must not get the conversation, or elsewhere
            without the conversation.
        BrokenStreamError: the compression is unknown. A later read raises it for an answer that is too large.
    """
    if response.has_redirect_location:
        _check_redirect(response)
    encoding = response.headers.pop("content-encoding", "identity").lower()
    if encoding not in ("identity", "gzip", "deflate"):
        raise BrokenStreamError(f"the server sent an answer compressed as {encoding[:20]!r}", is_retryable=False)
    limit_bytes = _MAX_ERROR_BYTES if response.is_error else _MAX_BYTES
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _LimitedStream(response.stream, limit_bytes, is_compressed=encoding != "identity")


def _check_redirect(response: httpx2.Response) -> None:
    source = response.request.url
    target = source.join(response.headers["location"])
    is_upgrade = (source.scheme, target.scheme, source.port, target.port) == ("http", "https", None, None)
    is_same = (source.scheme, source.port) == (target.scheme, target.port)
    if source.host != target.host or not (is_same or is_upgrade):
        address = f"{target.scheme}://{target.netloc.decode(errors='replace').rpartition('@')[2]}"
        raise ModelUnavailableError(
            f"the server redirects to {address}, which did not get the conversation; if you trust it, set base_url",
            is_retryable=False,
        )
    # HTTP clients then send a GET without the body.
    if response.request.method == "POST" and response.status_code in (301, 302, 303):
        raise ModelUnavailableError(
            f"the server moved to {target.copy_with(query=None, userinfo=b'')} (HTTP {response.status_code}); "
            "set base_url to the new address",
            is_retryable=False,
        )


class _LimitedStream(httpx2.AsyncByteStream):
    """The decompressed bytes of an answer, up to a limit."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit_bytes: int, *, is_compressed: bool) -> None:
        self._stream = stream
        self._left = limit_bytes
        self._decoder = None
        if is_compressed:
            self._decoder = zlib.decompressobj(zlib.MAX_WBITS | 32)

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            content = self._decompress(piece)
            self._left -= len(content)
            if self._left < 0:
                raise BrokenStreamError("the server's answer is too large; it was cut off", is_retryable=False)
            yield content

    def _decompress(self, piece: bytes) -> bytes:
        if self._decoder is None:
            return piece
        try:
            return self._decoder.decompress(piece, self._left + 1)
        except zlib.error as error:
            raise httpx2.DecodingError(str(error)) from error

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()
