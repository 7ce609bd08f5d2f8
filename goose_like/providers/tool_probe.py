"""A probe: one small request finds out whether a model on an unknown server calls tools. Its result is kept for a week.

Chat templates and parsers of servers differ: the same model calls tools on one server, and on another one it writes its
calls as text, writes broken JSON, or never hears of the tools.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from typing import Any, Literal
from urllib.parse import SplitResult

from pydantic import ValidationError

from goose_like.config.paths import cache_folder, replace_private_file
from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted
from goose_like.core.message import FrozenModel, Message
from goose_like.core.tool import ToolSpec

from .base import Request
from .wire import is_json_object

ToolMode = Literal["native", "constrained"]

KEPT_DAYS = 7
"""A server may get another model under the same name, or another parser."""

_FILE = "tool_calls.json"
_MAX_TOKENS = 1_000
_TOOL = ToolSpec(
    "note",
    "Keeps a note.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
_SYSTEM = "You work by calling tools."
_TASK = "Call the tool `note` with the text ready."
_ABOUT_TOOLS = re.compile(r"\btools?\b|tool_|\bpars(e|ing)\b|the answer is empty", re.I)


class _KeptMode(FrozenModel):
    mode: ToolMode
    day: date


def build_probe(model: str) -> Request:
    """Build the request that every model which calls tools answers with a call."""
    return Request(model, _SYSTEM, [Message.user(_TASK)], [_TOOL], max_tokens=_MAX_TOKENS, temperature=0)


def judge_answer(answer: MessageCompleted) -> ToolMode:
    """Judge the answer to a probe: only a whole call of the tool proves native calls."""
    for call in answer.message.tool_calls:
        if call.name == _TOOL.name and is_json_object(call.arguments):
            return "native"
    return "constrained"


def judge_error(error: ProviderError) -> ToolMode | None:
    """Judge the failure of a probe. Return None if it is about the connection, the key or the model."""
    if isinstance(error, BrokenStreamError) and not error.is_retryable:
        return "native"  # the model thought up to the limit of its answer, which proves nothing
    # A server that cannot parse the model's call fails (HTTP 500), as if it were overloaded, or sends nothing.
    text = str(error) if error.is_retryable else error.refusal
    return "constrained" if _ABOUT_TOOLS.search(text) else None


def find_kept_mode(url: SplitResult, model: str) -> ToolMode | None:
    """Find what a probe of this model on this server found in the last days."""
    models = _read_file().get(_name_server(url), {})
    try:
        kept = _KeptMode.model_validate(models[model])
    except (KeyError, ValidationError):
        return None  # there is none, or the file is damaged; the next probe replaces it
    age_days = abs((date.today() - kept.day).days)
    return kept.mode if age_days < KEPT_DAYS else None


def keep_mode(url: SplitResult, model: str, mode: ToolMode) -> None:
    """Keep the result of a probe for later processes."""
    kept = _read_file()
    models = kept.setdefault(_name_server(url), {})
    models[model] = _KeptMode(mode=mode, day=date.today()).model_dump(mode="json")
    _write_file(kept)


def forget_modes(url: SplitResult) -> None:
    """Forget the results of a server, so that the next session asks it again."""
    kept = _read_file()
    if kept.pop(_name_server(url), None) is not None:
        _write_file(kept)


def _name_server(url: SplitResult) -> str:
    """Return the address of a server, without user name and password."""
    return url.netloc.rpartition("@")[2] + url.path.rstrip("/")


def _read_file() -> dict[str, dict[str, Any]]:
    """Read the results by server and model."""
    try:
        kept = json.loads((cache_folder() / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    servers: dict[str, dict[str, Any]] = {}
    if isinstance(kept, Mapping):
        for server, models in kept.items():
            if isinstance(models, dict):
                servers[server] = models
    return servers


def _write_file(kept: Mapping[str, Any]) -> None:
    with suppress(OSError):  # without a cache, each process asks the server
        replace_private_file(cache_folder() / _FILE, json.dumps(kept))
