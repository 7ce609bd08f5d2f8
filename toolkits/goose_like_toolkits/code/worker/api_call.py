"""HTTP requests for plugins: `taskweaver.plugin.utils`. Imported only when a plugin imports that module."""

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
    """Send a request and return JSON: `{"status": "success", "status_code": ..., "response": TEXT}`.

    A response with any status code is a success; without a response, `status` is `error` and the code is 500. A host
    without a scheme uses https. A text body is sent unchanged, any other body as JSON. Raise ValueError for an unknown
    method, and for a query that is neither a mapping nor a JSON object.
    """
    if not all(isinstance(part, str) for part in (host, endpoint, method)):
        raise ValueError("host, endpoint and method are strings")
    if method not in _METHODS:
        raise ValueError(f"no method {method!r}; the methods are: {', '.join(_METHODS)}")
    if not host.startswith(("http://", "https://")):
        host = f"https://{host}"
    url = urljoin(host, endpoint)
    query = _parse_query(query_params)
    if query:
        url += "&" if urlsplit(url).query else "?"
        url += urlencode(query, doseq=True)
    text = body if isinstance(body, str) else json.dumps(body)
    data = text.encode() or None
    try:
        if urlsplit(url).scheme not in ("http", "https"):  # urllib would read local files
            raise ValueError(f"{url!r} is not a web address")
        request = urllib.request.Request(url, data, dict(headers or {}), method=method)
        code, response = _send(request, timeout_secs)
    except (OSError, ValueError, LookupError, http.client.HTTPException) as error:
        return json.dumps({"status": "error", "status_code": 500, "response": str(error)})
    return json.dumps({"status": "success", "status_code": code, "response": response})


def _parse_query(query: Any) -> Mapping[str, Any]:
    if not query:
        return {}
    if isinstance(query, str):
        try:
            query = json.loads(query)
        except json.JSONDecodeError:
            query = None
    if not isinstance(query, Mapping):
        raise ValueError("query_params is a dictionary, or a JSON object")
    return query


def _send(request: urllib.request.Request, timeout_s: float) -> tuple[int, str]:
    try:
        response = urllib.request.urlopen(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        charset = response.headers.get_content_charset() or "utf-8"
        return response.status, response.read().decode(charset, errors="replace")
