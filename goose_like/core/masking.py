"""Masking: replace secrets with `[masked:NAME]` before a model, a file or a screen receives them.

A secret is the value of a key that goose_like knows, or a text in the format of a well-known kind of key.
"""

import json
import logging
import re
from functools import cache, partial
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel
from typing_extensions import override

T = TypeVar("T")

_MIN_CHARACTERS = 8
_MIN_PLAIN_CHARACTERS = 16
"""The length from which a value without a digit is a secret, and not a word such as `postgres`."""

_STARTS = (
    *("sk-", "sk_live_", "rk_live_", "gsk_", "AIza", "hf_", "xai-", "AKIA", "ASIA", "xox", "xapp-", "eyJ"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "pypi-", "-----BEGIN"),
)
"""The start of each format below. A text without any of them needs no regular expression."""

_MIN_HELD = 3
"""The length from which the start of a secret waits for its rest. Shorter starts would delay ordinary words."""

_MAX_HELD = 64 * 1024
"""The length from which nothing waits any longer: this is no secret."""

# Each part that must be followed by something has a largest length, so that no text takes quadratic time.
_KEY_FORMATS = r"""
(?<![A-Za-z0-9])(?:
    (?P<api_key> sk-(?=[\w-]{0,64}\d)(?:\w|-(?!----)){20,} | [sr]k_live_\w{16,} | gsk_\w{32,} | AIza[\w-]{35}
        | hf_[A-Za-z0-9]{30,} | xai-\w{32,})
  | (?P<github_token> gh[opusr]_[A-Za-z0-9]{30,} | github_pat_\w{40,})
  | (?P<gitlab_token> glpat-(?:\w|-(?!----)){20,})
  | (?P<aws_key> (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9]))
  | (?P<slack_token> xox[a-z]-(?=[\w-]{0,64}\d)(?:\w|-(?!----)){10,} | xapp-(?=[\w-]{0,64}\d)[\w-]{20,})
  | (?P<registry_token> npm_[A-Za-z0-9]{36} | pypi-[\w-]{50,})
  | (?P<web_token> eyJ[\w-]{10,500}\.eyJ[\w-]{10,4000}\.[\w-]{20,})
)
| (?P<private_key> -----BEGIN\ (?:[A-Z]+\ )*PRIVATE\ KEY(?:\ BLOCK)?-----
    (?:[A-Za-z0-9+/=]|\\[nr]|\r?\n(?:[+\ ]|-(?!-))?){40,}
    (?:-----END\ (?:[A-Z]+\ )*PRIVATE\ KEY(?:\ BLOCK)?-----)?)
"""
_OPEN_PRIVATE_KEY = r"-----BEGIN (?:[A-Z ]*|[A-Z ]*PRIVATE KEY[A-Z ]*-{1,5}(?:[A-Za-z0-9+/=\s\\-]|END [A-Z ]*)*)"
_TOKEN_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_MASK = re.compile(r"\[masked:[\w.-]+\]")
_OPAQUE_FIELDS = frozenset({"type", "id", "call_id", "signature", "data"})

# For the whole process, as the environment is: errors, logs and exports are masked without a journal.
_known: dict[str, str] = {}  # values in all spellings, the longest first, with their names


def add_secret(name: str, value: str) -> None:
    """Mask this value from now on, unless it is too short, a path or an ordinary word."""
    is_word = len(value) < _MIN_PLAIN_CHARACTERS and not any(character.isdigit() for character in value)
    if value in _known or len(value) < _MIN_CHARACTERS or is_word or value[0] in "/~.":
        return
    escaped = (
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
    )  # as in the arguments of a tool call
    for spelling in (value, *escaped, quote(value, safe=""), value.encode().decode("latin-1")):
        _known[spelling] = name
    values = sorted(_known.items(), key=lambda item: -len(item[0]))
    _known.clear()
    _known.update(values)


def mask_text(text: str, *, keeps_lines: bool = False) -> str:
    """Replace the secrets in a text. The text itself returns when it holds none.

    With `keeps_lines` a secret of several lines stays: a question must not hide a line of a command.
    """
    if len(text) < _MIN_CHARACTERS:
        return text
    for value, name in _known.items():
        if value in text and not (keeps_lines and "\n" in value):
            text = text.replace(value, _format_mask(name, value))
    if any(start in text for start in _STARTS):
        text = _compile_formats().sub(lambda found: _mask_match(found, keeps_lines), text)
    return text


def mask_bytes(data: bytes) -> bytes:
    """Replace the secrets in a whole file or output."""
    return mask_text(data.decode("latin-1")).encode("latin-1")


