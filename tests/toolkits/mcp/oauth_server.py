"""An MCP server at a URL that wants a login, and the authorization server that it trusts."""

import asyncio
import base64
import hashlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import uvicorn
from mcp.server import MCPServer
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response


@dataclass
class OAuthServer:
    """Both servers at one port. The fields choose how they behave, and note what they saw."""

    port: int = 0
    answers_with_issuer: str = ""
    """The issuer in the answer of a login, instead of the right one."""
    error: str = ""
    expires_in: int = 3600
    knows_documents: bool = False
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    refresh_tokens: set[str] = field(default_factory=set)
    seen: list[str] = field(default_factory=list)
    calls: int = 0

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.issuer}/mcp"

    def register(self, client_id: str, redirect: str, secret: str | None = None) -> None:
        self.clients[client_id] = {"redirects": [redirect], "secret": secret}

    async def answer(self, request: Request) -> Response | None:
        """Answer a request to the authorization server; None for one to the MCP server with a valid token."""
        path = request.url.path
        if path.startswith("/.well-known/oauth-protected-resource"):
            return JSONResponse({"resource": self.url, "authorization_servers": [self.issuer]})
        if path == "/.well-known/oauth-authorization-server":
            return JSONResponse(self.describe())
        handlers = {"/register": self.take_client, "/authorize": self.authorize, "/token": self.issue}
        if path in handlers:
            self.seen.append(path)
            return await handlers[path](request)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token in self.tokens:
            return None
        where = f"{self.issuer}/.well-known/oauth-protected-resource/mcp"
        self.seen.append("401")
        return JSONResponse(
            {"error": "invalid_token"}, 401, {"WWW-Authenticate": f'Bearer resource_metadata="{where}"'}
        )

    def describe(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": self.knows_documents,
        }

    async def take_client(self, request: Request) -> Response:
        body = await request.json()
        client_id = f"client-{len(self.clients) + 1}"
        self.clients[client_id] = {"redirects": body["redirect_uris"], "secret": None}
        return JSONResponse({**body, "client_id": client_id, "token_endpoint_auth_method": "none"}, 201)

    async def authorize(self, request: Request) -> Response:
        """Log in whoever comes."""
        query = request.query_params
        is_document = self.knows_documents and query["client_id"].startswith("https://")
        if not is_document:
            assert query["redirect_uri"] in self.clients[query["client_id"]]["redirects"]
        assert query["code_challenge_method"] == "S256"
        answer = {"state": query["state"], "iss": self.answers_with_issuer or self.issuer}
        if self.error:
            answer |= {"error": self.error, "error_description": "you may not"}
        else:
            code = f"code-{len(self.codes) + 1}"
            self.codes[code] = {"challenge": query["code_challenge"], "client": query["client_id"]}
            answer["code"] = code
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode(answer)}")

    async def issue(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        if not self.is_known(form, request.headers.get("authorization", "")):
            return JSONResponse({"error": "invalid_client"}, 401)
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refresh_tokens:
                return JSONResponse({"error": "invalid_grant"}, 400)
            self.refresh_tokens.remove(form["refresh_token"])
        else:
            code = self.codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == code["challenge"]
        self.calls += 1
        token = f"access-token-{self.calls}-0123456789"
        refresh = f"refresh-token-{self.calls}-0123456789"
        self.tokens.add(token)
        self.refresh_tokens.add(refresh)
        body = {"access_token": token, "token_type": "Bearer", "expires_in": self.expires_in, "refresh_token": refresh}
        return JSONResponse(body)

    def is_known(self, form: dict[str, str], header: str) -> bool:
        """Check the client, and its secret if it has one."""
        client_id = form.get("client_id", "")
        if client_id.startswith("https://"):
            return self.knows_documents
        secret = self.clients[client_id]["secret"]
        if secret is None:
            return True
        expected = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
        return header == f"Basic {expected}"


@asynccontextmanager
async def oauth_server(**fields: Any) -> AsyncIterator[OAuthServer]:
    """Serve on a port of this machine."""
    state = OAuthServer(**fields)
    mcp = MCPServer("private")

    @mcp.tool()
    def whoami() -> str:
        """Say who is logged in."""
        return "Ann"

    inner = mcp.streamable_http_app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        response = await state.answer(Request(scope, receive))
        await (response or inner)(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    state.port = listener.getsockname()[1]
    config = uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.capture_signals = _capture_nothing  # type: ignore[method-assign]
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        yield state
    finally:
        server.should_exit = True
        await serving


def _capture_nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()
