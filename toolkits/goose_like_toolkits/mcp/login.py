"""Logins at servers with OAuth 2.1: the tokens among the keys, the requests of sessions, and the login of a person."""

import base64
import hashlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from pydantic import ValidationError
from typing_extensions import override

from goose_like.config.secrets import delete_key, find_key, store_key
from goose_like.core.errors import UsageError
from goose_like.core.masking import add_secret
from goose_like.core.message import FrozenModel
from goose_like.core.threads import run_in_thread
from goose_like.providers.connection import is_loopback_host

from .server import ServerConfig

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

Visit = Callable[[str], Awaitable[str]]
"""Lets a person log in at the address of a page. Returns the whole address to which the page led in the end."""

_REFUSED = (401, 403)


class StoredLogin(FrozenModel):
    """A login as it is stored: the tokens, the client that got them, and the server that issued them.

    The SDK uses the client at no other issuer than the one in `metadata`. `expires_at` is in seconds since 1970.
    """

    tokens: dict[str, Any] = {}
    client: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    resource: dict[str, Any] = {}
    expires_at: float | None = None

    @property
    def issuer(self) -> str:
        """The address of the authorization server."""
        return str(self.metadata.get("issuer", ""))


def _name_key(server: ServerConfig) -> str:
    """Return the name of the login among the keys. The server's whole address counts: a token holds for no other."""
    digest = hashlib.sha256(server.url.encode()).hexdigest()
    return f"MCP_LOGIN_{digest[:16].upper()}"


def load_login(server: ServerConfig) -> StoredLogin | None:
    """Load the login at a server, and mask its tokens from now on; None if there is none.

    Raises:
        CredentialError: the keys cannot be read.
    """
    text = find_key(_name_key(server))
    if not text:
        return None
    try:
        login = StoredLogin.model_validate_json(base64.b64decode(text))
    except (ValueError, ValidationError):  # of another version: the person logs in again
        return None
    for name in ("access_token", "refresh_token"):
        add_secret(name, str(login.tokens.get(name) or ""))
    add_secret("client_secret", str(login.client.get("client_secret") or ""))
    return login


def store_login(server: ServerConfig, login: StoredLogin) -> str:
    """Store a login among the keys, and return the place for display. Raise CredentialError as `store_key`."""
    text = base64.b64encode(login.model_dump_json().encode()).decode()
    return store_key(_name_key(server), text)


def forget_login(server: ServerConfig) -> list[str]:
    """Delete a login, and return the places that had it. The server is not told."""
    return delete_key(_name_key(server))


class SessionAuth(httpx2.Auth):
    """The requests of a session, with the tokens of an earlier login, which are refreshed.

    A session never starts a login: a server that refuses a request would lead it to any address of its choice.
    `wants_login` is set once the server refused a request for want of a login.
    """

    def __init__(self, server: ServerConfig) -> None:
        self._server = server
        self._provider: OAuthClientProvider | None = None
        self._is_loaded = False
        self.wants_login = False

    @override
    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if not self._is_loaded:
            login = await run_in_thread(load_login, self._server)
            if login and login.tokens:
                self._provider = _build_provider(self._server, login)
            self._is_loaded = True
        if self._provider is None:
            response = yield request
            self._check(response)
            return
        flow = self._provider.async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                response = yield outgoing
                if outgoing is request:
                    self._check(response)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _check(self, response: httpx2.Response) -> None:
        """Raise UsageError if the server wants another login."""
        if response.status_code not in _REFUSED:
            return
        name = self._server.name
        is_scope_missing = "insufficient_scope" in response.headers.get("www-authenticate", "")
        if response.status_code == 403 and not is_scope_missing:
            return  # a login would not help
        if self._server.sends_key:
            raise UsageError(
                f"the server refuses the key in the header `Authorization`; store another one: "
                f"goose-like mcp login {name}"
            )
        self.wants_login = True
        if is_scope_missing:
            raise UsageError(f"the server wants a login with more rights: goose-like mcp login {name}")
        raise UsageError(f"the server wants a login: goose-like mcp login {name}")


def build_auth(server: ServerConfig) -> SessionAuth:
    """Return the authentication of the requests of a session. `server` is expanded."""
    return SessionAuth(server)


def build_login_auth(server: ServerConfig, visit: Visit, callback_url: str) -> "OAuthClientProvider":
    """Return an authentication that lets a person log in when the server wants it, and stores the login.

    The client is the one of the configuration if it names one, else its metadata document, else a new one that is
    registered at the server. `callback_url` is the address to which the login leads.

    Raises:
        UsageError: tokens would travel without encryption.
    """
    _check_address(server.url)
    # The SDK logs failures with their stack, and raises them too.
    logging.getLogger("mcp.client.auth.oauth2").setLevel(logging.CRITICAL)
    return _build_provider(server, load_login(server) or StoredLogin(), visit, callback_url)


