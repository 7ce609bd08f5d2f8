"""The page's files as they are sent: what each is, and what a browser may do with it."""

from dataclasses import dataclass
from importlib.resources import files

_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# A page of HTML that a model wrote is shown in here: its own scripts and styles, no origin, no network.
_FRAME = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file's bytes and the headers that it is sent with, `content-type` among them."""

    body: bytes
    headers: dict[str, str]


def assets() -> dict[str, Asset]:
    """The files by their path below the server's address; the page itself is at the empty one."""
    found = {file.name: file.read_bytes() for file in files(__package__).joinpath("page").iterdir() if file.is_file()}
    return {"" if name == "index.html" else name: Asset(body, _headers(name)) for name, body in found.items()}


def _headers(name: str) -> dict[str, str]:
    return {
        "content-type": f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8",
        "content-security-policy": _FRAME if name == "frame.html" else _PAGE,
        "cache-control": "no-cache",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
