"""The toolkit `github`: guidance for the command `gh`."""

from .toolkit import GitHubToolkit

__all__ = ["GitHubToolkit"]
