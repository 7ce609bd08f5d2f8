import json
import time
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

pytest.importorskip("mcp")

from goose_like_toolkits.mcp.browser import CallbackServer, open_callback, visit
from goose_like_toolkits.mcp.login import (
    SessionAuth,
    StoredLogin,
    _is_document,
    build_login_auth,
    forget_login,
    load_login,
    parse_answer,
    store_login,
)
from goose_like_toolkits.mcp.server import ServerConfig
from mcp.shared.auth import OAuthClientInformationFull

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.masking import mask_text
from tests import ROOT
from tests.toolkits.mcp.oauth_server import OAuthServer, oauth_server

CALLBACK = "http://127.0.0.1:40000/callback"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HEADERS = {"accept": "application/json, text/event-stream"}


def make_config(server: OAuthServer, **fields) -> ServerConfig:
    return ServerConfig(name="private", origin="the test", transport="http", url=server.url, **fields)


async def follow(url: str) -> str:
    """Log in without a browser: return the address to which the page leads."""
    async with httpx2.AsyncClient() as client:
        return (await client.get(url)).headers["location"]


async def send(config: ServerConfig, auth: httpx2.Auth) -> int:
    """Send a request, and return the status of its answer."""
    async with httpx2.AsyncClient(auth=auth) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
        return (await client.post(config.url, json=body, headers=HEADERS)).status_code


INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


async def log_in(config: ServerConfig, callback_url: str = CALLBACK) -> None:
    assert await send(config, build_login_auth(config, follow, callback_url)) == 200


async def test_a_login_is_stored_and_used_by_sessions():
    async with oauth_server() as server:
        config = make_config(server)
        await log_in(config)
        assert server.seen == ["401", "/register", "/authorize", "/token"]
        login = load_login(config)
        assert login.issuer == server.issuer
        assert mask_text(login.tokens["access_token"]) == "[masked:access_token]"
        assert await send(config, SessionAuth(config)) == 200
        assert "/authorize" not in server.seen[4:]


async def test_tokens_are_stored_where_keys_are(home):
    async with oauth_server() as server:
        config = make_config(server)
        await log_in(config)
        file = home / "config/keys.yaml"
        assert file.stat().st_mode & 0o077 == 0
        assert "access-token" not in file.read_text()  # not as plain text
        assert forget_login(config) == [str(file)]
        assert load_login(config) is None


async def test_a_session_without_a_login_asks_the_server_once_and_registers_nothing():
    async with oauth_server() as server:
        auth = SessionAuth(make_config(server))
        with pytest.raises(UsageError, match="wants a login: goose-like mcp login private"):
            await send(make_config(server), auth)
        assert auth.wants_login
        assert server.seen == ["401"]


async def test_a_login_at_one_address_is_not_sent_to_another():
    async with oauth_server() as server, oauth_server() as other:
        await log_in(make_config(server))
        with pytest.raises(UsageError):
            await send(make_config(other), SessionAuth(make_config(other)))


async def test_an_expired_token_is_refreshed_in_another_process():
    async with oauth_server(expires_in=1) as server:
        config = make_config(server)
        await log_in(config)
        first = load_login(config)
        store_login(config, first.model_copy(update={"expires_at": time.time() - 10}))
        server.tokens.clear()
        server.expires_in = 3600
        assert await send(config, SessionAuth(config)) == 200
        assert server.seen[4:] == ["/token"]
        second = load_login(config)
        assert second.tokens["access_token"] != first.tokens["access_token"]
        assert second.expires_at > time.time() + 3000
        assert await send(config, SessionAuth(config)) == 200


async def test_a_session_never_starts_a_login():
    async with oauth_server() as server:
        config = make_config(server)
        await log_in(config)
        server.tokens.clear()
        server.refresh_tokens.clear()
        with pytest.raises(UsageError, match="wants a login"):
            await send(config, SessionAuth(config))
        assert server.seen[4:] == ["401"]


async def test_a_wrong_issuer_in_the_answer_ends_the_login():
    async with oauth_server(answers_with_issuer="https://evil.example.org") as server:
        config = make_config(server)
        with pytest.raises(Exception, match="iss mismatch"):
            await log_in(config)
        assert "/token" not in server.seen
        assert load_login(config) is None


async def test_a_refused_login_says_why():
    async with oauth_server(error="access_denied") as server:
        with pytest.raises(UsageError, match="the login was refused: you may not"):
            await log_in(make_config(server))


async def test_a_forged_state_ends_the_login():
    async def forge(url: str) -> str:
        address = await follow(url)
        state = parse_qs(urlsplit(address).query)["state"][0]
        return address.replace(state, "other")

    async with oauth_server() as server:
        config = make_config(server)
        with pytest.raises(Exception, match="State"):
            await send(config, build_login_auth(config, forge, CALLBACK))
        assert "/token" not in server.seen


