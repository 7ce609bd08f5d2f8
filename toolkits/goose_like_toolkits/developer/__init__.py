"""The developer toolkit: a shell, files, and a plan."""

from .toolkit import DeveloperToolkit

__all__ = ["DeveloperToolkit"]
