"""The JSON object in the body of a request, what is wrong with its fields, and the bytes of files in it."""

import base64
import codecs
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from goose_like.core.json_bytes import repair_json

_EXPECTED = {
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"), "an object"
    ),
    **dict.fromkeys(("string_type", "string_sub_type"), "text"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
}
"""What is expected, by pydantic's type of the error."""

_BASE64_PIECE_CHARS = 400_000
"""A multiple of four, as four characters stand for three bytes."""


def decode_base64(text: str) -> bytes:
    """Decode the base64 text of a file, piece by piece: a thread that decodes lets the event loop go on between them.

    Raises:
        ValueError: it is no base64.
    """
    pieces = []
    for start in range(0, len(text), _BASE64_PIECE_CHARS):
        piece = text[start : start + _BASE64_PIECE_CHARS]
        pieces.append(base64.b64decode(piece, validate=True))
    return b"".join(pieces)


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Lone surrogates, which JavaScript strings may contain and UTF-8 may not, are replaced.

    Raises:
        ValueError: the body is something else.
    """
    body = body.removeprefix(codecs.BOM_UTF8)
    try:
        data = from_json(repair_json(body))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"invalid JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError("expected a JSON object")
    return data


def describe_wrong_field(detail: Mapping[str, Any]) -> str:
    """Describe an error of pydantic, which has its `input`, in plain words and without its place."""
    if detail["type"] == "missing":
        return "a required field is missing"
    if detail["type"] == "too_short":
        return "the list is empty"
    expected = _EXPECTED.get(detail["type"])
    if expected:
        return f"expected {expected}, not {describe_json_type(detail['input'])}"
    text = str(detail["msg"]).removeprefix("Value error, ")
    if text.startswith("Input should be "):
        return text.replace("Input should be ", "expected ", 1)
    return f"{text[:1].lower()}{text[1:]}"


def describe_json_type(value: object) -> str:
    """Name the type of a JSON value, without the value itself, which may be private."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
    return "an object"
