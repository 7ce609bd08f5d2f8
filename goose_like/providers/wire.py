"""What the vendors' wires share: JSON in and out, read with suspicion, and what it means when a server says no."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from goose_like.core.errors import (
    BrokenStreamError,
    ContextLengthError,
    CredentialError,
    ModelUnavailableError,
    ProviderError,
    RateLimitError,
)
from goose_like.core.message import Image, Message

# --- what we send


def encode_json(value: object) -> bytes:
    """The value as compact JSON in UTF-8."""
    # A lone surrogate (a file name that is no UTF-8) has no place in UTF-8; servers refuse the whole request for one.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def sanitize_tool_name(name: str) -> str:
    """A tool's name as both wires allow it."""
    # The API refuses a history with other names, for ever, though it is the model that made them up.
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"


def is_json_object(text: str) -> bool:
    """Whether the text is one JSON object by the letter of RFC 8259, which has no NaN."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def sanitize_arguments(text: str) -> str:
    """Arguments as they came, wrapped when they are no JSON object: no server takes back what can't be parsed."""
    if not text.strip():
        return "{}"
    return text if is_json_object(text) else json.dumps({"invalid_json": text}, ensure_ascii=False)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def encode_image(image: Image, folder: Path | None) -> str | None:
    """The image's bytes in base64; None when its file is gone."""
    try:
        return b64encode((folder / image.name).read_bytes()).decode() if folder else None
    except OSError:
        return None


class MessageEncoder:
    """Messages as bytes, each encoded once: those of a request begin those of the next one."""

    def __init__(self, encode: Callable[[Message, Path | None], bytes]) -> None:
        """`encode` gives a message's bytes; the images' bytes lie in the folder."""
        self._encode = encode
        self._images: Path | None = None
        self._sent: list[tuple[Message, bytes]] = []

    def encode(self, messages: Sequence[Message], images: Path | None) -> Sequence[tuple[Message, bytes]]:
        """The messages, each with its bytes."""
        if images != self._images:
            self._images, self._sent = images, []
        # The messages are held, not their ids: an id may be used again once its object is gone.
        same = 0
        for (old, _), new in zip(self._sent, messages, strict=False):
            if old is not new:
                break
            same += 1
        self._sent[same:] = ((new, self._encode(new, images)) for new in messages[same:])
        return self._sent


# --- what we receive, by its type: `what` names the place; null counts as empty


def expect_object(value: object, what: str) -> Mapping[str, Any]:
    """The value as an object. Raises: BrokenStreamError: it is none; so do the others below."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise build_type_error(what, value, "an object")
    return value


def expect_list(value: object, what: str) -> list[Any]:
    """The value as a list."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise build_type_error(what, value, "a list")
    return value


def expect_string(value: object, what: str) -> str:
    """The value as a string."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise build_type_error(what, value, "a string")
    return value


def expect_count(value: object, what: str) -> int:
    """The value as a whole number."""
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise build_type_error(what, value, "a number")
    return value


def build_type_error(what: str, value: object, expected: str) -> BrokenStreamError:
    """The error for a value of another type than the wire has there."""
    return BrokenStreamError(f"the stream has {clip(repr(value), 80)} as {what} where {expected} belongs")


# --- what it means when the server says no

_TOO_LONG = re.compile(
    r"context[ _](length|limit|window|size)|maximum (context|prompt)|(prompt|input) is too long"
    r"|too many (input )?tokens|max_model_len|exceeds the maximum number of tokens"
    r"|reduce the length of the (messages|prompt|input)",
    re.I,
)


def clip(text: str, size: int = 300) -> str:
    """One line of at most `size` characters."""
    text = " ".join(text.split())
    return text if len(text) <= size else text[: size - 1] + "…"


def extract_error_text(body: object) -> str:
    """What a server says of its error: OpenAI's `{"error": {"message"}}`, FastAPI's `{"detail"}`, or bare text."""
    if isinstance(body, Mapping):
        nested = next((body[key] for key in ("message", "error", "detail", "msg") if body.get(key)), None)
        return clip(json.dumps(body)) if nested is None else extract_error_text(nested)
    if isinstance(body, Sequence) and not isinstance(body, str) and body:
        return extract_error_text(body[0])
    text = body if isinstance(body, str) else ""
    return "a web page came, not the API's answer" if text.lstrip().startswith("<") else clip(text)


def build_stream_error(body: object) -> ProviderError:
    """The error that a server reports within a stream that it had begun with success."""
    words = extract_error_text(body)
    if _TOO_LONG.search(f"{body}"):
        return build_context_length_error(words)
    return BrokenStreamError(f"the server broke the answer off: {words or 'it gave no reason'}")


def build_context_length_error(words: str) -> ContextLengthError:
    """The error for a request that does not fit; `words` are the server's."""
    return ContextLengthError(
        f"the request is longer than the model's window: {words}; "
        "shorten the conversation, or set a moderator and `window` in the profile"
    )


def build_status_error(
    status: int, body: object, model: str, key_variable: str, retry_after_s: float | None = None
) -> ProviderError:
    """The error that an HTTP status other than success stands for; `body` is what came with it."""
    words = extract_error_text(body)
    told = f"HTTP {status}: {words}" if words else f"HTTP {status}"
    codes = str([body.get("code"), body.get("type")]) if isinstance(body, Mapping) else ""
    if status in (401, 403):
        return CredentialError(f"the API key was refused ({told}); set {key_variable} to a key that is valid there")
    if status == 404:
        return ModelUnavailableError(
            f"no model {model!r} there ({told}); choose another model, or correct base_url", is_retryable=False
        )
    if status == 402 or (status == 429 and "insufficient_quota" in codes + words):
        return RateLimitError(f"no credit is left ({told}); add credit there or use another key", is_retryable=False)
    if status == 429:
        return RateLimitError(f"too many requests ({told}); wait, or use another model", retry_after_s=retry_after_s)
    if status in (408, 409, 425) or status >= 500:
        return ModelUnavailableError(
            f"the server can't answer now ({told}); try again later", is_retryable=True, retry_after_s=retry_after_s
        )
    if status == 413 or _TOO_LONG.search(codes + words):
        return build_context_length_error(told)
    hint = "choose another model"
    if "/v1/responses" in words:
        hint = "this model has no native tools on chat completions: choose another, or set `tools: constrained` for it"
    return ProviderError(f"the request was refused ({told}); {hint}")
