"""Static files of the chat page and the headers that limit them in a browser."""

from importlib.resources import files

from starlette.responses import Response

_CONTENT_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The frame shows HTML that a model wrote: with inline scripts and styles, without an origin and without network access.
_FRAME_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


def load_static_files() -> dict[str, Response]:
    """Load the responses with the page's files by URL path without leading slash; the page itself has an empty path."""
    page = files(__package__).joinpath("page")
    return {
        "" if file.name == "index.html" else file.name: Response(file.read_bytes(), headers=_build_headers(file.name))
        for file in page.iterdir()
        if file.is_file()
    }


def _build_headers(name: str) -> dict[str, str]:
    return {
        "content-type": f"{_CONTENT_TYPES[name.rpartition('.')[2]]}; charset=utf-8",
        "content-security-policy": _FRAME_POLICY if name == "frame.html" else _PAGE_POLICY,
        "cache-control": "no-cache",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
