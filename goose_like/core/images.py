"""Images: known by their first bytes, found in a person's words, kept once each in a session's outputs."""

import hashlib
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .errors import GooseLikeError
from .message import Image

LIMIT_BYTES = 3_750_000
"""Vendors take 5 MB of base64."""

_MAGIC: tuple[tuple[str, str], ...] = (
    (r"\x89PNG\r\n\x1a\n", "image/png"),
    (r"\xff\xd8\xff", "image/jpeg"),
    (r"GIF8[79]a", "image/gif"),
    (r"RIFF....WEBP", "image/webp"),
)

_ENDING = r"\.(?:png|jpe?g|gif|webp)"

# A bare name only where a word begins, and that is not behind an escaped blank: from within it each letter would be
# tried anew. So would each comma in a URL: that is taken whole, and cut then.
_NAMED = re.compile(
    rf"""
    ["'`] (?P<quoted> [^"'`\n]+ {_ENDING} ) ["'`]
    | (?<![^\s"'`<>()\[\],;]) (?<!\\.) (?:
        (?P<url> file://[^\s"'`<>]+ )
        | (?P<bare> (?:\\.|[^\s"'`<>()\[\],;\\])+ {_ENDING} ) \b
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_IMAGE_URL = re.compile(rf".+{_ENDING}\b", re.IGNORECASE)


def media_type(data: bytes) -> str | None:
    """The kind of image by its first bytes; None when it is none that models take."""
    return next((kind for magic, kind in _MAGIC if re.match(magic.encode("latin-1"), data[:16], re.DOTALL)), None)


def check_image(data: bytes, source: str) -> str:
    """The image's media type.

    Raises:
        GooseLikeError: it is no image that models take, or too large.
    """
    kind = media_type(data)
    if kind is None:
        raise GooseLikeError(f"{source} is no PNG, JPEG, GIF or WebP image; convert it first")
    if len(data) > LIMIT_BYTES:
        raise GooseLikeError(f"the image {source} has {len(data):,} bytes, more than {LIMIT_BYTES:,}; make it smaller")
    return kind


def named_images(words: str) -> list[str]:
    """The paths in a person's words that end like images, each once: bare, quoted, escaped, or as file:// URLs."""
    return list(dict.fromkeys(filter(None, map(_path, _NAMED.finditer(words)))))


def _path(named: re.Match[str]) -> str:
    """The path that was named; "" where it is a URL of something else."""
    whole = _IMAGE_URL.match(named["url"]) if named["url"] else None
    path = named["quoted"] or (whole and whole[0]) or re.sub(r"\\(.)", r"\1", named["bare"] or "")
    return unquote(urlsplit(path).path) if path.lower().startswith("file://") else path


def named_image(data: bytes, source: str) -> Image:
    """The image as a part of a message, under a name made of its bytes.

    Raises:
        GooseLikeError: as `check_image`.
    """
    kind = check_image(data, source)
    name = f"{hashlib.sha256(data).hexdigest()[:24]}.{kind.removeprefix('image/')}"
    return Image.model_validate({"name": name, "media_type": kind, "source": source})


def keep_image(data: bytes, source: str, folder: Path) -> Image:
    """The image as `named_image` gives it; its bytes are in the folder.

    Raises:
        GooseLikeError: as `check_image`, or the folder can't be written.
    """
    image = named_image(data, source)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / image.name).exists():
            (folder / image.name).write_bytes(data)
    except OSError as error:
        raise GooseLikeError(f"the image {source} can't be kept: {error}; free some space") from error
    return image
