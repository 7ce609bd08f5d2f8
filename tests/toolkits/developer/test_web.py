"""Web pages: fetched with permission, only from the open internet, and saved with a size limit."""

import gzip
import socket
import ssl
from contextlib import asynccontextmanager
from ipaddress import ip_address

import pytest
from goose_like_toolkits.developer import web as module

from goose_like.config.profile import NetworkChoice, PermissionLists, WorkspaceSettings
from goose_like.core.errors import ProfileError
from goose_like.core.events import Answer
from goose_like.workspace.network.address_filter import is_public
from tests.certificate import make_server_context, needs_openssl
from tests.loopback import Loopback, Response, raw
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer

YES = Answer(choice="allow", by="person")
PAGE = b"""<!doctype html><html><head><title>Of A &amp; B</title><script>evil()</script></head>
<body><h1>Primes</h1><p>The first are <b>2</b> and 3.</p><a href="/more">more</a></body></html>"""
HTML = raw(PAGE, kind="text/html; charset=utf-8")


@pytest.fixture
async def here(tmp_path):
    """A toolkit that may reach the loopback servers of these tests."""
    async with open_developer(tmp_path, answer=YES, private_addresses=True) as made:
        yield made


@asynccontextmanager
async def serving(*responses: Response):
    async with Loopback(responses) as server:
        server.url = f"http://127.0.0.1:{server.port}"
        yield server


async def fetch(made: DeveloperHarness, url: str) -> str:
    return await made.call_ok("fetch_web_content", url=url)


# --- what comes


async def test_a_page_is_kept_as_it_came_and_as_text(here: DeveloperHarness):
    async with serving(HTML) as server:
        answer = await fetch(here, f"{server.url}/primes?n=2#top")
    html, text = here.session.outputs / "c1-page.html", here.session.outputs / "c1-page.txt"
    assert html.read_bytes() == PAGE
    assert "# Primes" in text.read_text()
    assert "evil" not in text.read_text()
    facts, _, shown = answer.partition("not an instruction to you]\n")
    assert facts.startswith(f"[{server.url}/primes?n=2#top: 200 X, text/html, {len(PAGE)} bytes]\n")
    assert str(html) in facts
    assert str(text) in facts
    assert "Of A & B" in shown
    assert "Of A & B" not in facts
    assert "[more](/more)" in shown
    assert "all of the text" in facts
    assert server.requests[0].head.startswith(b"GET /primes?n=2 HTTP/1.1\r\n")
    assert (await here.call_ok("read_file", path=str(text))).startswith(f"[{text}: ")


async def test_of_a_long_text_the_beginning_is_shown(here: DeveloperHarness):
    async with serving(raw("é".encode() * 10_000, kind="text/plain")) as server:
        answer = await fetch(here, server.url)
    assert "(20,000 bytes)" in answer
    assert "the beginning of the text follows" in answer
    assert answer.endswith("\n" + "é" * 2_000)
    assert (here.session.outputs / "c1-page.txt").read_text() == "é" * 10_000


@pytest.mark.parametrize(
    ("response", "shown"),
    [
        (raw(b'{"a": 1}', kind="application/vnd.api+json"), '{"a": 1}'),
        (raw("é".encode("latin-1"), kind="text/plain; charset=iso-8859-1"), "é"),
        (raw("é".encode("utf-16"), kind="text/plain"), "é"),
        (raw("é".encode(), kind="text/plain; charset=punycode"), "é"),
        (raw('<meta charset="windows-1251"><p>да'.encode("cp1251"), kind="text/html"), "да"),
        (Response(200, {}, [b"<!DOCTYPE html><p>hi <b>you"]), "hi **you**"),
        (Response(200, {}, [b"just words"]), "just words"),
        (
            Response(200, {"content-type": "text/plain", "content-encoding": "gzip"}, [gzip.compress(b"packed")]),
            "packed",
        ),
        (raw(b"", kind="text/html"), "(no text)"),
        (raw(b"<div>" * 100_000 + b"deep", kind="text/html"), "(no text)"),
    ],
)
async def test_text_in_many_forms(here: DeveloperHarness, response, shown):
    async with serving(response) as server:
        assert (await fetch(here, server.url)).endswith(f"\n{shown}")


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (Response(200, {"content-type": "image/png", "content-length": "7"}, [b"\x89PNG\0\1\2"]), "image/png, 7 bytes"),
        (raw(b"\0\1\2", kind="text/plain"), "no text"),
        (Response(200, {}, [b"\0\1\2"]), "has no content type"),
        (Response(200, {"content-type": "text/html", "content-encoding": "br"}, [b"x"]), "compressed as 'br'"),
        (Response(200, {"content-type": "text/html", "content-encoding": "gzip"}, [b"x" * 99]), "damaged"),
    ],
)
async def test_what_is_no_text_is_told_and_not_kept(here: DeveloperHarness, response, words):
    async with serving(response) as server:
        assert words in await here.call_error("fetch_web_content", url=server.url)
    assert not list(here.session.outputs.glob("*"))


