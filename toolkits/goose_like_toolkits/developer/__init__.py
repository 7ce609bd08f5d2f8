"""The developer toolkit: shell, background processes, files, web pages and the plan."""

from .toolkit import DeveloperToolkit

__all__ = ["DeveloperToolkit"]