async def test_a_client_of_the_person_is_not_registered():
    async with oauth_server() as server:
        server.register("mine", CALLBACK, "hush-0123456789")
        config = make_config(server, client_id="mine", client_secret="hush-0123456789")
        await log_in(config)
        assert server.seen == ["401", "/authorize", "/token"]


async def test_the_secret_of_a_client_goes_to_no_other_issuer():
    async with oauth_server() as server:
        server.register("mine", CALLBACK, "hush-0123456789")
        config = make_config(server, client_id="mine", client_secret="hush-0123456789")
        await log_in(config)
        login = load_login(config)
        store_login(config, login.model_copy(update={"metadata": {**login.metadata, "issuer": "https://e.org"}}))
        server.seen.clear()
        server.tokens.clear()
        await log_in(config)
        assert server.seen == ["401", "/register", "/authorize", "/token"]


async def test_a_document_describes_the_client():
    async with oauth_server(knows_documents=True) as server:
        await log_in(make_config(server, client_id="https://example.org/client.json"))
        assert server.seen == ["401", "/authorize", "/token"]


async def test_a_server_without_documents_registers_the_client():
    async with oauth_server() as server:
        await log_in(make_config(server, client_id="https://example.org/client.json"))
        assert "/register" in server.seen


async def test_another_port_needs_another_registration():
    async with oauth_server() as server:
        config = make_config(server)
        await log_in(config)
        server.tokens.clear()
        await log_in(config)
        assert server.seen.count("/register") == 1
        server.tokens.clear()
        await log_in(config, "http://127.0.0.1:40001/callback")
        assert server.seen.count("/register") == 2


def test_no_login_without_encryption():
    config = ServerConfig(name="a", origin="x", transport="http", url="http://example.org/mcp")
    with pytest.raises(UsageError, match="not encrypted"):
        build_login_auth(config, follow, CALLBACK)


def test_a_header_that_the_server_refuses_is_named(home):
    config = ServerConfig(
        name="a", origin="x", transport="http", url="https://e.org", headers={"authorization": "Bearer x"}
    )
    response = httpx2.Response(401)
    with pytest.raises(UsageError, match="refuses the key in the header `Authorization`"):
        SessionAuth(config)._check(response)


@pytest.mark.parametrize("text", ["", "abc", "not base64 ~", "e30="])
def test_a_damaged_login_counts_as_none(text, home):
    config = ServerConfig(name="a", origin="x", transport="http", url="https://e.org")
    store_login(config, StoredLogin())
    file = home / "config/keys.yaml"
    name = file.read_text().partition(":")[0]
    file.write_text(f"{name}: {json.dumps(text)}\n")
    login = load_login(config)
    assert login is None or login.tokens == {}


@pytest.mark.parametrize("address", ["", "https://e.org/", "code-1", "http://127.0.0.1/callback?state=1"])
def test_an_address_without_a_code(address):
    with pytest.raises(GooseLikeError, match="has no `code=`"):
        parse_answer(address)


async def test_the_browser_comes_back_and_others_do_not():
    async with open_callback() as callback, httpx2.AsyncClient() as client:
        callback.state = "right"
        for path in ("/", "/callback", "/callback?state=wrong&code=x", "/callback?state=&code=x"):
            response = await client.get(callback.url.replace("/callback", path))
            assert response.status_code == 404
            assert not callback.answer.done()
        response = await client.get(f"{callback.url}?state=right&code=1")
        assert response.status_code == 200
        assert callback.answer.result() == f"{callback.url}?state=right&code=1"


async def test_a_fixed_port_that_is_taken_is_named():
    async with open_callback() as first:
        with pytest.raises(UsageError, match=f"the port {first.port} of this login is in use"):
            async with open_callback(first.port, is_fixed=True):
                pass
        async with open_callback(first.port) as second:
            assert second.port != first.port


async def test_a_person_without_a_browser_pastes_the_address(monkeypatch, tmp_path):
    pasted = tmp_path / "pasted"
    pasted.write_text("http://127.0.0.1:1/callback?state=s&code=1\n")
    told: list[str] = []
    async with open_callback() as callback:
        with pasted.open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            address = await visit("https://e.org/authorize?state=s", callback, told.append, has_browser=False)
    assert address == "http://127.0.0.1:1/callback?state=s&code=1"
    assert "https://e.org/authorize?state=s" in told[0]


async def test_our_document_of_the_client_leads_back_here():
    document = OAuthClientInformationFull.model_validate_json((ROOT / "docs/mcp-client.json").read_text())
    assert _is_document(document.client_id)
    callback = CallbackServer(port=40001)
    (redirect,) = document.redirect_uris
    # Any port counts on this machine (RFC 8252, section 7.3).
    assert callback.url.replace(":40001", "") == str(redirect)
