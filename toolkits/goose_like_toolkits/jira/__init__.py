"""Jira: how to work with it by `jira` in the shell."""

from .toolkit import JiraToolkit

__all__ = ["JiraToolkit"]
