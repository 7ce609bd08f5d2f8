"""Images and PDF files of messages: recognised by their first bytes, checked, and stored in a folder."""

import hashlib
import re
import struct
from pathlib import Path

from .errors import GooseLikeError
from .message import PDF, Image

MAX_IMAGE_BYTES = 3_750_000
"""Vendors accept 5 MB of base64."""

MAX_DOCUMENT_BYTES = 20_000_000
"""Anthropic accepts 32 MB of base64 in a request, and a conversation needs room for more."""

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


def is_pdf(data: bytes) -> bool:
    """Check whether the first bytes are those of a PDF file."""
    return data[:5] == b"%PDF-"


def check_image(data: bytes, source: str) -> str:
    """Check the type and size of an image or a PDF file, and return its media type.

    Raises:
        GooseLikeError: models do not take this type, or the file is too large.
    """
    if is_pdf(data):
        if len(data) > MAX_DOCUMENT_BYTES:
            size = f"{len(data):,} bytes, more than {MAX_DOCUMENT_BYTES:,}"
            raise GooseLikeError(f"the document {source} has {size}; take the pages that are needed into a smaller one")
        return PDF
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
    suffix = kind.rpartition("/")[2]
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
        raise GooseLikeError(f"the {image.kind} {source} cannot be saved: {error}; free some space") from error
    return image


def measure_image(data: bytes) -> tuple[int, int]:
    """Return the width and height of an image in pixels, or zeros if they cannot be read."""
    match detect_media_type(data):
        case "image/png":
            return _read_size(data, ">II", 16)
        case "image/gif":
            return _read_size(data, "<HH", 6)
        case "image/jpeg":
            return _measure_jpeg(data)
        case "image/webp":
            return _measure_webp(data)
    return 0, 0


def _read_size(data: bytes, layout: str, position: int) -> tuple[int, int]:
    """Read two numbers, or zeros if the file is too short."""
    try:
        first, second = struct.unpack_from(layout, data, position)
    except struct.error:
        return 0, 0
    return first, second


def _measure_jpeg(data: bytes) -> tuple[int, int]:
    """Find the segment that begins a frame, whose markers are C0 to CF without C4, C8 and CC."""
    position = 2
    while position < len(data) and data[position] == 0xFF:
        marker, length = _read_size(data, ">BH", position + 1)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = _read_size(data, ">HH", position + 5)
            return width, height
        position += 2 + length
    return 0, 0


def _measure_webp(data: bytes) -> tuple[int, int]:
    """Read the size from the first chunk: with losses, without, or extended. Each has 14 to 24 bits a side."""
    match data[12:16]:
        case b"VP8 ":
            width, height = _read_size(data, "<HH", 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            bits, _ = _read_size(data + bytes(4), "<II", 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            width = int.from_bytes(data[24:27], "little")
            height = int.from_bytes(data[27:30], "little")
            return width + 1, height + 1
    return 0, 0
