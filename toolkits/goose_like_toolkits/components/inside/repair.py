"""JSON that a model wrote, which is not always quite JSON."""

import json
import re
from collections.abc import Iterator
from typing import Any

_FENCE = re.compile(r"```[\w-]*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(")?|[^"]', re.DOTALL)  # a string, maybe one that never ends, or a letter
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\', re.DOTALL)
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)(\s*:)")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_CLOSING = {"{": "}", "[": "]"}
_LIMIT_CHARACTERS = 300_000  # a longer text is not mended


def repaired(json_string: str) -> Any:
    """The value of the text, of the fenced block in it, or of the object or list in it; mended if need be.

    Raises:
        ValueError: when there is none.
    """
    for text in _candidates(json_string):
        for is_mended in (False, True):
            try:
                return json.loads(_mended(text) if is_mended else text, strict=False)
            except ValueError:
                continue
            except RecursionError:
                raise ValueError("the JSON is too deeply nested") from None
    raise ValueError(f"there is no JSON in the text, which begins with {json_string[:80]!r}")


def _candidates(text: str) -> Iterator[str]:
    text = text.strip().removeprefix("\ufeff")
    yield text
    if fenced := _FENCE.search(text):
        yield fenced.group(1).strip()
    starts = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    for place in sorted(starts):
        yield _balanced(text[place:])


def _balanced(text: str) -> str:
    """The text up to where what it opens is closed again; all of it if it never is."""
    depth = end = 0
    for token in _TOKEN.finditer(text):
        depth += (token.group() in "{[") - (token.group() in "}]")
        end = token.end()
        if depth == 0:
            break
    return text[:end]


def _mended(text: str) -> str:
    """The text with keys quoted, escapes that there are not kept as their letters, and what is open closed."""
    if len(text) > _LIMIT_CHARACTERS:
        return text
    parts: list[str] = []
    outside: list[str] = []
    for token in _TOKEN.finditer(text):
        piece = token.group()
        if not piece.startswith('"'):
            outside.append(piece)
            continue
        parts += [_tidy("".join(outside)), _ESCAPE.sub(_escape, piece)]
        outside.clear()
        if token.group(1) is None:  # cut off within a string
            joined = "".join(parts) + '"'
            return joined + _missing(joined)
    joined = ("".join(parts) + _tidy("".join(outside))).rstrip().removesuffix(",")
    return joined + _missing(joined)


def _tidy(outside: str) -> str:
    return _TRAILING_COMMA.sub(r"\1", _BARE_KEY.sub(r'\1"\2"\3', outside))


def _escape(found: re.Match[str]) -> str:
    return found.group() if len(found.group()) > 1 else ""


def _missing(text: str) -> str:
    """What closes the brackets that are open at the end."""
    still_open: list[str] = []
    for token in _TOKEN.finditer(text):
        if token.group() in _CLOSING:
            still_open.append(_CLOSING[token.group()])
        elif still_open and token.group() == still_open[-1]:
            still_open.pop()
    return "".join(reversed(still_open))
