"""What the doors to the vendors' SDKs share: where a server is, how long it wants us to wait, why it is not reached."""

import math
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

from goose_like.core.errors import CredentialError, ProfileError

from .wire import clip


def parse_retry_after_s(headers: Any, now_s: float) -> float | None:
    """The server's wish for a pause: `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, 10.2.3).

    None where there is none, or no sane one: a past date, a negative number, words.
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
    """The text with each secret starred out."""
    for secret in secrets:
        if secret and len(secret) > 3:  # a shorter one ("x") hides nothing and would riddle the words
            text = text.replace(secret, "***")
    return text


def parse_base_url(text: str) -> SplitResult:
    """The URL in its parts; where it is none, the text is its path."""
    try:
        return urlsplit(text.strip())
    except ValueError:  # "http://[::1"
        return SplitResult("", "", text, "", "")


def find_url_error(url: SplitResult, names: str, example: str) -> ProfileError | None:
    """What to set where this is no base URL; `names` are what it may be set with."""
    if url.scheme in ("http", "https") and url.hostname and get_port(url) is not None:
        return None
    return ProfileError(f"{format_host(url) or url.path!r} is no base URL; write {names} like {example}")


def find_key_error(key: str, variable: str | None) -> CredentialError | None:
    """What to set where the key can't be one."""
    if key.isascii() and key.isprintable():
        return None
    return CredentialError(f"{variable} holds characters that no key has; set it anew")


def format_host(url: SplitResult) -> str:
    """The URL's host and port, without a user's name and password."""
    return url.netloc.rpartition("@")[2]


def get_port(url: SplitResult) -> int | None:
    """The URL's port or that of its scheme; None when it is no port."""
    try:
        return url.port or (443 if url.scheme == "https" else 80)
    except ValueError:
        return None


def describe_cause(error: BaseException) -> str:
    """The words of the innermost cause that has any: the SDK itself says only that the connection failed."""
    words, inner = "", error.__cause__
    while inner is not None:
        words, inner = str(inner) or words or type(inner).__name__, inner.__cause__
    return clip(words, 120)
