"""The delegate: a task of its own for an exchange of its own."""

from .toolkit import DelegateToolkit

__all__ = ["DelegateToolkit"]
