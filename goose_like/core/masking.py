"""Masking: replace secrets with `[masked:NAME]` before a model, a file or a screen receives them.

A secret is the value of a key that goose_like knows, or a text in the format of a well-known kind of key.
"""

import json
import logging
import operator
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, JsonValue
from typing_extensions import override

from goose_like.core.pattern import compile_later

from .message import Message, ToolSpec, Verbatim

T = TypeVar("T")

_MIN_CHARACTERS = 8
_MIN_PLAIN_CHARACTERS = 16
"""The length from which a value without a digit is a secret, and not a word such as `postgres`."""

_STARTS = (
    *("sk-", "sk_live_", "rk_live_", "gsk_", "AIza", "hf_", "xai-", "AKIA", "ASIA", "xox", "xapp-", "eyJ"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "pypi-", "-----BEGIN", "://"),
    *("glptt-", "glrt-", "gldt-", "dckr_pat_", "dckr_oat_", "SG.", "dop_v1_", "doo_v1_", "dor_v1_", "hvs.", "hvb."),
    *("shpat_", "shpca_", "shppa_", "shpss_", "lin_api_", "figd_", "PMAK-", "ntn_", "tskey-", "nfp_", "sbp_", "r8_"),
    *("whsec_", "dapi", "ATATT3x", "ya29.", "rubygems_", "pul-", "sntrys_", "sntryu_", "AGE-SECRET-KEY-1", "tvly-"),
)
"""The start of each format below. A text without any of them needs no regular expression."""

_MIN_HELD = 3
"""The length from which the start of a secret waits for its rest. Shorter starts would delay ordinary words."""

_MAX_HELD = 64 * 1024
"""The length from which nothing waits any longer: this is no secret."""

_HELD_STARTS = tuple(dict.fromkeys(start[:_MIN_HELD] for start in _STARTS))

# Each part that must be followed by something has a largest length, so that no text takes quadratic time.
_KEY_FORMATS = r"""
(?<![A-Za-z0-9])(?:
    (?P<api_key> sk-(?=[\w-]{0,64}\d)(?:\w|-(?!----)){20,} | [sr]k_live_\w{16,} | gsk_\w{32,} | AIza[\w-]{35}
        | hf_[A-Za-z0-9]{30,} | xai-\w{32,})
  | (?P<github_token> gh[opusr]_[A-Za-z0-9]{30,} | github_pat_\w{40,})
  | (?P<gitlab_token> glpat-(?:\w|-(?!----)){20,})
  | (?P<aws_key> (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9]))
  | (?P<slack_token> xox[a-z]-(?=[\w-]{0,64}\d)(?:\w|-(?!----)){10,} | xapp-(?=[\w-]{0,64}\d)[\w-]{20,})
  | (?P<registry_token> npm_[A-Za-z0-9]{36} | pypi-[\w-]{50,} | dckr_[po]at_[\w-]{20,} | rubygems_[0-9a-f]{40,})
  | (?P<service_token> SG\.[\w-]{16,64}\.[\w-]{16,} | do[opr]_v1_[0-9a-f]{40,} | hv[sb]\.[\w-]{20,}
        | shp(?:at|ca|pa|ss)_[0-9a-fA-F]{30,} | lin_api_[A-Za-z0-9]{30,} | figd_[\w-]{30,}
        | PMAK-[0-9a-f]{20,}-[0-9a-f]{20,}
        | ntn_[A-Za-z0-9]{36,} | tskey-[a-z]{2,20}-[\w-]{16,} | nfp_[A-Za-z0-9]{30,} | sbp_[0-9a-f]{32,}
        | r8_[A-Za-z0-9]{32,}
        | whsec_[A-Za-z0-9+/]{24,} | dapi[0-9a-f]{32,} | ATATT3x[\w=-]{50,} | ya29\.[\w-]{30,} | pul-[0-9a-f]{40,}
        | sntry[su]_[\w=+/-]{40,} | AGE-SECRET-KEY-1[A-Z0-9]{50,} | tvly-(?:dev-)?[A-Za-z0-9]{24,}
        | gl(?:ptt|rt|dt)-[\w-]{20,})
  | (?P<web_token> eyJ[\w-]{10,500}\.eyJ[\w-]{10,4000}\.[\w-]{20,})
)
| (?P<private_key> -----BEGIN\ (?:[A-Z]+\ ){0,4}PRIVATE\ KEY(?:\ BLOCK)?-----
    (?: (?:KEY_PART){40,}+ (?:LINE_START? -----END\ (?:[A-Z]+\ ){0,4}PRIVATE\ KEY(?:\ BLOCK)?-----)?
      | (?:(?!-----)[\s\S]){40,20000} -----END\ (?:[A-Z]+\ ){0,4}PRIVATE\ KEY(?:\ BLOCK)?-----))
| (?P<url_user> ://[^\s/:@'"<>]{0,100}:) (?P<url_password> (?![$<{*%\[(])[^\s/@'"<>]{2,200}) (?=@)
"""
# A line of a key may be quoted, indented, numbered, named as by grep, or a line of a diff.
_LINE_START = (
    r"(?>(?:\r?\n)+[\ \t>|]{0,40}(?:[\w./][\w./-]{0,199}:)?(?:\d{1,7}[:|\t\ ])?"
    r"[\ \t]{0,40}(?:[+\ ]|-(?!-))?[\"',]?)"
)
_KEY_PART = "|".join(
    (
        r"[A-Za-z0-9+/=]",
        r"\\{1,4}[nrt]",
        r"[\"',](?=[\"',+\ \t]{0,8}\r?\n)",
        r"[\ \t](?=[A-Za-z0-9+/=]{16}|-----END|[+\ \\\"']*\r?\n)",
        r"\r?\n(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n]{0,200}",
        _LINE_START,
    )
)
_KEY_END = r"[\w./:>|,+=\\\"'\s-]{0,300}"  # what may still become a part of a key
_OPEN_PRIVATE_KEY = rf"-----BEGIN\ (?:[A-Z\ ]*|[A-Z\ ]*PRIVATE\ KEY[A-Z\ ]*-{{1,5}}(?:(?:{_KEY_PART})*+{_KEY_END})?)"
_OPEN_URL = compile_later(r"://[^\s/@'\"<>]{0,300}")
_PLACEHOLDERS = compile_later(
    r"(?i)pass(word|wd)?|pwd|secret|token|key|user(name)?|admin|root|guest|test|example|changeme|postgres|mysql|redis"
    r"|rabbitmq|mongo|dev|x+|\.+|your[-_]?\w*"
)
"""Passwords in URLs that are none: examples, and the defaults of servers on a developer's machine."""

