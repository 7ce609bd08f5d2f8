"""Static files of the chat page and the headers that limit them in a browser."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from starlette.responses import Response

_CONTENT_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The frame shows HTML that a model wrote: with its styles, without its scripts, an origin or network access. The only
# script is ours, by its hash: where any script runs, no policy prevents WebRTC.
_FRAME_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'sha256-{}'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


def load_static_files() -> dict[str, Response]:
    """Load the responses with the page's files by URL path without leading slash; the page itself has an empty path."""
    responses = {}
    for file in files(__package__).joinpath("page").iterdir():
        if file.is_file():
            path = "" if file.name == "index.html" else file.name
            responses[path] = _build_response(file.name, file.read_bytes())
    return responses


def _build_response(name: str, content: bytes) -> Response:
    ending = name.rpartition(".")[2]
    policy = _PAGE_POLICY
    if name == "frame.html":
        policy = _build_frame_policy(content)
    headers = {
        "content-type": f"{_CONTENT_TYPES[ending]}; charset=utf-8",
        "content-security-policy": policy,
        "cache-control": "no-cache",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    return Response(content, headers=headers)


def _build_frame_policy(page: bytes) -> str:
    script = page.partition(b"<script>")[2].partition(b"</script>")[0]
    return _FRAME_POLICY.format(b64encode(sha256(script).digest()).decode())
