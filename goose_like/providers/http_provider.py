"""The base class of providers that send a request to a model server and read its answer as an event stream.

Requests go through httpx2 and not through the vendors' SDKs: their import would be most of the time to the first
request, and they drop what sloppy servers send (docs/decisions/0031).
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import SplitResult, urlencode, urlsplit

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
from goose_like.core.events import Retrying, Status, TextDelta, UsageRecorded

from .base import (
    STALL_S,
    Delta,
    ProbeResult,
    ProviderInfo,
    Request,
    SchemaDialect,
    ServerFacts,
    StreamParser,
    SupportsProbe,
    TellsFacts,
)
from .connection import ConnectionWatch, describe_cause, is_lasting
from .event_stream import DONE, EventDecoder, StreamEvent
from .http_client import create_client, find_proxy
from .http_headers import parse_retry_after_s
from .wire import build_status_error, clip, encode_json

if TYPE_CHECKING:
    from .remedies import Remedy

_PROBE_LIMIT_S = 5.0
_DRAIN_LIMIT_S = 0.1

_LAST_EVENTS = frozenset({"message_stop", "response.completed", "response.incomplete"})
"""The types of events after which nothing follows, in the wires that have typed events."""

_FORMAT_KEYS = frozenset({"response_format", "output_config"})
"""The keys of a body that hold the schema of an answer."""

_KEEP_ALIVE_FACTOR = 30
"""Longest time with nothing but keep-alives, in units of `stall_s`."""


class HttpProvider:
    """A provider that talks to one server over HTTP. Subclasses supply the vendor's part.

    `host` is the vendor's own server, and `path` the path of a request. Other servers with the same protocol are
    unknown, and may need no key; with an empty `host` there are no others. `url_settings` and `key_setting` name, for
    error messages, the settings of the base URL, and of the key if it has no variable. `wire` names the API. `stall_s`
    is the longest silence within a stream.
    """

    info: ClassVar[ProviderInfo]
    host: ClassVar[str]
    path: str
    wire: str
    url_settings: ClassVar[str]
    key_setting: ClassVar[str]
    key_is_optional: ClassVar[bool] = False
    follows_redirects: ClassVar[bool] = True
    stall_s: ClassVar[float] = STALL_S

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._stall_s = choice.stall_s or self.stall_s
        base_url = self._find_base_url().strip()
        try:
            self._url = urlsplit(base_url)
            _ = self._url.port  # raises for an invalid port
        except ValueError:  # "http://[::1", "http://box:99999"
            self._url = SplitResult("", "", base_url, "", "")
        self._key = find_key(self.info.key_variable)
        self._client: Any = None  # an httpx2.AsyncClient, imported at the first request
        self._connecting = asyncio.Lock()
        self._urls: dict[str, Any] = {}  # parsed, by path
        self._finishing: set[asyncio.Task[None]] = set()
        self._remedies: list[Remedy] = []
        self._refused_schema_models: set[str] = set()

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

    def _create_parser(self, request: Request) -> StreamParser:
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
        facts = ServerFacts()
        if isinstance(provider, TellsFacts):
            await provider.fetch_facts(choice.name)
            facts = provider.facts
        return ProbeResult(_format_host(provider._url), models, provider._can_verify_key(), provider.wire, facts)

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Send a request and stream its answer; see `Provider.stream`.

        A refusal that names its remedy is answered once with a changed request. The change stays for later requests.
        """
        while True:
            try:
                async with aclosing(self._stream_once(request)) as deltas:
                    async for delta in deltas:
                        yield delta
                return
            except ProviderError as error:
                if not error.refusal:
                    raise
                from .remedies import find_remedy  # few servers refuse a request

                remedy = find_remedy(error.refusal, self._remedies, self._encode_body(request))
                is_about_schema = remedy is None or remedy.key in _FORMAT_KEYS
                if request.answer_schema is not None and is_about_schema:
                    self._refused_schema_models.add(request.model)
                    raise
                if remedy is None:
                    raise
                self._remedies.append(remedy)
            self._apply_remedy(remedy)
            yield Retrying(text=remedy.text, wait_s=0)

    def find_schema_dialect(self, model: str) -> SchemaDialect | None:
        """See `SupportsAnswerSchema.find_schema_dialect`. A server that refused a schema gets no other one."""
        has_lost_format = any(remedy.key in _FORMAT_KEYS for remedy in self._remedies)
        if has_lost_format or model in self._refused_schema_models:
            return None
        return self._get_schema_dialect(model)

    def _get_schema_dialect(self, model: str) -> SchemaDialect | None:
        """Return the dialect that the vendor documents."""
        return None

    def _apply_remedy(self, remedy: "Remedy") -> None:
        """Change all later requests. Keys that are left out are those of `_leave_out`."""

    def _leave_out(self, extras: dict[str, Any]) -> dict[str, Any]:
        """Return the further keys of a body without those that the server refuses. None removes a key."""
        for remedy in self._remedies:
            if remedy.kind != "leave_out":
                continue
            outer, _, inner = remedy.key.partition(".")
            kept: dict[str, Any] = {}
            if inner and isinstance(extras.get(outer), dict):
                kept = dict(extras[outer])
                kept.pop(inner, None)
            extras = {**extras, outer: kept or None}
        return extras

    async def _stream_once(self, request: Request) -> AsyncGenerator[Delta, None]:
        with self._add_location_to_errors():
            parser = self._create_parser(request)
            shown = 0
            next_request: Request | None = request
            while next_request is not None:
                async with aclosing(self._stream_deltas(next_request, parser)) as deltas:
                    async for delta in deltas:
                        if isinstance(delta, TextDelta):
                            shown += len(delta.text)
                        yield delta
                usage = parser.usage
                next_request = self._continue_answer(request, parser)
                if next_request is not None:
                    yield UsageRecorded(model=request.model, usage=usage, purpose="paused answer", steps=1)
            done = parser.build_message()
            rest = done.message.text[shown:]
            if rest:  # held back, as it looked like the start of markup
                yield TextDelta(text=rest)
            yield done

    async def _stream_deltas(self, request: Request, parser: StreamParser) -> AsyncGenerator[Delta, None]:
        """Send a request, and yield what the parser makes of its answer."""
        has_begun = False
        try:
            async with aclosing(self._stream_events(request)) as events:
                async for event in events:
                    if isinstance(event, Status):
                        yield event
                        continue
                    has_begun = True
                    for delta in parser.feed(event):
                        yield delta
        except BrokenStreamError:
            if not parser.has_ended:
                raise
        finally:
            if has_begun:
                request.told_usage[:] = [parser.usage]

    def _continue_answer(self, request: Request, parser: StreamParser) -> Request | None:
        """Return the request that lets a server go on with an answer that it paused, or None after a whole answer."""
        return None

    async def close(self) -> None:
        """Close the connections."""
        await self._wait_for_ends()
        if self._client is not None:
            await self._client.aclose()

    def _is_own_server(self) -> bool:
        return not self.host or self._url.hostname == self.host

    def _can_verify_key(self) -> bool:
        """Check that the list of models needs the key."""
        return bool(self._key) and self._is_own_server()

    def _find_server_error(self) -> GooseLikeError | None:
        """Return the error about an invalid address or key."""
        url = self._url
        if url.scheme not in ("http", "https") or not url.hostname:
            wrong = _format_host(url) or repr(url.path)
            return ProfileError(f"{wrong} is no base URL; write {self.url_settings} like http://localhost:8080/v1")
        variable = self.info.key_variable
        needs_key = variable and not self.key_is_optional and self._is_own_server()
        if needs_key and not self._key:
            login = f"goose-like provider login {self._choice.provider}"
            hint = ", or base_url to a server that needs no key" if self.host else ""
            return CredentialError(f"set {variable} (or `{login}`){hint}")
        if not (self._key.isascii() and self._key.isprintable()):
            return CredentialError(f"{variable} holds characters that no key has; set it anew")
        return None

    def _find_choice_error(self) -> GooseLikeError | None:
        name = self._choice.provider
        if self._choice.name or self.info.processor:
            return None
        hint = ""
        if isinstance(self, SupportsProbe):
            hint = f"; `goose-like provider check {name}` lists them"
        return ProfileError(f"name one of its models, `{name}:MODEL`{hint}")

    def hide_address(self, text: str) -> str:
        """Replace the server's address in a text for people who may not know it."""
        host = _format_host(self._url)
        if host:
            text = text.replace(f" at {host}", "")
        name = self._url.hostname or ""
        name_and_port = f"{name}:{_get_port(self._url)}"
        # Longer forms first: the short ones are parts of them.
        for address in (self._url.geturl(), name_and_port, host, name):
            if len(address) > 3:  # replacing a short one such as "x" would only garble the text
                text = text.replace(address, "the model's server")
        return text

    @contextmanager
    def _add_location_to_errors(self) -> Iterator[None]:
        """Refuse an invalid address or key. Add the place to all errors, and remove secrets from their texts."""
        try:
            setup_error = self._find_server_error()
            if setup_error:
                raise setup_error
            yield
        except ProviderError as error:
            names = (self._choice.provider, _format_host(self._url))
            place = " at ".join(filter(None, names))
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

        client = await self._open_client()
        try:
            response = await self._send(client, path, body, extensions)
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
            raise self._build_connection_error(error) from error
        refusal = parse_json(content) or content.decode(errors="replace")
        raise self._build_refusal(model, response.status_code, refusal, response.headers)

    async def _open_client(self) -> Any:
        """Return the client, which the first request creates."""
        async with self._connecting:
            if self._client is None:
                self._client = await create_client(self._url, self._stall_s, follows_redirects=self.follows_redirects)
        return self._client

    def _build_connection_error(self, error: Exception) -> ModelUnavailableError:
        """Build the error for a request that no server answered, with the cause and what to check."""
        address = f"{self._url.hostname}:{_get_port(self._url)}"
        advice = f"check the network, and {self.url_settings}"
        proxy = find_proxy(self._url)
        if proxy:
            address = f"{address} through the proxy {proxy}"
            advice = "check the proxy, or name the host in NO_PROXY"
        cause = describe_cause(error)
        failure = ModelUnavailableError(f"no answer from {address} ({cause}); {advice}", is_retryable=True)
        if is_lasting(error, self._url.hostname):
            failure.max_attempts = 2
        return failure

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
        answer = parse_json(content)
        if answer is None:
            shown = clip(content.decode(errors="replace"), 80)
            raise BrokenStreamError(f"the answer is no JSON: {shown!r}")
        return answer

    async def _send(self, client: Any, path: str, body: bytes, extensions: Mapping[str, Any]) -> Any:
        headers = {"content-type": "application/json", "accept": "application/json", **self._build_headers()}
        url = self._parse_url(path)
        request = client.build_request("POST", url, content=body, headers=headers, extensions=dict(extensions))
        return await client.send(request, stream=True)

    def _parse_url(self, path: str) -> Any:
        """Return the URL of a path of the server as an `httpx2.URL`, which is parsed at the first request."""
        import httpx2

        url = self._urls.get(path)
        if url is None:
            url = httpx2.URL(self._build_url(path))
            self._urls[path] = url
        return url

    def _build_url(self, path: str, query: Mapping[str, str] = {}) -> str:
        """Build the URL of a path of the server. A query in the base URL is kept."""
        own_query = urlencode({**self._build_query(), **query})
        queries = filter(None, (self._url.query, own_query))
        whole_path = self._url.path.rstrip("/") + path
        url = self._url._replace(path=whole_path, query="&".join(queries))
        return url.geturl()

    def _build_refusal(self, model: str, status: int, body: object, headers: Mapping[str, str] = {}) -> ProviderError:
        """Build the error for an answer with an HTTP status that is no success."""
        key_name = self.info.key_variable or self.key_setting
        error = body
        if isinstance(body, dict):
            error = body.get("error") or body
        retry_after_s = parse_retry_after_s(headers)
        return build_status_error(status, error, model, key_name, retry_after_s)

    async def _stream_events(self, request: Request) -> AsyncGenerator[Any, None]:
        """Yield the decoded events of the answer, and before them a status if it takes long to connect."""
        await self._wait_for_ends()
        watch = ConnectionWatch()
        body = self._encode_body(request)
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
        has_begun = False
        is_over = False
        has_rest = False
        decoder = EventDecoder()
        pieces = response.aiter_bytes()
        clock = asyncio.get_running_loop().time
        last_event_s = clock()
        try:
            with self._explain_breaks():
                while not is_over:
                    # Each byte ends the client's time limit, also of a comment (`: ping`) while the model thinks.
                    # No `async for`: its generator would outlive this one when this one is closed early.
                    async with asyncio.timeout_at(last_event_s + self._stall_s * _KEEP_ALIVE_FACTOR):
                        piece = await anext(pieces, None)
                    is_over = piece is None
                    events = decoder.finish() if piece is None else decoder.feed(piece)
                    for event in events:
                        value = self._check_event(event, request.model, response.headers)
                        if value is None:
                            continue
                        has_begun = True
                        last_event_s = clock()
                        yield value
                        if _is_last(value):
                            is_over = True
                            break
                has_rest = piece is not None
        finally:
            if has_rest:
                self._finish_later(pieces, response)
            else:
                await pieces.aclose()
                await response.aclose()
        if not has_begun:
            kind = clip(response.headers.get("content-type", "nothing"), 60)
            raise BrokenStreamError(f"no event stream came but {kind}; does base_url point to the API?")

    def _finish_later(self, pieces: AsyncGenerator[bytes, None], response: Any) -> None:
        """Read the end of a whole answer and release its connection, while the calls in it run."""
        finishing = asyncio.create_task(_finish(pieces, response))
        self._finishing.add(finishing)
        finishing.add_done_callback(self._finishing.discard)

    async def _wait_for_ends(self) -> None:
        """Wait until the connections of whole answers can be used again."""
        if self._finishing:
            await asyncio.wait(self._finishing)

    @contextmanager
    def _explain_breaks(self) -> Iterator[None]:
        """Turn failures of a connection within an answer into errors that name the reason."""
        import httpx2

        stall_s = self._stall_s
        try:
            yield
        except httpx2.TimeoutException as error:
            raise BrokenStreamError(f"the stream stalled: nothing came for {stall_s:g} s (`stall_s`)") from error
        except TimeoutError as error:
            silence = f"only keep-alives came for {stall_s * _KEEP_ALIVE_FACTOR:g} s"
            raise BrokenStreamError(f"the stream stalled: {silence} ({_KEEP_ALIVE_FACTOR} x `stall_s`)") from error
        except httpx2.HTTPError as error:
            raise BrokenStreamError(f"the connection broke within the answer ({describe_cause(error)})") from error

    async def _fetch_model_names(self, path: str, query: Mapping[str, str] = {}) -> tuple[str, ...] | None:
        """Fetch the names of the server's models. None means a successful answer without a list.

        The path may be a complete URL.
        """
        return extract_names(await self._fetch_models(path, query))

    async def _fetch_models(self, path: str, query: Mapping[str, str] = {}) -> Any:
        """Fetch the list of the server's models as JSON."""
        import httpx2

        url = path if "://" in path else self._build_url(path, query)
        try:
            response = await self._get(url, _PROBE_LIMIT_S)
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = f"no answer within {_PROBE_LIMIT_S:g} s ({describe_cause(error)})"
            advice = "see that it runs, that its address is right, and that you are online"
            raise ModelUnavailableError(f"{reason}; {advice}") from error
        body = parse_json(response.content)
        if response.status_code in (404, 405) or response.is_redirect:
            raise ModelUnavailableError(
                f"something answers, but has nothing at {urlsplit(url).path} (HTTP {response.status_code}); "
                "correct the base URL"
            )
        if response.status_code >= 400:
            raise self._build_refusal("", response.status_code, body or response.text)
        return body

    async def _get(self, url: str, limit_s: float) -> Any:
        """Send a GET request and return the whole response."""
        # Do not follow redirects: the key is for this server only.
        client = await create_client(self._url, limit_s)
        async with asyncio.timeout(limit_s), client:
            return await client.get(url, headers=self._build_headers())


