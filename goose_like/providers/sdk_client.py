"""Helpers for clients of vendors: addresses, keys, a cheap test request, requested pauses and causes of errors."""

import asyncio
import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

from goose_like.core.errors import CredentialError, ModelUnavailableError, ProfileError, ProviderError

from .wire import build_status_error, clip

_PROBE_LIMIT_S = 5.0


def parse_retry_after_s(headers: Any, now_s: float) -> float | None:
    """Parse the pause that a server asks for: `retry-after-ms`, or `retry-after` in seconds or as a date.

    Return None for a missing or useless value: a past date, a negative number or words. Source: RFC 9110, 10.2.3.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            wait_s = float(value) * unit_s
        except ValueError:
            try:
                wait_s = parsedate_to_datetime(value).timestamp() - now_s
            except (ValueError, TypeError, OverflowError):
                continue
        if math.isfinite(wait_s) and wait_s >= 0:
            return wait_s
    return None


def add_location(error: ProviderError, provider: str, url: SplitResult, key: str) -> None:
    """Add provider and host to the text of an error, and remove secrets from it."""
    place = " at ".join(filter(None, (provider, format_host(url))))
    text = f"{place}: {error}"
    for secret in (key, url.password):
        if secret and len(secret) > 3:  # replacing a short one such as "x" would only garble the text
            text = text.replace(secret, "***")
    error.args = (text,)


def parse_base_url(text: str) -> SplitResult:
    """Split a URL into its parts. An invalid URL becomes a path."""
    try:
        return urlsplit(text.strip())
    except ValueError:  # "http://[::1"
        return SplitResult("", "", text, "", "")


def find_url_error(url: SplitResult, names: str, example: str) -> ProfileError | None:
    """Return the error about an invalid base URL. `names` are the settings that hold the URL."""
    if url.scheme in ("http", "https") and url.hostname and get_port(url) is not None:
        return None
    return ProfileError(f"{format_host(url) or url.path!r} is no base URL; write {names} like {example}")


def find_key_error(key: str, variable: str | None) -> CredentialError | None:
    """Return the error about a key with impossible characters."""
    if key.isascii() and key.isprintable():
        return None
    return CredentialError(f"{variable} holds characters that no key has; set it anew")


def format_host(url: SplitResult) -> str:
    """Return host and port of a URL, without user name and password."""
    return url.netloc.rpartition("@")[2]


def get_port(url: SplitResult) -> int | None:
    """Return the port of a URL, or the default port of its scheme. None means an invalid port."""
    try:
        return url.port or (443 if url.scheme == "https" else 80)
    except ValueError:
        return None


def describe_cause(error: BaseException) -> str:
    """Return the text of the innermost cause that has one. The SDK's own text only says that the connection failed."""
    text, inner = "", error.__cause__
    while inner is not None:
        text, inner = str(inner) or text or type(inner).__name__, inner.__cause__
    return clip(text, 120)


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
        async with asyncio.timeout(_PROBE_LIMIT_S), httpx2.AsyncClient(timeout=_PROBE_LIMIT_S) as client:
            response = await client.get(url, headers=dict(headers), params=dict(query) or None)
    except TimeoutError as error:
        raise ModelUnavailableError(f"no answer within {_PROBE_LIMIT_S:g} s; check the network") from error
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
