"""What a server was told: where it listens, who may ask, and how much of anything one request may take."""

import ipaddress
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field

from goose_like.config.paths import state_folder
from goose_like.core.errors import UsageError
from goose_like.core.message import Value

TOKEN, SECRET = "GOOSE_LIKE_SERVE_TOKEN", "GOOSE_LIKE_SERVE_SECRET"
"""The variables of the bearer token, and of the key by which servers know what they gave a client to keep."""

_KEY_BYTES = 32

WORKSPACE = (
    "https://pro.openbb.co",
    "https://pro.openbb.dev",
    "http://localhost",
    "http://localhost:1420",
    "http://localhost:5050",
)
"""Where OpenBB Workspace is loaded from: on the web, as the desktop application, and in its developers' hands."""


class Settings(Value):
    """All that workers need to know beside the profile; picklable. Sizes in bytes, times in seconds."""

    host: str = "127.0.0.1"
    token: str = Field(default="", repr=False)
    seal_key: bytes = Field(default=b"", repr=False)
    origins: tuple[str, ...] = ()
    toolkits: tuple[str, ...] = ()
    workers: int = Field(default=1, ge=1)
    max_body_bytes: int = 32_000_000
    max_messages: int = 2_000
    max_concurrent: int = 256
    max_concurrent_per_client: int = 64
    body_s: float = 30.0
    time_s: float = 600.0
    cost_usd: float | None = None
    drain_s: float = 30.0
    beat_s: float = 15.0
    send_s: float = 60.0
    log_content: bool = False

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether this name or address can only be this machine."""
    name = host.strip("[]").lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def origins(given: Iterable[str]) -> tuple[str, ...]:
    """Origins as browsers send them.

    Raises:
        UsageError: one that is none.
    """
    found = []
    for text in given:
        url = urlsplit(text.strip())
        if url.scheme not in ("http", "https") or not url.netloc or url.path.strip("/") or url.query or "*" in text:
            raise UsageError(
                f"--origin {text!r} is no origin; write it like https://example.com or http://localhost:3000"
            )
        found.append(f"{url.scheme}://{url.netloc}".lower())
    return tuple(found)


def seal_key() -> bytes:
    """The key of this machine's servers: that of the environment, else one made once in a file of mode 0600.

    Raises:
        UsageError: it is too short, can't be kept, or somebody else could read it.
    """
    if given := os.environ.get(SECRET, "").strip():
        key = given.encode(errors="surrogateescape")
        if len(key) < _KEY_BYTES:
            raise UsageError(f"{SECRET} is too short; set at least {_KEY_BYTES} bytes: openssl rand -hex 32")
        return key
    file = state_folder() / "serve.key"
    try:
        return _kept(file)
    except OSError as error:
        raise UsageError(f"{file} can't be used: {error.strerror}; make it readable, or set {SECRET}") from error


def _kept(file: Path) -> bytes:
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = file.with_suffix(f".{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as target:
            target.write(secrets.token_hex(32).encode())
        try:
            os.link(draft, file)  # whole or not at all; of two servers that start at once one is first
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    if file.stat().st_mode & 0o077:
        raise UsageError(f"{file} can be read by others; chmod 600 it, or delete it: a new one is made")
    key = file.read_bytes().strip()
    if len(key) < _KEY_BYTES:
        raise UsageError(f"{file} holds no key; delete it: a new one is made")
    return key
