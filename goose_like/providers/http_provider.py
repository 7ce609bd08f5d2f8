"""The base class of providers that send a request to a model server and read its answer as an event stream.

Requests go through httpx2 and not through the vendors' SDKs: their import would be most of the time to the first
request, and they drop what sloppy servers send (docs/decisions/0031).
"""

import asyncio
import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import Any, ClassVar
from urllib.parse import SplitResult, urlencode, urlsplit

from goose_like import __version__
from goose_like.config.profile import ModelChoice
from goose_like.config.secrets import find_key
from goose_like.core.errors import (
    BrokenStreamError,
    CredentialError,
    GooseLikeError,
    ModelUnavailableError,
    ProfileError,
    ProviderError,
)
from goose_like.core.events import Status, TextDelta

from .base import Delta, ProbeResult, ProviderInfo, Request, StreamParser, SupportsProbe
from .connection import ConnectionWatch, describe_cause, is_lasting
from .event_stream import DONE, EventDecoder, StreamEvent
from .text_markup import TaggedCallParser
from .wire import build_status_error, clip, encode_json

_PROBE_LIMIT_S = 5.0
_DRAIN_LIMIT_S = 0.1
_YEAR_S = 366 * 86_400.0

_KEEP_ALIVE_FACTOR = 30
"""Longest time with nothing but keep-alives, in units of `stall_s`."""


