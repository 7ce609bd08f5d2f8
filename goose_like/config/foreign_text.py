"""Parsers of JSON and TOML that strangers wrote. Each fault, a text nested too deep too, is a `ValueError`."""

from typing import Any

from pydantic_core import from_json


def parse_json(text: str) -> Any:
    """Parse JSON. A byte order mark before it is left out.

    Raises:
        ValueError: it is no JSON, has half of a character, or nests deeper than 200 levels.
    """
    # A lone half of a character has no bytes; a text with one would be a TypeError.
    return from_json(text.removeprefix("\ufeff").encode())


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ValueError: it is no TOML, or nested too deep.
    """
    import tomllib  # few users need it

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep; write it flatter") from None
