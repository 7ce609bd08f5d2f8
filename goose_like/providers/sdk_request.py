"""A provider through its vendor's SDK: what is the same for both SDKs, which one generator has made.

The SDK carries the connection, the headers and the event stream. The body goes in ready-made: its typed path would
rebuild the whole history on each call.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from importlib import import_module
from typing import Any, ClassVar, Protocol
from urllib.parse import SplitResult

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import BrokenStreamError, GooseLikeError, ModelUnavailableError, ProviderError
from goose_like.core.events import MessageCompleted
from goose_like.core.gc_pause import pause_gc

from .base import Delta, Request
from .sdk_client import describe_cause, format_host, get_port, parse_retry_after_s, redact
from .wire import clip


class StreamParser(Protocol):
    """What becomes of an answer's events: deltas, and in the end the message."""

    def feed(self, event: Any, /) -> list[Delta]: ...

    def build_message(self) -> MessageCompleted: ...


class SdkProvider:
    """A connection to one server; the key goes nowhere but into its header. What is the vendor's is said below it."""

    sdk_name: ClassVar[str]

    def __init__(self, choice: ModelChoice, url: SplitResult, key: str, *, follows_redirects: bool = True) -> None:
        self._choice = choice
        self._url = url
        self._key = key
        self._follows_redirects = follows_redirects
        self._sdk: Any = None
        self._client: Any = None

    # --- the vendor's

    def _find_setup_error(self) -> GooseLikeError | None:
        """What to set before this connection works."""
        raise NotImplementedError

    def _describe_address_settings(self) -> str:
        """What a person may set the address with."""
        raise NotImplementedError

    def _create_client(self, **options: Any) -> Any:
        """The SDK's client."""
        raise NotImplementedError

    def _encode_body(self, request: Request) -> bytes:
        """The request's whole JSON body."""
        raise NotImplementedError

    async def _post(self, body: bytes) -> Any:
        """The SDK's stream of an answer whose head has come."""
        raise NotImplementedError

    def _iterate_events(self, stream: Any, request: Request) -> AsyncIterator[Any]:
        """What comes in the stream, decoded; it has an `aclose`."""
        raise NotImplementedError

    def _create_parser(self) -> StreamParser:
        """Where the events go."""
        raise NotImplementedError

    def _build_refusal(self, request: Request, status: int, body: object, wait_s: float | None) -> ProviderError:
        """The error that a refusal stands for; the server wishes a pause of `wait_s`."""
        raise NotImplementedError

    # --- the same for all

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        with self._add_location_to_errors():
            fold = self._create_parser()
            async with aclosing(self._stream_events(request)) as events:
                async for event in events:
                    for delta in fold.feed(event):
                        yield delta
            yield fold.build_message()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    @contextmanager
    def _add_location_to_errors(self) -> Iterator[None]:
        """Around all that is asked: its errors say where, and no secret."""
        try:
            if fault := self._find_setup_error():
                raise fault
            yield
        except ProviderError as error:
            where = " at ".join(filter(None, (self._choice.provider, format_host(self._url))))
            error.args = (redact(f"{where}: {error}", self._key, self._url.password),)
            raise

    @contextmanager
    def _convert_sdk_errors(self, request: Request) -> Iterator[None]:
        """Around a request, until its answer begins: what the SDK raises then becomes one of our errors."""
        try:
            yield
        except self._sdk.APIStatusError as error:
            wait_s = parse_retry_after_s(error.response.headers, time.time())
            raise self._build_refusal(request, error.status_code, error.body, wait_s) from error
        except self._sdk.APIConnectionError as error:
            raise ModelUnavailableError(
                f"no answer from {self._url.hostname}:{get_port(self._url)} ({describe_cause(error)}); "
                f"check the network, and {self._describe_address_settings()}",
                is_retryable=True,
            ) from error

    async def _stream_events(self, request: Request) -> AsyncGenerator[Any, None]:
        """The answer's decoded events; whatever the SDK raises becomes one of our errors."""
        await self._connect()
        import httpx2

        sdk, stall_s, body = self._sdk, self._choice.stall_s, self._encode_body(request)
        with self._convert_sdk_errors(request):
            stream = await self._post(body)
        has_begun = False
        events: Any = self._iterate_events(stream, request)
        try:
            while True:
                try:
                    # Not `async for`: its generator would outlive this one when this one is closed half-way.
                    # The SDK's own time limit is for single bytes: a server that only says `: ping` never meets it.
                    async with asyncio.timeout(stall_s):
                        event = await anext(events)
                except StopAsyncIteration:
                    break
                # The SDK lets what its JSON and UTF-8 decoders raise escape as it is.
                except (ValueError, RecursionError) as error:
                    raise BrokenStreamError(f"the stream is no valid JSON ({clip(str(error), 80)})") from error
                has_begun = True
                yield event
        except (sdk.APITimeoutError, httpx2.TimeoutException, TimeoutError) as error:
            raise BrokenStreamError(f"the stream stalled: nothing came for {stall_s:g} s (`stall_s`)") from error
        except (sdk.APIConnectionError, httpx2.HTTPError) as error:
            raise BrokenStreamError(f"the connection broke within the answer ({describe_cause(error)})") from error
        finally:
            await events.aclose()
            await stream.close()
        if not has_begun:
            kind = clip(stream.response.headers.get("content-type", "nothing"), 60)
            raise BrokenStreamError(f"no event stream came but {kind}; does base_url point to the API?")

    async def _connect(self) -> None:
        if self._client is not None:
            return
        import httpcore2

        # Reading the machine's certificates takes long and holds no lock: a thread does it during the import.
        certificates = asyncio.get_running_loop().run_in_executor(None, httpcore2.default_ssl_context)
        import httpx2

        with pause_gc():
            self._sdk = import_module(self.sdk_name)
        http_client = self._sdk.DefaultAsyncHttpxClient(
            verify=await certificates,
            timeout=httpx2.Timeout(self._choice.stall_s, connect=10),
            follow_redirects=self._follows_redirects,
        )
        self._client = self._create_client(max_retries=0, http_client=http_client)
