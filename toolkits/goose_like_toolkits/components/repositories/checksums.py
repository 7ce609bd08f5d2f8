"""Checksums as Maven repositories keep them: a file's hexadecimal digest in one beside it, named by the algorithm."""

import hashlib
import re
from pathlib import Path

WRITTEN = ("sha256", "sha1")
"""What is written beside a file that is deployed."""

READ = ("sha256", "sha1", "md5")
"""What a file is verified by: the first that there is."""

LIMIT_BYTES = 4096
"""A larger file holds no digest."""

_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64}


def digest(file: Path, algorithm: str) -> str:
    """The hexadecimal digest of a file's bytes."""
    with file.open("rb") as source:
        # What md5 and sha1 are for here is damage on the way.
        return hashlib.file_digest(source, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def stated(text: str, algorithm: str) -> str | None:
    """The digest within what a checksum's file says: alone, or with the file's name, as `sha256sum` writes it.

    None where there is none of this algorithm's length.
    """
    words = re.findall(r"(?<![0-9A-Za-z])[0-9A-Fa-f]+(?![0-9A-Za-z])", text)
    return next((word.lower() for word in words if len(word) == _DIGITS[algorithm]), None)
