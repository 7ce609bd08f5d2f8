"""One cheap request to a server: whether it is there, whether it takes the key, which models it lists."""

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
    """The names in the server's list of models; None when it answers well, but not with a list.

    `key_name` is the variable that an error tells to set.

    Raises:
        CredentialError: the key was refused.
        ModelUnavailableError: no answer within 5 seconds, or nothing is at this URL.
        ProviderError: another refusal.
    """
    import httpx2

    try:
        # Redirects are not followed: the key is for this server.
        async with asyncio.timeout(_LIMIT_S), httpx2.AsyncClient(timeout=_LIMIT_S) as client:
            response = await client.get(url, headers=dict(headers), params=dict(query) or None)
    except TimeoutError as error:
        raise ModelUnavailableError(f"no answer within {_LIMIT_S:g} s; check the network") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        words = clip(str(error), 120) or type(error).__name__
        raise ModelUnavailableError(f"no answer ({words}); is it running, and is this its address?") from error
    try:
        said = response.json()
    except (ValueError, RecursionError):
        said = None
    if response.status_code in (404, 405) or response.is_redirect:
        path = urlsplit(url).path
        raise ModelUnavailableError(
            f"something answers, but has nothing at {path} (HTTP {response.status_code}); correct the base URL"
        )
    if response.status_code >= 400:
        raise build_status_error(response.status_code, said or response.text, "", key_name)
    return _names(said)


def _names(said: Any) -> tuple[str, ...] | None:
    """Those in OpenAI's `data` with its `id`s, or in what others call the same."""
    for entries in said.values() if isinstance(said, dict) else [said]:
        if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries):
            names = (entry.get("id") or entry.get("name") for entry in entries)
            return tuple(name.removeprefix("models/") for name in names if isinstance(name, str))
    return None
