"""Repository context: what a project is, in summaries of its files."""

from .toolkit import RepoContextToolkit

__all__ = ["RepoContextToolkit"]
