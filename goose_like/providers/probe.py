"""A cheap test request to a server: check its address and key, and list its models."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from goose_like.core.errors import ModelUnavailableError

from .wire import build_status_error, clip

_LIMIT_S = 5.0


async def list_models(
    url: str, headers: Mapping[str, str], key_name: str, query: Mapping[str, str] = {}
) -> tuple[str, ...] | None:
    """Fetch the names of a server's models. None means a successful answer without a list.

    Error messages name the variable `key_name`.

    Raises:
        CredentialError: The server refuses the key.
        ModelUnavailableError: No answer arrives within 5 seconds, or nothing is at this URL.
        ProviderError: The server refuses the request for another reason.
    """
    import httpx2

    try:
        # Do not follow redirects: the key is for this server only.
        async with asyncio.timeout(_LIMIT_S), httpx2.AsyncClient(timeout=_LIMIT_S) as client:
            response = await client.get(url, headers=dict(headers), params=dict(query) or None)
    except TimeoutError as error:
        raise ModelUnavailableError(f"no answer within {_LIMIT_S:g} s; check the network") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        reason = clip(str(error), 120) or type(error).__name__
        raise ModelUnavailableError(f"no answer ({reason}); is it running, and is this its address?") from error
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = None
    if response.status_code in (404, 405) or response.is_redirect:
        path = urlsplit(url).path
        raise ModelUnavailableError(
            f"something answers, but has nothing at {path} (HTTP {response.status_code}); correct the base URL"
        )
    if response.status_code >= 400:
        raise build_status_error(response.status_code, body or response.text, "", key_name)
    return _extract_names(body)


def _extract_names(body: Any) -> tuple[str, ...] | None:
    # OpenAI lists objects with an `id` under `data`. Other servers use other keys for the same.
    for entries in body.values() if isinstance(body, dict) else [body]:
        if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries):
            names = (entry.get("id") or entry.get("name") for entry in entries)
            return tuple(name.removeprefix("models/") for name in names if isinstance(name, str))
    return None
