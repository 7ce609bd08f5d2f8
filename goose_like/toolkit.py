"""Public import path for toolkit authors. Import everything that a toolkit needs from here."""

from goose_like.agent.hook_values import (
    AfterCall,
    BeforeCall,
    CallVerdict,
    CompactionEnd,
    CompactionStart,
    Notification,
    PermissionAsked,
    PermissionDenied,
    PermissionVerdict,
    PromptSubmitted,
    PromptVerdict,
    ResultChange,
    SessionStart,
    SubagentStart,
    SubagentStop,
)
from goose_like.agent.slash_command import command
from goose_like.agent.toolkit import FollowUp, Requirements, Resource, RunningTask, Toolkit
from goose_like.agent.view import ExchangeView
from goose_like.core.events import Question
from goose_like.core.example import Example, ExampleCall
from goose_like.core.notifier import Notifier
from goose_like.core.tool import FinalResult, ImageResult, InnerCall, Tool, ToolError, TransientResult, tool
from goose_like.workspace.workspace import Workspace

__all__ = [
    "AfterCall",
    "BeforeCall",
    "CallVerdict",
    "CompactionEnd",
    "CompactionStart",
    "Example",
    "ExampleCall",
    "ExchangeView",
    "FinalResult",
    "FollowUp",
    "ImageResult",
    "InnerCall",
    "Notification",
    "Notifier",
    "PermissionAsked",
    "PermissionDenied",
    "PermissionVerdict",
    "PromptSubmitted",
    "PromptVerdict",
    "Question",
    "Requirements",
    "Resource",
    "ResultChange",
    "RunningTask",
    "SessionStart",
    "SubagentStart",
    "SubagentStop",
    "Tool",
    "ToolError",
    "Toolkit",
    "TransientResult",
    "Workspace",
    "command",
    "tool",
]