def mask_value(value: T, *, keeps_lines: bool = False) -> T:
    """Replace the secrets in all texts of an event, message or JSON value. The value itself returns without any.

    Masked thinking loses its signature, so that no vendor receives changed thinking.
    """
    mask = partial(mask_value, keeps_lines=keeps_lines)
    new: Any = value
    if isinstance(value, str):
        new = mask_text(value, keeps_lines=keeps_lines)
    elif isinstance(value, BaseModel):
        fields = {name: mask(old) for name, old in value if name not in _OPAQUE_FIELDS}
        if any(field is not getattr(value, name) for name, field in fields.items()):
            new = value.model_copy(update=fields | ({"signature": None} if "signature" in vars(value) else {}))
    elif isinstance(value, dict):
        pairs = [(mask(name), mask(old)) for name, old in value.items()]
        if any(name not in value or value[name] is not item for name, item in pairs):
            new = dict(pairs)
    elif isinstance(value, list | tuple):
        items = [mask(old) for old in value]
        if any(item is not old for item, old in zip(items, value, strict=True)):
            new = type(value)(items)
    return new  # type: ignore[no-any-return]


def find_mask(text: str) -> str | None:
    """Return the first mask in a text."""
    found = _MASK.search(text)
    return found and found[0]


class MaskedText:
    """A filter that masks a stream of text. The end waits for the next piece while it may be the start of a secret.

    Up to two characters of a secret may pass when the stream is cut behind them.
    """

    def __init__(self) -> None:
        self._waiting = ""
        self._last = ""

    def write(self, text: str) -> str:
        """Add a piece and return what is masked completely."""
        text = self._last + self._waiting + text
        end = max(_find_open_end(text), len(self._last), len(text) - _MAX_HELD)
        self._waiting = text[end:]
        return self._mask(text[:end])

    def close(self) -> str:
        """Return the rest. A large part of a known value is masked too."""
        text, self._waiting = mask_text(self._last + self._waiting), ""
        for value, name in _known.items():
            if (start := _find_overlap(text, value)) < len(text) - _MIN_CHARACTERS:
                return self._mask(text[:start]) + _format_mask(name, text[start:])
        return self._mask(text)

    def _mask(self, text: str) -> str:
        """Mask a text that starts with what was returned last, and return the rest."""
        masked = mask_text(text)
        size = next(size for size in range(len(self._last), -1, -1) if masked.startswith(self._last[:size]))
        self._last = masked[-_MIN_HELD:]
        return masked[size:]


class MaskedBytes:
    """A filter that masks a stream of bytes, as `MaskedText` does."""

    def __init__(self) -> None:
        self._text = MaskedText()

    def write(self, data: bytes) -> bytes:
        """Add a piece and return what is masked completely."""
        return self._text.write(data.decode("latin-1")).encode("latin-1")

    def close(self) -> bytes:
        """Return the rest."""
        return self._text.close().encode("latin-1")


class MaskedFormatter(logging.Formatter):
    """A formatter that masks the lines of a log and their tracebacks."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return mask_text(super().format(record))


@cache
def _compile_formats() -> re.Pattern[str]:
    return re.compile(_KEY_FORMATS, re.VERBOSE | re.ASCII)


def _mask_match(found: re.Match[str], keeps_lines: bool) -> str:
    if keeps_lines and "\n" in found[0]:
        return found[0]
    return _format_mask(str(found.lastgroup).replace("_", "-"), found[0])


def _format_mask(name: str, secret: str) -> str:
    """Return the mask of a secret. All line ends stay, so that the lines after it keep their numbers."""
    return f"[masked:{name}]" + "\n" * secret.count("\n")


def _find_open_end(text: str) -> int:
    """Return the start of the end that may become a secret, or the length of the text."""
    end = min((_find_overlap(text, value) for value in _known), default=len(text))
    word_start = len(text.rstrip(_TOKEN_CHARACTERS))
    starts = (text.find(start[:_MIN_HELD], word_start) for start in _STARTS)
    end = min(end, *(start for start in starts if start >= 0), len(text))
    begin = text.rfind("-----BEGIN")
    if begin >= 0 and re.compile(_OPEN_PRIVATE_KEY).fullmatch(text, begin):
        end = min(end, begin)
    return _move_before_secret(text, end) if end < len(text) else end


def _find_overlap(text: str, value: str) -> int:
    """Return the start of the longest end of a text that is a start, but not the whole, of the value."""
    start = text.find(value[0], max(0, len(text) - len(value) + 1))
    while 0 <= start <= len(text) - _MIN_HELD:
        if value.startswith(text[start:]):
            return start
        start = text.find(value[0], start + 1)
    return len(text)


def _move_before_secret(text: str, end: int) -> int:
    """Return `end`, or the start of the complete secret that `end` would cut."""
    for value in _known:
        start = text.find(value, max(0, end - len(value) + 1), end + len(value) - 1)
        end = start if 0 <= start < end else end
    if any(start in text[:end] for start in _STARTS):
        for found in _compile_formats().finditer(text):
            if found.start() < end < found.end():
                return found.start()
    return end
