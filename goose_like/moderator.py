"""Public import path for moderator authors. Import everything that a moderator needs from here."""

from goose_like.agent.compaction.moderators import Moderator, ThresholdModerator
from goose_like.agent.compaction.summary import (
    count_newest,
    format_plan,
    measure,
    quote_first_request,
    quote_later_requests,
    summarize_history,
    truncate_history,
)
from goose_like.agent.view import ExchangeView
from goose_like.core.context import Context
from goose_like.core.errors import GooseLikeError, ProviderError
from goose_like.core.events import Compacted, Logged, StateSaved
from goose_like.core.history import History
from goose_like.core.message import Message, ToolResult

__all__ = [
    "Compacted",
    "Context",
    "ExchangeView",
    "GooseLikeError",
    "History",
    "Logged",
    "Message",
    "Moderator",
    "ProviderError",
    "StateSaved",
    "ThresholdModerator",
    "ToolResult",
    "count_newest",
    "format_plan",
    "measure",
    "quote_first_request",
    "quote_later_requests",
    "summarize_history",
    "truncate_history",
]
