"""The class of the toolkit `jira`."""

import re
from importlib.resources import files
from typing import ClassVar

from typing_extensions import override

from goose_like.toolkit import Toolkit, tool

# Atlassian's default for project keys: two or more capitals, digits and underscores, starting with a letter.
_KEY = re.compile(r"[A-Z][A-Z0-9_]+-[1-9][0-9]*")


class JiraToolkit(Toolkit):
    """Guidance for Jira through the command `jira`, and a check of issue keys."""

    has_local_access: ClassVar[bool] = False

    @override
    def prompt(self) -> str:
        return files(__package__).joinpath("prompt.md").read_text(encoding="utf-8")

    @tool(read_only=True, kind="think", title="Look for a Jira issue in {text}")
    def is_jira_issue(self, text: str) -> bool:
        """Tell whether a text is the key of a Jira issue, such as ABC-123. Needs no network."""
        return bool(_KEY.fullmatch(text.strip()))
