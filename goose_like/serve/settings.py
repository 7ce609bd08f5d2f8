"""Settings of the server: where it listens, who may use it, and the limits of one request."""

import ipaddress
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from urllib.parse import urlsplit

from pydantic import Field

from goose_like.config.paths import create_private_folder, state_folder
from goose_like.core.errors import UsageError
from goose_like.core.message import FrozenModel

TOKEN_VARIABLE = "GOOSE_LIKE_SERVE_TOKEN"
"""The environment variable of the bearer token."""

SIGNING_KEY_VARIABLE = "GOOSE_LIKE_SERVE_SECRET"
"""The environment variable of the key that signs state which clients keep between requests."""

METRICS_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that tells prometheus_client where several workers share their metrics."""

WORKSPACE_ORIGINS = (
    "https://pro.openbb.co",
    "https://pro.openbb.dev",
    "http://localhost",
    "http://localhost:1420",
    "http://localhost:5050",
)
"""The origins of OpenBB Workspace: the web application, the desktop application and development servers."""

_MIN_KEY_BYTES = 32


class Settings(FrozenModel):
    """Everything that a worker needs to know except the profile."""

    host: str = "127.0.0.1"
    token: str = Field(default="", repr=False)
    signing_key: bytes = Field(default=b"", repr=False)
    origins: tuple[str, ...] = ()
    file_hosts: tuple[str, ...] = ()
    toolkits: tuple[str, ...] = ()
    workers: int = Field(default=1, ge=1)
    max_body_bytes: int = 32_000_000
    max_messages: int = 2_000
    max_concurrent: int = 256
    max_concurrent_per_client: int = 64
    max_cost_usd: float | None = None
    body_timeout_s: float = 30.0
    query_timeout_s: float = 600.0
    send_timeout_s: float = 60.0
    shutdown_timeout_s: float = 30.0
    keep_alive_s: float = 15.0
    log_content: bool = False


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address always means this machine."""
    name = host.strip("[]").lower().removesuffix(".")
    with suppress(ValueError):
        return ipaddress.ip_address(name).is_loopback
    return name == "localhost" or name.endswith(".localhost")


def parse_origins(texts: Iterable[str]) -> tuple[str, ...]:
    """Convert origins to the form that browsers send.

    Raises:
        UsageError: a text is not an origin.
    """
    origins = []
    for text in texts:
        url = urlsplit(text.strip())
        is_complete = url.scheme and url.netloc
        has_more = url.path.strip("/") or url.query
        if not is_complete or has_more or "*" in text:
            raise UsageError(f"--origin {text!r} is no origin; write e.g. https://example.com or http://localhost:3000")
        origins.append(f"{url.scheme}://{url.netloc}".lower())
    return tuple(origins)


def load_signing_key() -> bytes:
    """Load the signing key from the environment, or from a file of mode 0600 that the first start creates.

    Raises:
        UsageError: the key is too short, cannot be stored, or other users can read the file.
    """
    if text := os.environ.get(SIGNING_KEY_VARIABLE, "").strip():
        key = text.encode(errors="surrogateescape")
        if len(key) < _MIN_KEY_BYTES:
            raise UsageError(
                f"{SIGNING_KEY_VARIABLE} is too short; set at least {_MIN_KEY_BYTES} bytes: openssl rand -hex 32"
            )
        return key
    file = state_folder() / "serve.key"
    try:
        create_private_folder(file.parent)
        open_private = partial(os.open, mode=0o600)
        with suppress(FileExistsError), open(file, "xb", opener=open_private) as target:
            target.write(secrets.token_hex(_MIN_KEY_BYTES).encode())
        if file.stat().st_mode & 0o077:
            raise UsageError(f"other users can read {file}; run chmod 600 on it, or delete it to get a new key")
        key = file.read_bytes().strip()
    except OSError as error:
        raise UsageError(
            f"cannot use {file}: {error.strerror}; make it readable, or set {SIGNING_KEY_VARIABLE}"
        ) from error
    if len(key) < _MIN_KEY_BYTES:
        raise UsageError(f"{file} does not contain a key; start again, or delete it to get a new one")
    return key
