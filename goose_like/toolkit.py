"""Public import path for toolkit authors. Import everything that a toolkit needs from here."""

from goose_like.agent.slash_command import command
from goose_like.agent.toolkit import Requirements, Toolkit
from goose_like.agent.view import ExchangeView
from goose_like.core.notifier import Notifier
from goose_like.core.tool import Final, Passing, Picture, Tool, ToolError, tool
from goose_like.workspace.workspace import Workspace

__all__ = [
    "ExchangeView",
    "Final",
    "Notifier",
    "Passing",
    "Picture",
    "Requirements",
    "Tool",
    "ToolError",
    "Toolkit",
    "Workspace",
    "command",
    "tool",
]
