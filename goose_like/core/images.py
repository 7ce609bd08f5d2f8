"""Images of messages: recognised by their first bytes, checked, and stored in a folder."""

import hashlib
import re
from pathlib import Path

from .errors import GooseLikeError
from .message import Image

MAX_IMAGE_BYTES = 3_750_000
"""Vendors accept 5 MB of base64."""

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"\xff\xd8\xff", "image/jpeg"),
    (rb"GIF8[79]a", "image/gif"),
    (rb"RIFF....WEBP", "image/webp"),
)


def detect_media_type(data: bytes) -> str | None:
    """Detect the media type of an image by its first bytes. Return None when models do not take it."""
    start = data[:16]
    for magic, kind in _MAGIC:
        if re.match(magic, start, re.DOTALL):
            return kind
    return None


def check_image(data: bytes, source: str) -> str:
    """Check the type and size of an image and return its media type.

    Raises:
        GooseLikeError: models do not take this type, or the image is too large.
    """
    kind = detect_media_type(data)
    if kind is None:
        raise GooseLikeError(f"{source} is not a PNG, JPEG, GIF or WebP image; convert it first")
    if len(data) > MAX_IMAGE_BYTES:
        size = f"{len(data):,} bytes, more than {MAX_IMAGE_BYTES:,}"
        raise GooseLikeError(f"the image {source} has {size}; make it smaller")
    return kind


def create_image(data: bytes, source: str) -> Image:
    """Create the message part for an image, with a name made from the bytes.

    Raises:
        GooseLikeError: see `check_image`.
    """
    kind = check_image(data, source)
    digest = hashlib.sha256(data).hexdigest()[:24]
    suffix = kind.removeprefix("image/")
    name = f"{digest}.{suffix}"
    return Image.model_validate({"name": name, "media_type": kind, "source": source})


def save_image(data: bytes, source: str, folder: Path) -> Image:
    """Create the message part for an image and write its bytes into the folder.

    Raises:
        GooseLikeError: see `check_image`, or the folder cannot be written.
    """
    image = create_image(data, source)
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        if not (folder / image.name).exists():
            (folder / image.name).touch(0o600)
            (folder / image.name).write_bytes(data)
    except OSError as error:
        raise GooseLikeError(f"the image {source} cannot be saved: {error}; free some space") from error
    return image
