"""The HTTP client of a provider, with the proxies and certificates of the environment."""

import os
import ssl
from functools import partial
from typing import Any
from urllib.parse import SplitResult

from goose_like import __version__
from goose_like.core.errors import ProfileError
from goose_like.core.threads import run_in_executor

from .connection import is_loopback_host

_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


_CONNECT_TIMEOUT_S = 10


class _LaterCertificates(ssl.SSLContext):
    """The context for a server without TLS: certificates are loaded if it redirects to a server with TLS."""

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection with TLS."""
        if not self.cert_store_stats()["x509_ca"]:
            self.load_default_certs()
        return super().wrap_bio(*args, **options)


async def create_client(url: SplitResult, silence_s: float, *, follows_redirects: bool = False) -> Any:
    """Create an `httpx2.AsyncClient` for the server at a URL. A server on this machine is reached past all proxies.

    `silence_s` is the longest time without a byte.

    Raises:
        ProfileError: A variable for proxies or certificates has an unusable value.
    """
    import httpcore2

    # Loading the system's certificates is slow but releases the lock: a thread does it during the import.
    load = httpcore2.default_ssl_context
    if url.scheme == "http":
        load = partial(_LaterCertificates, ssl.PROTOCOL_TLS_CLIENT)
    certificates = run_in_executor(None, load)
    import httpx2

    from .answer_limits import HEADERS, limit_answer

    try:
        verify = await certificates
    except (OSError, ssl.SSLError) as error:
        named = _describe_variables(_CERTIFICATE_VARIABLES) or "the system's certificates"
        raise ProfileError(f"no certificates can be read ({error}); correct or unset {named}") from error
    try:
        return httpx2.AsyncClient(
            verify=verify,
            timeout=httpx2.Timeout(silence_s, connect=_CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
            follow_redirects=follows_redirects,
            max_redirects=5,
            headers={**HEADERS, "user-agent": f"goose-like/{__version__}"},
            event_hooks={"response": [limit_answer]},
            trust_env=not is_loopback_host(url.hostname),
        )
    except (ValueError, httpx2.InvalidURL) as error:
        named = _describe_variables(_PROXY_VARIABLES) or "the system's proxy"
        raise ProfileError(f"the proxy cannot be used ({error}); correct or unset {named}") from error


def find_proxy(url: SplitResult) -> str:
    """Find the proxy for requests to a URL, as `host:port`. The text is empty if there is none."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    host = url.hostname or ""
    if is_loopback_host(host) or proxy_bypass(host):
        return ""
    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all") or ""
    parsed = urlsplit(address if "://" in address else f"//{address}")
    return parsed.netloc.rpartition("@")[2]  # without name and password


def _describe_variables(names: tuple[str, ...]) -> str:
    """Describe the variables of the environment that are set, in either case, without the passwords in them."""
    return " and ".join(name for upper in names for name in (upper, upper.lower()) if os.environ.get(name))