_TOKEN_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_MASK = compile_later(r"\[masked:[\w.-]+\]")
_ENCRYPTED_KEYS = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout", "signature", "data"})
_ARGUMENT_KEYS = frozenset({"input", "arguments"})
"""The keys of a call's arguments, which may have any keys within."""

_OPAQUE_FIELDS = frozenset({"type", "id", "call_id", "signature", "data"})

# For the whole process, as the environment is: errors, logs and exports are masked without a journal.
_known: dict[str, str] = {}  # values in all spellings, the longest first, with their names


def add_secret(name: str, value: str) -> None:
    """Mask this value from now on, unless it is too short, a path or an ordinary word."""
    if value in _known or len(value) < _MIN_CHARACTERS or value[0] in "/~.":
        return
    has_digit = any(map(str.isdigit, value))
    is_word = len(value) < _MIN_PLAIN_CHARACTERS and not has_digit
    if is_word:
        return
    spellings = (
        value,
        json.dumps(value)[1:-1],  # as in the arguments of a tool call
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, safe=""),
        value.encode().decode("latin-1"),  # as in `mask_bytes`
    )
    for spelling in spellings:
        _known[spelling] = name
    # The longest first: a shorter value may be a part of it.
    ordered = sorted(_known, key=len, reverse=True)
    names = {spelling: _known[spelling] for spelling in ordered}
    _known.clear()
    _known.update(names)


def mask_text(text: str, *, keeps_lines: bool = False) -> str:
    """Replace the secrets in a text. The text itself returns when it holds none.

    With `keeps_lines` a secret of several lines stays: a question must not hide a line of a command.
    """
    if len(text) < _MIN_CHARACTERS:
        return text
    for value, name in _known.items():
        if value in text and not (keeps_lines and "\n" in value):
            text = text.replace(value, _format_mask(name, value))
    if any(map(text.__contains__, _STARTS)):  # each text of a step comes here: a generator takes twice the time
        text = _compile_formats().sub(lambda found: _mask_match(found, keeps_lines), text)
    return text


def mask_bytes(data: bytes) -> bytes:
    """Replace the secrets in a whole file or output."""
    return mask_text(data.decode("latin-1")).encode("latin-1")


def mask_value(value: T, *, keeps_lines: bool = False) -> T:
    """Replace the secrets in all texts of an event, message or JSON value. The value itself returns without any.

    A masked answer loses its verbatim form, so that no vendor receives changed thinking.
    """
    mask = partial(mask_value, keeps_lines=keeps_lines)
    new: Any = value
    if isinstance(value, str):
        new = mask_text(value, keeps_lines=keeps_lines)
    elif isinstance(value, Verbatim):
        if not _is_free_of_secrets(value.items):
            new = None
    elif isinstance(value, ToolSpec):
        new = _mask_spec(value)
    elif isinstance(value, BaseModel):
        new = _mask_model(value, mask)
    elif isinstance(value, dict):
        new = _mask_dict(value, mask)
    elif isinstance(value, list | tuple):
        items = list(map(mask, value))
        is_same = all(map(operator.is_, items, value))
        if not is_same:
            new = type(value)(items)
    return new  # type: ignore[no-any-return]


def _mask_dict(value: dict[Any, Any], mask: Callable[[Any], Any]) -> dict[Any, Any]:
    is_same = True
    masked = {}
    for name, item in value.items():
        new_name = mask(name)
        new_item = mask(item)
        masked[new_name] = new_item
        if new_name is not name or new_item is not item:
            is_same = False
    return value if is_same else masked