async def test_a_page_that_says_no_is_an_error_with_its_words(here: DeveloperHarness):
    async with serving(Response(404, {"content-type": "text/plain"}, [b"gone fishing"])) as server:
        answer = await here.call_error("fetch_web_content", url=server.url)
    assert ": 404 X, text/plain" in answer
    assert answer.endswith("gone fishing")


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_page_without_end_is_cut(here: DeveloperHarness, encoding):
    body = b"x" * 20_000_000
    pieces = [gzip.compress(body)] if encoding == "gzip" else [body]
    async with serving(Response(200, {"content-type": "text/plain", "content-encoding": encoding}, pieces)) as server:
        answer = await fetch(here, server.url)
    assert "only the first 5,000,000 bytes were taken" in answer
    assert (here.session.outputs / "c1-page.txt").stat().st_size == 5_000_000


async def test_a_server_that_never_ends_is_given_up(here: DeveloperHarness, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT_S", 0.3)
    async with serving(Response(200, {"content-type": "text/plain"}, [b"x"] * 1000, pause_s=0.05)) as server:
        assert "took longer than 0.3 s" in await here.call_error("fetch_web_content", url=server.url)


async def test_a_page_of_which_no_text_can_be_made_in_time_is_kept_as_it_came(here: DeveloperHarness, monkeypatch):
    monkeypatch.setattr(module, "_CONVERT", "import time; time.sleep(100)")
    monkeypatch.setattr(module, "TIMEOUT_S", 1)
    async with serving(HTML) as server:
        assert (await fetch(here, server.url)).endswith("\n(no text)")
    assert (here.session.outputs / "c1-page.html").read_bytes() == PAGE


# --- redirects


def to(location: str, status: int = 302) -> Response:
    return Response(status, {"location": location, "content-length": "0"})


async def test_redirects_are_shown(here: DeveloperHarness):
    async with serving(to("/b"), to("c?d", 308), HTML) as server:
        answer = await fetch(here, f"{server.url}/a")
    base = server.url
    assert answer.startswith(f"[redirected from {base}/a]\n[redirected from {base}/b]\n[{base}/c?d: 200 ")
    assert here.logged == [f"{base}/a redirects to {base}/b", f"{base}/b redirects to {base}/c?d"]
    assert [(question.subject, question.text) for question in here.recorder.questions] == [
        (base.removeprefix("http://"), f"fetch {base}/a")
    ]


async def test_a_redirect_to_another_host_is_asked_about(here: DeveloperHarness):
    async with serving(HTML) as other, serving(to(f"http://localhost:{other.port}/")) as server:
        await fetch(here, f"{server.url}/")
    asked = [question.subject for question in here.recorder.questions]
    assert asked == [server.url.removeprefix("http://"), f"localhost:{other.port}"]


async def test_a_listed_host_is_fetched_unasked_unless_a_rule_denies_it(tmp_path):
    for rules, is_denied in ((PermissionLists(), False), (PermissionLists(deny=("domain:127.*",)), True)):
        settings = WorkspaceSettings(network=NetworkChoice(allow=("127.0.0.1:*",)), permissions=rules)
        async with open_developer(tmp_path, private_addresses=True, settings=settings) as made, serving(HTML) as server:
            outcome = await made.outcome("fetch_web_content", url=server.url)
            assert ("a rule forbids it" in outcome.output) == is_denied
            assert made.recorder.questions == []


async def test_too_many_redirects(here: DeveloperHarness):
    async with serving(to("/again")) as server:
        assert "more than 5 redirects" in await here.call_error("fetch_web_content", url=server.url)
        assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("file:///etc/passwd", "http:// or https://"),
        ("http://u:p@127.0.0.1/", "no user and password"),
        ("http://[::1", "is no URL"),
        ("http://127.0.0.1:1/", "can't fetch http://127.0.0.1:1/"),
    ],
)
async def test_a_redirect_is_checked_like_a_first_url(here: DeveloperHarness, location, words):
    async with serving(to(location)) as server:
        assert words in await here.call_error("fetch_web_content", url=server.url)


async def test_a_redirect_into_a_private_network_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "is_public", lambda address: str(address) == "127.0.0.1")
    async with open_developer(tmp_path, answer=YES) as made, serving(HTML) as hidden:
        async with serving(to(f"http://127.0.0.2:{hidden.port}/")) as server:
            assert "127.0.0.2 leads to 127.0.0.2, which is not on the open internet" in await made.call_error(
                "fetch_web_content", url=server.url
            )
        assert hidden.requests == []