class HttpProvider:
    """A provider that talks to one server over HTTP. Subclasses supply the vendor's part.

    `host` is the vendor's own server, and `path` the path of a request. Other servers with the same protocol are
    unknown, and may need no key; with an empty `host` there are no others. `url_settings` and `key_setting` name, for
    error messages, the settings of the base URL, and of the key if it has no variable.
    """

    info: ClassVar[ProviderInfo]
    host: ClassVar[str]
    path: ClassVar[str]
    url_settings: ClassVar[str]
    key_setting: ClassVar[str]
    key_is_optional: ClassVar[bool] = False
    follows_redirects: ClassVar[bool] = True

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        base_url = self._find_base_url().strip()
        try:
            self._url = urlsplit(base_url)
            _ = self._url.port  # raises for an invalid port
        except ValueError:  # "http://[::1", "http://box:99999"
            self._url = SplitResult("", "", base_url, "", "")
        self._key = find_key(self.info.key_variable)
        self._client: Any = None  # an httpx2.AsyncClient, imported at the first request
        self._connecting = asyncio.Lock()

    # --- supplied by subclasses

    def _find_base_url(self) -> str:
        raise NotImplementedError

    def _build_headers(self) -> dict[str, str]:
        """Build the headers with the key and the vendor's own."""
        raise NotImplementedError

    def _build_query(self) -> Mapping[str, str]:
        """Build the query parameters of all requests."""
        return {}

    def _encode_body(self, request: Request) -> bytes:
        raise NotImplementedError

    def _check_event(self, event: StreamEvent, model: str, headers: Mapping[str, str]) -> Any:
        """Return the value for the parser, or None for a keep-alive. `headers` are the answer's.

        Raises:
            ProviderError: The event reports an error that the parser does not know.
        """
        raise NotImplementedError

    def _create_parser(self) -> StreamParser:
        raise NotImplementedError

    async def _list_models(self) -> tuple[str, ...] | None:
        """List the server's models in a free request that needs the key, if possible; see `_fetch_model_names`."""
        raise NotImplementedError

    # --- the same for all vendors

    @classmethod
    def find_setup_error(cls, choice: ModelChoice) -> GooseLikeError | None:
        """Return the error about a missing or invalid setting, or None if the choice is usable."""
        try:
            provider = cls(choice)
            return provider._find_server_error() or provider._find_choice_error()
        except GooseLikeError as error:
            return error

    @classmethod
    async def probe(cls, choice: ModelChoice, key: str = "") -> ProbeResult:
        """Check address and key of the server by listing its models; see `SupportsProbe.probe`."""
        provider = cls(choice)
        provider._key = key or provider._key
        with provider._add_location_to_errors():
            models = await provider._list_models()
        return ProbeResult(_format_host(provider._url), models, provider._can_verify_key())

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Send a request and stream its answer; see `Provider.stream`."""
        with self._add_location_to_errors():
            parser, shown = self._create_parser(), 0
            if request.tools and self._choice.tools != "constrained":
                parser = TaggedCallParser.create(parser, request.tools)
            try:
                async with aclosing(self._stream_events(request)) as events:
                    async for event in events:
                        for delta in [event] if isinstance(event, Status) else parser.feed(event):
                            shown += len(delta.text) if isinstance(delta, TextDelta) else 0
                            yield delta
            except BrokenStreamError:
                if not parser.has_ended:
                    raise
            done = parser.build_message()
            if rest := done.message.text[shown:]:  # held back, as it looked like the start of markup
                yield TextDelta(text=rest)
            yield done

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    def _is_own_server(self) -> bool:
        return not self.host or self._url.hostname == self.host

    def _can_verify_key(self) -> bool:
        """Check that the list of models needs the key."""
        return bool(self._key) and self._is_own_server()

    def _find_server_error(self) -> GooseLikeError | None:
        """Return the error about an invalid address or key."""
        url, variable = self._url, self.info.key_variable
        if url.scheme not in ("http", "https") or not url.hostname:
            wrong = _format_host(url) or repr(url.path)
            return ProfileError(f"{wrong} is no base URL; write {self.url_settings} like http://localhost:8080/v1")
        if variable and not self._key and not self.key_is_optional and self._is_own_server():
            hint = ", or base_url to a server that needs no key" if self.host else ""
            return CredentialError(f"set {variable} (or `goose-like provider login {self._choice.provider}`){hint}")
        if not (self._key.isascii() and self._key.isprintable()):
            return CredentialError(f"{variable} holds characters that no key has; set it anew")
        return None

    def _find_choice_error(self) -> GooseLikeError | None:
        name = self._choice.provider
        if self._choice.name or self.info.processor:
            return None
        hint = f"; `goose-like provider check {name}` lists them" if isinstance(self, SupportsProbe) else ""
        return ProfileError(f"name one of its models, `{name}:MODEL`{hint}")

    def hide_address(self, text: str) -> str:
        """Replace the server's address in a text for people who may not know it."""
        url, host = self._url, _format_host(self._url)
        text = text.replace(f" at {host}", "") if host else text
        name = url.hostname or ""
        for address in (url.geturl(), f"{name}:{url.port or (443 if url.scheme == 'https' else 80)}", host, name):
            if len(address) > 3:  # replacing a short one such as "x" would only garble the text
                text = text.replace(address, "the model's server")
        return text

    @contextmanager
    def _add_location_to_errors(self) -> Iterator[None]:
        """Refuse an invalid address or key. Add the place to all errors, and remove secrets from their texts."""
        try:
            if error := self._find_server_error():
                raise error
            yield
        except ProviderError as error:
            place = " at ".join(filter(None, (self._choice.provider, _format_host(self._url))))
            text = f"{place}: {error}"
            for secret in (self._key, self._url.password):
                if secret and len(secret) > 3:  # replacing a short one such as "x" would only garble the text
                    text = text.replace(secret, "***")
            error.args = (text,)
            raise

    async def _post(self, path: str, body: bytes, model: str, extensions: Mapping[str, Any] = {}) -> Any:
        """Send a body and return the response, unread, after its head has arrived.

        Raises:
            ProviderError: No answer came, or the answer is a refusal.
        """
        import httpx2

        async with self._connecting:
            self._client = self._client or await _create_client(self._choice.stall_s, self.follows_redirects)
        try:
            response = await self._send(self._client, path, body, extensions)
            if response.is_success:
                return response
            content = await response.aread()
        except httpx2.TooManyRedirects as error:
            raise ModelUnavailableError(
                f"the server redirects without end; correct {self.url_settings}", is_retryable=False
            ) from error
        except httpx2.InvalidURL as error:
            raise ProfileError(
                f"{_format_host(self._url)} is no address ({error}); correct {self.url_settings}"
            ) from error
        except httpx2.HTTPError as error:
            port = self._url.port or (443 if self._url.scheme == "https" else 80)
            text = f"no answer from {self._url.hostname}:{port} ({describe_cause(error)})"
            failure = ModelUnavailableError(f"{text}; check the network, and {self.url_settings}", is_retryable=True)
            failure.max_attempts = 2 if is_lasting(error, self._url.hostname) else None
            raise failure from error
        refusal = _parse_json(content) or content.decode(errors="replace")
        raise self._build_refusal(model, response.status_code, refusal, response.headers)

    async def _fetch(self, path: str, body: bytes, model: str) -> bytes:
        """Send a body and return the whole answer.

        Raises:
            ProviderError: No whole answer came, or the answer is a refusal.
        """
        response = await self._post(path, body, model)
        import httpx2

        try:
            return bytes(await response.aread())
        except httpx2.HTTPError as error:
            raise BrokenStreamError(f"the connection broke within the answer ({describe_cause(error)})") from error

    async def _fetch_json(self, path: str, body: Mapping[str, Any], model: str) -> Any:
        """Send a body and return the whole answer as a JSON value. Raise as `_fetch`."""
        content = await self._fetch(path, encode_json(body), model)
        if (answer := _parse_json(content)) is None:
            raise BrokenStreamError(f"the answer is no JSON: {clip(content.decode(errors='replace'), 80)!r}")
        return answer

    async def _send(self, client: Any, path: str, body: bytes, extensions: Mapping[str, Any]) -> Any:
        headers = {"content-type": "application/json", "accept": "application/json", **self._build_headers()}
        url = self._build_url(path)
        request = client.build_request("POST", url, content=body, headers=headers, extensions=dict(extensions))
        return await client.send(request, stream=True)

    def _build_url(self, path: str, query: Mapping[str, str] = {}) -> str:
        """Build the URL of a path of the server. A query in the base URL is kept."""
        queries = filter(None, (self._url.query, urlencode({**self._build_query(), **query})))
        return self._url._replace(path=self._url.path.rstrip("/") + path, query="&".join(queries)).geturl()

    def _build_refusal(self, model: str, status: int, body: object, headers: Mapping[str, str] = {}) -> ProviderError:
        key_name = self.info.key_variable or self.key_setting
        if isinstance(body, dict):
            body = body.get("error") or body
        return build_status_error(status, body, model, key_name, parse_retry_after_s(headers))

    async def _stream_events(self, request: Request) -> AsyncGenerator[Any, None]:
        """Yield the decoded events of the answer, and before them a status if it takes long to connect."""
        watch, body = ConnectionWatch(), self._encode_body(request)
        posting = asyncio.ensure_future(self._post(self.path, body, request.model, watch.extensions))
        response: Any = None
        try:
            async with aclosing(watch.report(posting)) as statuses:
                async for status in statuses:
                    yield status
            response = await posting
        finally:
            if response is None:
                await _abandon(posting)
        import httpx2

        stall_s = self._choice.stall_s
        has_begun, is_over, decoder = False, False, EventDecoder()
        pieces, clock = response.aiter_bytes(), asyncio.get_running_loop().time
        last_event_s = clock()
        try:
            while not is_over:
                # Each byte ends the client's time limit, also of a comment (`: ping`) while the model thinks.
                # No `async for`: its generator would outlive this one when this one is closed early.
                async with asyncio.timeout_at(last_event_s + stall_s * _KEEP_ALIVE_FACTOR):
                    piece = await anext(pieces, None)
                is_over = piece is None
                for event in decoder.finish() if piece is None else decoder.feed(piece):
                    value = self._check_event(event, request.model, response.headers)
                    if value is None:
                        continue
                    has_begun, last_event_s = True, clock()
                    yield value
                    if value == DONE or (isinstance(value, dict) and value.get("type") == "message_stop"):
                        is_over = True
                        break
            if piece is not None:
                await _drain(pieces)
        except httpx2.TimeoutException as error:
            raise BrokenStreamError(f"the stream stalled: nothing came for {stall_s:g} s (`stall_s`)") from error
        except TimeoutError as error:
            silence = f"only keep-alives came for {stall_s * _KEEP_ALIVE_FACTOR:g} s"
            raise BrokenStreamError(f"the stream stalled: {silence} ({_KEEP_ALIVE_FACTOR} x `stall_s`)") from error
        except httpx2.HTTPError as error:
            raise BrokenStreamError(f"the connection broke within the answer ({describe_cause(error)})") from error
        finally:
            await pieces.aclose()
            await response.aclose()
        if not has_begun:
            kind = clip(response.headers.get("content-type", "nothing"), 60)
            raise BrokenStreamError(f"no event stream came but {kind}; does base_url point to the API?")

    async def _fetch_model_names(self, path: str, query: Mapping[str, str] = {}) -> tuple[str, ...] | None:
        """Fetch the names of the server's models. None means a successful answer without a list.

        The path may be a complete URL.
        """
        import httpx2

        from .answer_limits import limit_answer

        url = path if "://" in path else self._build_url(path, query)
        try:
            # Do not follow redirects: the key is for this server only.
            hooks = {"response": [limit_answer]}
            client = httpx2.AsyncClient(timeout=_PROBE_LIMIT_S, event_hooks=hooks)
            async with asyncio.timeout(_PROBE_LIMIT_S), client:
                response = await client.get(url, headers=self._build_headers())
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = f"no answer within {_PROBE_LIMIT_S:g} s ({describe_cause(error)})"
            raise ModelUnavailableError(f"{reason}; does it run, is its address right, are you online?") from error
        body = _parse_json(response.content)
        if response.status_code in (404, 405) or response.is_redirect:
            raise ModelUnavailableError(
                f"something answers, but has nothing at {urlsplit(url).path} (HTTP {response.status_code}); "
                "correct the base URL"
            )
        if response.status_code >= 400:
            raise self._build_refusal("", response.status_code, body or response.text)
        return _extract_names(body)


