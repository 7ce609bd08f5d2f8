"""Conversations of tests, and short forms of them to compare."""

import copy
from collections.abc import Sequence

from goose_like.core.events import TurnStarted
from goose_like.core.history import History
from goose_like.core.message import Message
from goose_like.serve.openbb.citations import cite_outcomes
from goose_like.serve.openbb.history import (
    Conversation,
)
from goose_like.serve.openbb.query import (
    Query,
)
from goose_like.serve.state import StateSigner

SIGNER = StateSigner(b"k" * 32)
ONE, TWO = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
LISTED = [{"uuid": ONE, "name": "One"}, {"uuid": TWO, "name": "Two"}]
TIERS = {"primary": [widget | {"origin": "o", "widget_id": widget["name"]} for widget in LISTED]}


def summarize(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """List roles and texts, with names of calls and outputs of results."""
    return [
        (message.role, " ".join([message.first_text, *(c.name for c in message.tool_calls)]).strip())
        if message.role != "tool"
        else ("tool", " | ".join(one.output for one in message.tool_results))
        for message in messages
    ]


def start_turn(folded: Conversation) -> History:
    """Start the turn, as the exchange does, and return the history."""
    history = copy.deepcopy(folded.history)
    history.apply(TurnStarted(message=folded.message))
    return history


def list_sources(conversation: Conversation, query: Query) -> list[str]:
    """List the names of the sources that an answer would cite."""
    return [citation["source_info"]["name"] for citation in cite_outcomes(conversation.outcomes, query)]