def _build_provider(
    server: ServerConfig, login: StoredLogin, visit: Visit | None = None, callback_url: str = ""
) -> "OAuthClientProvider":
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata, ProtectedResourceMetadata
    from pydantic import AnyUrl

    redirects = [AnyUrl(callback_url)] if callback_url else None
    client = OAuthClientMetadata(client_name="goose-like", redirect_uris=redirects)
    storage = _Storage(server, login, callback_url)
    person = _Person(visit) if visit else None
    provider = OAuthClientProvider(
        server.url,
        client,
        storage,
        redirect_handler=person.open if person else None,
        callback_handler=person.read_answer if person else None,
        client_metadata_url=server.client_id if _is_document(server.client_id) else None,
    )
    # The SDK keeps none of these, but cannot refresh a token in another process without them.
    context = provider.context
    if login.metadata:
        context.oauth_metadata = OAuthMetadata.model_validate(login.metadata)
    if login.resource:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(login.resource)
    context.token_expiry_time = login.expires_at
    storage.context = context
    return provider


def _is_document(client_id: str) -> bool:
    """Check whether the id of a client is the address of a document that describes the client."""
    parts = urlsplit(client_id)
    return parts.scheme == "https" and parts.path not in ("", "/")


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback_host(parts.hostname):
        raise UsageError(f"{url} is not encrypted, so a login there could be stolen; use https")


class _Person:
    """The two handlers of the SDK's login, for one visit of a person."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._answer = ""

    async def open(self, url: str) -> None:
        _check_address(url)
        self._answer = await self._visit(url)

    async def read_answer(self) -> "AuthorizationCodeResult":
        return parse_answer(self._answer)


def parse_answer(address: str) -> "AuthorizationCodeResult":
    """Read the code in the address to which a login led. The SDK checks `state` and `iss`.

    Raises:
        UsageError: the server refused the login, or the address has no code.
    """
    from mcp.shared.auth import AuthorizationCodeResult

    found = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
    if error := found.get("error"):
        reason = found.get("error_description", error)
        raise UsageError(f"the login was refused: {reason}")
    if not found.get("code"):
        raise UsageError("this address has no `code=`; copy the whole address of the page to which the login led")
    return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))


class _Storage:
    """The storage of the SDK for one server. `context` is that of the provider, which uses the storage."""

    def __init__(self, server: ServerConfig, login: StoredLogin, callback_url: str) -> None:
        self._server = server
        self._login = login
        self._callback_url = callback_url
        self.context: Any = None

    async def get_tokens(self) -> "OAuthToken | None":
        from mcp.shared.auth import OAuthToken

        if self._callback_url or not self._login.tokens:
            return None  # the person wants a new login
        return OAuthToken.model_validate(self._login.tokens)

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        fields = tokens.model_dump(mode="json", exclude_none=True)
        for name in ("access_token", "refresh_token"):
            add_secret(name, str(fields.get(name, "")))
        self._login = StoredLogin(
            tokens=fields,
            client=self._login.client,
            metadata=_dump(self.context.oauth_metadata),
            resource=_dump(self.context.protected_resource_metadata),
            expires_at=self.context.token_expiry_time,
        )
        await run_in_thread(store_login, self._server, self._login)

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        from mcp.shared.auth import OAuthClientInformationFull

        if self._server.client_id and not _is_document(self._server.client_id):
            return _build_own_client(self._server, self._login.issuer)
        if not self._login.client:
            return None
        client = OAuthClientInformationFull.model_validate(self._login.client)
        registered = [str(url) for url in client.redirect_uris or ()]
        if self._callback_url and self._callback_url not in registered:
            return None  # the port is taken: the server would refuse another one
        return client

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        # Stored together with the tokens: without them it is of no use.
        self._login = self._login.model_copy(update={"client": _dump(client_info)})


def _build_own_client(server: ServerConfig, issuer: str) -> "OAuthClientInformationFull":
    """Return the client that the person registered. After the first login it is bound to that issuer."""
    from mcp.shared.auth import OAuthClientInformationFull

    return OAuthClientInformationFull(
        client_id=server.client_id,
        client_secret=server.client_secret or None,
        token_endpoint_auth_method="client_secret_basic" if server.client_secret else "none",
        issuer=issuer or None,
    )


def _dump(model: Any) -> dict[str, Any]:
    if model is None:
        return {}
    return dict(model.model_dump(mode="json", exclude_none=True))
