"""Public import path for toolkit authors. Import everything that a toolkit needs from here."""

from goose_like.agent.slash_command import command
from goose_like.agent.toolkit import FollowUp, Requirements, RunningTask, Toolkit
from goose_like.agent.view import ExchangeView
from goose_like.core.events import Question
from goose_like.core.notifier import Notifier
from goose_like.core.tool import FinalResult, ImageResult, Tool, ToolError, TransientResult, tool
from goose_like.workspace.workspace import Workspace

__all__ = [
    "ExchangeView",
    "FinalResult",
    "FollowUp",
    "ImageResult",
    "Notifier",
    "Question",
    "Requirements",
    "RunningTask",
    "Tool",
    "ToolError",
    "Toolkit",
    "TransientResult",
    "Workspace",
    "command",
    "tool",
]