async def _abandon(posting: "asyncio.Future[Any]") -> None:
    """Stop a request and wait for its end. Close its response if it has arrived, so that the server stops."""
    posting.cancel()
    await asyncio.wait([posting])
    if not posting.cancelled() and posting.exception() is None:
        await posting.result().aclose()


async def _create_client(stall_s: float, follows_redirects: bool) -> Any:
    import httpcore2

    # Loading the system's certificates is slow but releases the lock: a thread does it during the import.
    certificates = asyncio.get_running_loop().run_in_executor(None, httpcore2.default_ssl_context)
    import httpx2

    from .answer_limits import HEADERS, limit_answer

    return httpx2.AsyncClient(
        verify=await certificates,
        timeout=httpx2.Timeout(stall_s, connect=10),
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
        follow_redirects=follows_redirects,
        max_redirects=5,
        headers={**HEADERS, "user-agent": f"goose-like/{__version__}"},
        event_hooks={"response": [limit_answer]},
    )


def parse_custom_headers(text: str) -> dict[str, str]:
    """Parse the vendors' variables of additional headers: one `name: value` per line."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon and name.strip()}


def _parse_json(content: bytes) -> Any:
    """Return the value, or None for what is no JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _extract_names(body: Any) -> tuple[str, ...] | None:
    # OpenAI lists objects with an `id` under `data`. Other servers use other keys for the same.
    for entries in body.values() if isinstance(body, dict) else [body]:
        if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries):
            names = (entry.get("id") or entry.get("name") for entry in entries)
            return tuple(name.removeprefix("models/") for name in names if isinstance(name, str))
    return None


def _format_host(url: SplitResult) -> str:
    """Return host and port of a URL, without user name and password."""
    return url.netloc.rpartition("@")[2]


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read the end of a body, so that the connection can be used again."""
    with suppress(Exception):  # the answer is complete
        async with asyncio.timeout(_DRAIN_LIMIT_S):
            async for _ in pieces:
                pass


def parse_retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Parse the pause that a server asks for: `retry-after-ms`, or `retry-after` in seconds or as a date.

    Return None for a missing or useless value, at most a year. Source: RFC 9110, 10.2.3.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            wait_s = float(headers.get(name, "")) * unit_s
            if math.isfinite(wait_s) and wait_s >= 0:
                return min(wait_s, _YEAR_S)
    from email.utils import parsedate_to_datetime  # rarely needed

    with suppress(ValueError, OverflowError):
        wait_s = parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time()
        return min(wait_s, _YEAR_S) if wait_s > 0 else None
    return None
