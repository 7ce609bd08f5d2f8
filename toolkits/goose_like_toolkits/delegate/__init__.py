"""The toolkit `delegate`: tasks for subagents."""

from .toolkit import DelegateToolkit

__all__ = ["DelegateToolkit"]
