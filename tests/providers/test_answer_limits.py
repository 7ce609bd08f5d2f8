"""Answers that are too large, also after decompression, and redirects to other servers."""

import gzip
from collections.abc import Callable

import pytest

from goose_like.core.errors import BrokenStreamError, ModelUnavailableError
from tests.loopback import Loopback, Response, raw
from tests.providers.vendors import ANTHROPIC, OPENAI, Vendor, get_text, set_keys_only

MEGABYTE = b"x" * 2**20


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


@pytest.fixture(params=[OPENAI, ANTHROPIC], ids=lambda vendor: vendor.name)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    assert isinstance(request.param, Vendor)
    return request.param


LARGE: dict[str, Callable[[], Response]] = {
    "one line": lambda: raw(b"data: ", *[MEGABYTE] * 400),
    "many lines": lambda: raw(*[b": %b\n\n" % MEGABYTE[:1_000] * 1_000] * 400),
    "compressed": lambda: Response(200, {"content-encoding": "gzip"}, [gzip.compress(MEGABYTE * 100)]),
    "an error": lambda: Response(400, {}, [MEGABYTE] * 400),
    "a compressed error": lambda: Response(500, {"content-encoding": "gzip"}, [gzip.compress(MEGABYTE * 100)]),
}


@pytest.mark.parametrize("kind", LARGE)
async def test_a_large_answer_is_cut_off(vendor: Vendor, kind: str) -> None:
    async with Loopback([LARGE[kind]()]) as server:
        with pytest.raises(BrokenStreamError, match="too large"):
            await vendor.ask(server.base_url)
        assert len(server.requests) == 1


async def test_an_unknown_compression_is_refused(vendor: Vendor) -> None:
    async with Loopback([Response(200, {"content-encoding": "gzip, gzip"}, [b"x"])]) as server:
        with pytest.raises(BrokenStreamError, match="compressed as 'gzip, gzip'"):
            await vendor.ask(server.base_url)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location", ["http://localhost:{}/v1", "http://127.0.0.1:{}/v1", "https://127.0.0.1/", "//x.invalid"]
)
async def test_another_server_gets_no_conversation(vendor: Vendor, status: int, location: str) -> None:
    async with Loopback([vendor.answer("stolen")]) as thief:
        away = Response(status, {"location": location.format(thief.port), "content-length": "0"})
        async with Loopback([away]) as server:
            with pytest.raises(ModelUnavailableError, match="which did not get the conversation"):
                await vendor.ask(server.base_url)
            assert len(server.requests) == 1
        assert thief.requests == []


async def test_a_redirect_within_the_server_is_followed(vendor: Vendor) -> None:
    here = Response(307, {"location": f"{vendor.path}/", "content-length": "0"})
    async with Loopback([here, vendor.answer("hello")]) as server:
        assert get_text(await vendor.ask(server.base_url)) == "hello"


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_drops_the_body_is_an_error(vendor: Vendor, status: int) -> None:
    here = Response(status, {"location": "/moved?token=1", "content-length": "0"})
    async with Loopback([here, vendor.answer("lost")]) as server:
        with pytest.raises(ModelUnavailableError, match=rf"the server moved to http://127.0.0.1:{server.port}/moved "):
            await vendor.ask(server.base_url)
        assert len(server.requests) == 1
