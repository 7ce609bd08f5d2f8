"""The toolkit `jira`: guidance for the command `jira`, and a check of issue keys."""

from .toolkit import JiraToolkit

__all__ = ["JiraToolkit"]
