"""The toolkit `repo_context`: a map of a project's definitions and summaries of its files."""

from .toolkit import RepoContextToolkit

__all__ = ["RepoContextToolkit"]