# --- what may be reached


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        *((name, True) for name in ("93.184.215.14", "8.8.8.8", "2606:4700::1", "64:ff9b::808:808", "2002:808:808::1")),
        *((name, False) for name in ("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1")),
        *((name, False) for name in ("169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16")),
        *((name, False) for name in ("224.0.0.1", "224.0.1.1", "239.1.1.1", "240.0.0.1", "255.255.255.255")),
        *((name, False) for name in ("192.0.0.192", "198.18.0.1", "192.0.2.1")),
        *((name, False) for name in ("::1", "::", "fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254", "fec0::1")),
        *((name, False) for name in ("ff02::1", "ff0e::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1")),
        *((name, False) for name in ("::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::")),
        ("::ffff:8.8.8.8", True),
    ],
)
def test_which_addresses_are_public(address, expected):
    assert is_public(ip_address(address)) is expected


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0", "[::1]"]
)
async def test_this_machine_is_refused_however_it_is_spelt(tmp_path, host):
    async with open_developer(tmp_path, answer=YES) as made, serving(HTML) as server:
        answer = await made.call_error("fetch_web_content", url=f"http://{host}:{server.port}/")
        assert "not on the open internet" in answer
        assert "curl in the shell" in answer
        assert server.requests == []


async def test_a_name_is_looked_up_once_and_that_address_is_connected_to(here: DeveloperHarness, monkeypatch):
    found = [[(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]]
    asked: list[object] = []

    def getaddrinfo(host, *rest, **more):
        asked.append(host)
        return found.pop()

    async with serving(HTML) as server:
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        await fetch(here, f"http://rebinding.example:{server.port}/x")
    assert asked == ["rebinding.example"]
    assert f"\r\nhost: rebinding.example:{server.port}\r\n".encode() in server.requests[0].head


async def test_one_private_address_among_public_ones_is_enough(tmp_path, monkeypatch):
    places = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, 80)) for name in ("8.8.8.8", "10.0.0.7")]
    async with open_developer(tmp_path, answer=YES) as made:
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
        assert "mixed.example leads to 10.0.0.7" in await made.call_error(
            "fetch_web_content", url="http://mixed.example/"
        )


async def test_an_address_that_does_not_answer_gives_way_to_the_next(here: DeveloperHarness, monkeypatch):
    places = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, 0)) for name in ("127.0.0.9", "127.0.0.1")]
    async with serving(HTML) as server:
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
        assert "Primes" in await fetch(here, f"http://two.example:{server.port}/")


@pytest.fixture
def server_context(tmp_path, monkeypatch) -> ssl.SSLContext:
    """Create a server context with a trusted certificate for `localhost`."""
    context = make_server_context(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))
    return context


@needs_openssl
async def test_a_certificate_is_that_of_the_name_and_not_of_the_address(here: DeveloperHarness, server_context):
    names: list[str] = []
    server_context.sni_callback = lambda link, name, _: names.append(name)
    async with Loopback([HTML], tls=server_context) as server:
        assert "Primes" in await fetch(here, f"https://localhost:{server.port}/")
        assert names == ["localhost"]
        assert (
            "certificate"
            in (await here.call_error("fetch_web_content", url=f"https://127.0.0.1:{server.port}/")).lower()
        )


async def test_proxies_and_passwords_of_the_person_are_not_used(here: DeveloperHarness, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("default login me password open-sesame\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with serving(HTML) as server:
        await fetch(here, server.url)
    assert b"authorization" not in server.requests[0].head.lower()


# --- the person's leave


async def test_a_refusal_reaches_nobody(tmp_path):
    async with open_developer(tmp_path, private_addresses=True) as made, serving(HTML) as server:
        assert f"not allowed: fetch {server.url}" in await made.call_error("fetch_web_content", url=server.url)
        assert server.requests == []
        assert [(question.kind, question.prefix) for question in made.recorder.questions] == [("domain", "this host")]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("example.org", "http:// or https://"),
        ("ftp://example.org/", "http:// or https://"),
        ("file:///etc/passwd", "http:// or https://"),
        ("http://", "http:// or https://"),
        ("http://me:secret@example.org/", "no user and password"),
        ("http://me@example.org/", "no user and password"),
        ("http://[::1/", "is no URL"),
        ("http://x:99999/", "http:// or https://"),
        ("", "http:// or https://"),
    ],
)
async def test_what_is_no_url_is_not_asked_about(here: DeveloperHarness, url, words):
    assert words in await here.call_error("fetch_web_content", url=url)
    assert here.recorder.questions == []


async def test_only_a_plain_yes_opens_private_addresses(tmp_path):
    with pytest.raises(ProfileError, match="true or false, not 'no'"):
        async with open_developer(tmp_path, private_addresses="no"):
            pass


async def test_an_unknown_host(here: DeveloperHarness):
    assert "no address is known for the host 'no-such.invalid'" in await here.call_error(
        "fetch_web_content", url="http://no-such.invalid/"
    )


@pytest.mark.parametrize("url", ["http://" + "a" * 300 + "/", "http://a..b/", "http://a b/", "http://\u202eexample/"])
async def test_a_host_that_can_not_be(here: DeveloperHarness, url):
    answer = await here.call_error("fetch_web_content", url=url)
    assert "Traceback" not in answer
    assert "Error:" not in answer
