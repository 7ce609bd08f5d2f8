"""Errors in OpenAI's form."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

_TYPES = {401: "authentication_error", 429: "rate_limit_error"}


def encode_error(text: str, status: int, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """Encode an error as OpenAI's object."""
    default = "invalid_request_error" if status < 500 else "server_error"
    kind = _TYPES.get(status, default)
    return {"error": {"message": text, "type": kind, "param": param, "code": code}}


def build_error_response(
    text: str,
    status: int,
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Build the response with an error."""
    return JSONResponse(encode_error(text, status, param, code), status, headers)
