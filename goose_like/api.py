"""The public import path of the Python API: agents in programs."""

from goose_like.config.profile import Limits
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.events import Answer, Event, Question
from goose_like.core.message import Message, Usage
from goose_like.core.tool import tool
from goose_like.launch.agent import Agent, RunResult, run

__all__ = [
    "Agent",
    "Answer",
    "Event",
    "GooseLikeError",
    "Limits",
    "Message",
    "Question",
    "RunResult",
    "Usage",
    "UsageError",
    "run",
    "tool",
]