async def _abandon(posting: "asyncio.Future[Any]") -> None:
    """Stop a request and wait for its end. Close its response if it has arrived, so that the server stops."""
    posting.cancel()
    await asyncio.wait([posting])
    if not posting.cancelled() and posting.exception() is None:
        await posting.result().aclose()


def parse_json(content: bytes) -> Any:
    """Return the value, or None for what is no JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def extract_names(body: Any) -> tuple[str, ...] | None:
    """Extract the names from a list of models, or return None if this is no list."""
    # OpenAI lists objects with an `id` under `data`. Other servers use other keys for the same.
    candidates = body.values() if isinstance(body, dict) else [body]
    for entries in candidates:
        if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries):
            return _read_names(entries)
    return None


def _read_names(entries: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    names = []
    for entry in entries:
        name = entry.get("id") or entry.get("name")
        if isinstance(name, str):
            names.append(name.removeprefix("models/"))
    return tuple(names)


def _is_last(value: object) -> bool:
    """Return whether nothing follows after the value of an event."""
    if isinstance(value, dict):
        return value.get("type") in _LAST_EVENTS
    return value == DONE


def _format_host(url: SplitResult) -> str:
    """Return host and port of a URL, without user name and password."""
    return url.netloc.rpartition("@")[2]


def _get_port(url: SplitResult) -> int:
    """Return the port of a URL, or else that of its scheme."""
    if url.port:
        return url.port
    return 443 if url.scheme == "https" else 80


async def _finish(pieces: AsyncGenerator[bytes, None], response: Any) -> None:
    """Read the end of a body, so that the connection can be used again. Close the connection if the end is late."""
    with suppress(Exception):  # the answer is complete
        try:
            async with asyncio.timeout(_DRAIN_LIMIT_S):
                async for _ in pieces:
                    pass
        finally:
            await pieces.aclose()
            await response.aclose()
