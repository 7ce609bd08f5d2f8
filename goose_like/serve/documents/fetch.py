"""Files at addresses that clients name, fetched only from the open internet or from allowed hosts."""

import asyncio
from collections.abc import Collection
from contextlib import aclosing
from typing import Any

from goose_like.core.errors import GooseLikeError
from goose_like.workspace.network.address_filter import is_public, resolve_host

_MAX_BYTES = 20_000_000
_MAX_REDIRECTS = 3
_TIMEOUT_S = 20.0
_PORTS = {"http": 80, "https": 443}


async def fetch_file(url: str, allowed_hosts: Collection[str] = ()) -> bytes:
    """Fetch a file of at most 20 MB. Any server that a redirect leads to is checked too.

    Raises:
        GooseLikeError: the file cannot be fetched, or may not be fetched from there.
    """
    import httpx2

    try:
        async with asyncio.timeout(_TIMEOUT_S):
            target = httpx2.URL(url)
            for _ in range(_MAX_REDIRECTS + 1):
                data, location = await _request(target, allowed_hosts)
                if not location:
                    return data
                target = target.join(location)
    except TimeoutError:
        raise GooseLikeError(f"it did not come within {_TIMEOUT_S:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise GooseLikeError(f"it cannot be fetched: {str(error) or type(error).__name__}") from error
    raise GooseLikeError(f"it cannot be fetched: more than {_MAX_REDIRECTS} redirects")


async def _request(url: Any, allowed_hosts: Collection[str]) -> tuple[bytes, str]:
    """Request a file from an address that is resolved and checked once; return its bytes, or where a redirect leads."""
    import httpx2

    if url.scheme not in _PORTS or not url.host:
        raise GooseLikeError("its address is none that begins with http:// or https://")
    addresses = await resolve_host(url.host, url.port or _PORTS[url.scheme])
    if url.host not in allowed_hosts and not all(map(is_public, addresses)):
        raise GooseLikeError(f"{url.host} is not on the open internet; start the server with --file-host {url.host}")
    verify = httpx2.create_ssl_context()
    async with httpx2.AsyncClient(verify=verify, trust_env=False, timeout=_TIMEOUT_S) as client:
        request = client.build_request(
            "GET",
            url.copy_with(host=str(addresses[0])),
            headers={"host": url.netloc.decode().rpartition("@")[2]},
            extensions={"sni_hostname": url.raw_host.decode()},
        )
        response = await client.send(request, stream=True)
        async with aclosing(response):
            if response.has_redirect_location:
                return b"", response.headers["location"]
            if response.is_error:
                raise GooseLikeError(f"it cannot be fetched: HTTP {response.status_code}")
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BYTES:
                    raise GooseLikeError(f"it has more than {_MAX_BYTES // 1_000_000} MB")
            return bytes(body), ""
