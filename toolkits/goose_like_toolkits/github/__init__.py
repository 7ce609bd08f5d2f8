"""GitHub: how to work with it by `gh` in the shell."""

from .toolkit import GitHubToolkit

__all__ = ["GitHubToolkit"]
