"""A probe: one small request finds out whether a model on an unknown server calls tools. Its result is kept for a week.

Chat templates and parsers of servers differ: the same model calls tools on one server, and on another one it writes its
calls as text, writes broken JSON, or never hears of the tools.
"""

import re
from datetime import date
from typing import Any, Literal
from urllib.parse import SplitResult

from pydantic import ValidationError

from goose_like.config.kept_values import KeptValues
from goose_like.core.errors import BrokenStreamError, ProviderError
from goose_like.core.events import MessageCompleted
from goose_like.core.message import FrozenModel, Message
from goose_like.core.tool import ToolSpec

from .base import Request
from .wire import is_json_object

ToolMode = Literal["native", "constrained"]

KEPT_DAYS = 7
"""A server may get another model under the same name, or another parser."""

_NAME = "tool_calls"
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
    models = _read_models(KeptValues(_NAME), url)
    try:
        kept = _KeptMode.model_validate(models[model])
    except (KeyError, ValidationError):
        return None  # there is none, or it is of another form; the next probe replaces it
    age_days = abs((date.today() - kept.day).days)
    return kept.mode if age_days < KEPT_DAYS else None


def keep_mode(url: SplitResult, model: str, mode: ToolMode) -> None:
    """Keep the result of a probe for later processes."""
    values = KeptValues(_NAME)
    kept = _KeptMode(mode=mode, day=date.today()).model_dump(mode="json")
    values.put(_name_server(url), {**_read_models(values, url), model: kept})
    values.save()


def forget_modes(url: SplitResult) -> None:
    """Forget the results of a server, so that the next session asks it again."""
    values = KeptValues(_NAME)
    if _read_models(values, url):
        values.put(_name_server(url), {})
        values.save()


def _read_models(values: KeptValues, url: SplitResult) -> dict[str, Any]:
    """Read the results of a server, by model."""
    models = values.get(_name_server(url))
    return models if isinstance(models, dict) else {}


def _name_server(url: SplitResult) -> str:
    """Return the address of a server, without user name and password."""
    return url.netloc.rpartition("@")[2] + url.path.rstrip("/")
