"""Helpers for clients of vendors' SDKs: addresses, keys, requested pauses and causes of errors."""

import math
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

from goose_like.core.errors import CredentialError, ProfileError, ProviderError

from .wire import clip


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


def redact(text: str, *secrets: str | None) -> str:
    """Replace each secret in a text by stars."""
    for secret in secrets:
        if secret and len(secret) > 3:  # replacing a short one such as "x" would only garble the text
            text = text.replace(secret, "***")
    return text


def add_location(error: ProviderError, provider: str, url: SplitResult, key: str) -> None:
    """Add provider and host to the text of an error, and remove secrets from it."""
    place = " at ".join(filter(None, (provider, format_host(url))))
    error.args = (redact(f"{place}: {error}", key, url.password),)


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