def _mask_model(value: BaseModel, mask: Callable[[Any], Any]) -> BaseModel:
    changes = {}
    for name, old in value:
        if name in _OPAQUE_FIELDS:
            continue
        field = mask(old)
        if field is not old:
            changes[name] = field
    if not changes:
        return value
    new = value.model_copy(update=changes)
    if isinstance(new, Message) and new.verbatim and new.verbatim.wire == "messages":
        return new.model_copy(update={"verbatim": None})  # its thinking is bound to the old text
    return new


def _mask_spec(spec: ToolSpec) -> ToolSpec:
    """Mask the description of a tool. Its name stays, since calls have it."""
    description = mask_value(spec.description)
    schema = mask_value(spec.schema)
    if description is spec.description and schema is spec.schema:
        return spec
    return replace(spec, description=description, schema=schema)


def _is_free_of_secrets(items: JsonValue | tuple[JsonValue, ...], skipped: frozenset[str] = _ENCRYPTED_KEYS) -> bool:
    """Check the texts of an answer, except for those under the `skipped` keys: no one can read encrypted ones."""
    if isinstance(items, str):
        return mask_text(items) is items
    if isinstance(items, list | tuple):
        return all(_is_free_of_secrets(item, skipped) for item in items)
    if not isinstance(items, dict):
        return True
    for name, item in items.items():
        if name in skipped:
            continue
        inner_skipped = skipped
        if name in _ARGUMENT_KEYS:
            inner_skipped = frozenset()
        if not _is_free_of_secrets(item, inner_skipped):
            return False
    return True


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
        held_start = len(text) - _MAX_HELD
        end = max(_find_open_end(text), len(self._last), held_start)
        self._waiting = text[end:]
        return self._mask(text[:end])

    def close(self) -> str:
        """Return the rest. A large part of a known value is masked too."""
        text = mask_text(self._last + self._waiting)
        self._waiting = ""
        for value, name in _known.items():
            start = _find_overlap(text, value)
            part = text[start:]
            if len(part) > _MIN_CHARACTERS:
                return self._mask(text[:start]) + _format_mask(name, part)
        return self._mask(text)

    def _mask(self, text: str) -> str:
        """Mask a text that starts with what was returned last, and return the rest."""
        masked = mask_text(text)
        size = len(self._last)
        while not masked.startswith(self._last[:size]):
            size -= 1
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
    formats = _KEY_FORMATS.replace("KEY_PART", _KEY_PART).replace("LINE_START", _LINE_START)
    return re.compile(formats, re.VERBOSE | re.ASCII)


@cache
def _compile_open_key() -> re.Pattern[str]:
    return re.compile(_OPEN_PRIVATE_KEY, re.ASCII)


def _mask_match(found: re.Match[str], keeps_lines: bool) -> str:
    if keeps_lines and "\n" in found[0]:
        return found[0]
    if password := found["url_password"]:
        user = found["url_user"]
        is_example = _PLACEHOLDERS.fullmatch(password) or user == f"://{password}:"
        if is_example:
            return found[0]
        return user + _format_mask("url-password", password)
    name = str(found.lastgroup).replace("_", "-")
    return _format_mask(name, found[0])


def _format_mask(name: str, secret: str) -> str:
    """Return the mask of a secret. All line ends stay, so that the lines after it keep their numbers."""
    return f"[masked:{name}]" + "\n" * secret.count("\n")


def _find_open_end(text: str) -> int:
    """Return the start of the end that may become a secret, or the length of the text."""
    end = len(text)
    for value in _known:
        end = min(end, _find_overlap(text, value))
    word_start = len(text.rstrip(_TOKEN_CHARACTERS))
    if word_start < len(text):
        for beginning in _HELD_STARTS:
            start = text.find(beginning, word_start)
            if start >= 0:
                end = min(end, start)
    url_start = text.rfind("://")
    if url_start >= 0 and _OPEN_URL.fullmatch(text, url_start):
        end = min(end, url_start)
    key_start = text.rfind("-----BEGIN")
    if key_start >= 0 and _compile_open_key().fullmatch(text, key_start):
        end = min(end, key_start)
    if end == len(text):
        return end
    return _move_before_secret(text, end)


def _find_overlap(text: str, value: str) -> int:
    """Return the start of the longest end of a text that is a start, but not the whole, of the value."""
    # At least the last character of the value is missing.
    longest = len(value) - 1
    first = max(0, len(text) - longest)
    start = text.find(value[0], first)
    while 0 <= start <= len(text) - _MIN_HELD:
        if value.startswith(text[start:]):
            return start
        start = text.find(value[0], start + 1)
    return len(text)


def _move_before_secret(text: str, end: int) -> int:
    """Return `end`, or the start of the complete secret that `end` would cut."""
    for value in _known:
        # A value that `end` cuts has at least one character on each side of it.
        longest_part = len(value) - 1
        first = max(0, end - longest_part)
        start = text.find(value, first, end + longest_part)
        if 0 <= start < end:
            end = start
    if any(start in text[:end] for start in _STARTS):
        for found in _compile_formats().finditer(text):
            if found.start() < end < found.end():
                return found.start()
    return end
