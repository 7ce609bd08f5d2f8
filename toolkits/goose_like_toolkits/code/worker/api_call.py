"""A request over HTTP as plugins make it: `taskweaver.plugin.utils`. Imported when a plugin imports that."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

_METHODS = ("GET", "POST", "PUT", "DELETE")
_JSON: Mapping[str, str] = {"Content-Type": "application/json"}


def make_api_call(
    host: str = "",
    endpoint: str = "",
    method: str = "GET",
    headers: Mapping[str, str] = _JSON,
    query_params: Any = None,
    body: Any = "",
    timeout_secs: float = 60,
) -> str:
    """What a server answers, as JSON: `{"status": "success", "status_code": ..., "response": TEXT}`.

    An answer of any code is a success; where there is none, the status is `error` and the code 500. A host without a
    scheme is asked by https. A body that is text is sent as it is, any other as JSON.

    Raises:
        ValueError: when there is no such method, or the query is neither a mapping nor JSON of one.
    """
    if not all(isinstance(part, str) for part in (host, endpoint, method)):
        raise ValueError("host, endpoint and method are strings")
    if method not in _METHODS:
        raise ValueError(f"no method {method!r}; the methods are: {', '.join(_METHODS)}")
    url = urljoin(host if host.startswith(("http://", "https://")) else f"https://{host}", endpoint)
    if query := _query(query_params):
        url += ("&" if urlsplit(url).query else "?") + urlencode(query, doseq=True)
    data = (body if isinstance(body, str) else json.dumps(body)).encode() or None
    try:
        if urlsplit(url).scheme not in ("http", "https"):  # urllib would read files
            raise ValueError(f"{url!r} is no address on the web")
        request = urllib.request.Request(url, data, dict(headers or {}), method=method)
        code, text = _answer(request, timeout_secs)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return json.dumps({"status": "error", "status_code": 500, "response": str(error)})
    return json.dumps({"status": "success", "status_code": code, "response": text})


def _query(query: Any) -> Mapping[str, Any]:
    try:
        query = json.loads(query) if query and isinstance(query, str) else query or {}
    except json.JSONDecodeError:
        query = None
    if not isinstance(query, Mapping):
        raise ValueError("query_params is a dictionary, or JSON of one")
    return query


def _answer(request: urllib.request.Request, timeout_s: float) -> tuple[int, str]:
    try:
        answer = urllib.request.urlopen(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        charset = answer.headers.get_content_charset() or "utf-8"
        try:
            return answer.status, answer.read().decode(charset, errors="replace")
        except LookupError:  # a charset that nobody knows
            return answer.status, answer.read().decode(errors="replace")
