"""JiraToolkit: guidance for the command `jira`, and a look at what may be an issue's key."""

import re
from importlib.resources import files
from typing import ClassVar

from goose_like.toolkit import Toolkit, tool

# Atlassian's default: a project's key is two or more capitals, digits and underscores, and begins with a letter.
_KEY = re.compile(r"[A-Z][A-Z0-9_]+-[1-9][0-9]*")


class JiraToolkit(Toolkit):
    """Guidance for Jira by the command `jira`."""

    touches_machine: ClassVar[bool] = False

    def prompt(self) -> str:
        """How to use `jira` where nobody can answer its questions."""
        return files(__package__).joinpath("prompt.md").read_text(encoding="utf-8")

    @tool
    def is_jira_issue(self, text: str) -> bool:
        """Tell whether a text is the key of a Jira issue, such as ABC-123. Needs no network."""
        return bool(_KEY.fullmatch(text.strip()))
