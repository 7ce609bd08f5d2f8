"""HTTP headers: the user's own ones of requests, and the pause that an answer asks for."""

import math
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress

from goose_like.core.errors import ProfileError
from goose_like.core.pattern import compile_later

_YEAR_S = 366 * 86_400.0

_NAME = compile_later(r"[!#$%&'*+.^_`|~\w-]+", re.ASCII)


def read_custom_headers(variable: str) -> dict[str, str]:
    """Read the additional headers of a vendor's variable: one `name: value` per line.

    Raises:
        ProfileError: A line has no name or no colon. The text does not quote it: it may hold a key.
    """
    headers = {}
    lines = os.environ.get(variable, "").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        name = name.strip()
        if not colon or not _NAME.fullmatch(name):
            raise ProfileError(f"{variable}, line {number}: this is no header; write NAME: VALUE on each line")
        headers[name] = value.strip()
    return headers


def parse_retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Parse the pause that a server asks for: `retry-after-ms`, or `retry-after` in seconds or as a date.

    Return None for a missing or useless value, at most a year. Source: RFC 9110, 10.2.3.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            wait_s = float(headers.get(name, "")) * unit_s
            if math.isfinite(wait_s) and wait_s >= 0:
                return min(wait_s, _YEAR_S)
    from email.utils import parsedate_to_datetime  # rarely needed

    with suppress(ValueError, OverflowError):
        end = parsedate_to_datetime(headers.get("retry-after", ""))
        wait_s = end.timestamp() - time.time()
        if wait_s > 0:
            return min(wait_s, _YEAR_S)
    return None
