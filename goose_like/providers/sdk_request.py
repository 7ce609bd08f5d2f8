"""The base class of providers that use a vendor's SDK. Both SDKs come from the same generator.

The SDK handles connection, headers and event stream. The body is encoded here: the SDK's typed methods would rebuild
the whole history on each call.
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
from .sdk_client import add_location, describe_cause, get_port, parse_retry_after_s
from .wire import clip


class StreamParser(Protocol):
    """A parser that turns the events of an answer into deltas and, at the end, into the message."""

    def feed(self, event: Any, /) -> list[Delta]:
        """Take an event and return the deltas to show."""
        ...

    def build_message(self) -> MessageCompleted:
        """Build the message after the last event."""
        ...


class SdkProvider:
    """A provider that talks to one server through its vendor's SDK. Subclasses supply the vendor's part."""

    sdk_name: ClassVar[str]

    def __init__(
        self, choice: ModelChoice, url: SplitResult, key: str, url_settings: str, *, follows_redirects: bool = True
    ) -> None:
        """Create a provider. `url_settings` names the settings that hold the URL, for error messages."""
        self._choice = choice
        self._url = url
        self._key = key
        self._url_settings = url_settings
        self._follows_redirects = follows_redirects
        self._sdk: Any = None
        self._client: Any = None

    # --- supplied by subclasses

    def _find_setup_error(self) -> GooseLikeError | None:
        """Return the error about a missing or invalid setting."""
        raise NotImplementedError

    def _create_client(self, **options: Any) -> Any:
        """Create the SDK's client."""
        raise NotImplementedError

    def _encode_body(self, request: Request) -> bytes:
        """Encode the JSON body of a request."""
        raise NotImplementedError

    async def _post(self, body: bytes) -> Any:
        """Send a body and return the SDK's stream after the head of the answer has arrived."""
        raise NotImplementedError

    def _iterate_events(self, stream: Any, request: Request) -> AsyncIterator[Any]:
        """Iterate over the decoded events of a stream. The iterator has an `aclose`."""
        raise NotImplementedError

    def _create_parser(self) -> StreamParser:
        """Create the parser of the events."""
        raise NotImplementedError

    def _build_refusal(self, request: Request, status: int, body: object, wait_s: float | None) -> ProviderError:
        """Build the error for a refused request. `wait_s` is the pause that the server asks for."""
        raise NotImplementedError

    # --- the same for all vendors

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Send a request and stream its answer; see `Provider.stream`."""
        with self._add_location_to_errors():
            parser = self._create_parser()
            async with aclosing(self._stream_events(request)) as events:
                async for event in events:
                    for delta in parser.feed(event):
                        yield delta
            yield parser.build_message()

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    @contextmanager
    def _add_location_to_errors(self) -> Iterator[None]:
        """Add provider and host to all errors, and remove secrets from their texts."""
        try:
            if error := self._find_setup_error():
                raise error
            yield
        except ProviderError as error:
            add_location(error, self._choice.provider, self._url, self._key)
            raise

    @contextmanager
    def _convert_sdk_errors(self, request: Request) -> Iterator[None]:
        """Convert the SDK's errors, from the start of a request until its answer begins."""
        try:
            yield
        except self._sdk.APIStatusError as error:
            wait_s = parse_retry_after_s(error.response.headers, time.time())
            raise self._build_refusal(request, error.status_code, error.body, wait_s) from error
        except self._sdk.APIConnectionError as error:
            raise ModelUnavailableError(
                f"no answer from {self._url.hostname}:{get_port(self._url)} ({describe_cause(error)}); "
                f"check the network, and {self._url_settings}",
                is_retryable=True,
            ) from error

    async def _stream_events(self, request: Request) -> AsyncGenerator[Any, None]:
        """Yield the decoded events of the answer and convert all errors of the SDK."""
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
                    # No `async for`: its generator would outlive this one when this one is closed early.
                    # The SDK's timeout applies to single bytes, so a server that only sends `: ping` never hits it.
                    async with asyncio.timeout(stall_s):
                        event = await anext(events)
                except StopAsyncIteration:
                    break
                # The SDK does not convert the errors of its JSON and UTF-8 decoders.
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

        # Loading the system's certificates is slow but releases the lock: a thread does it during the import.
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
