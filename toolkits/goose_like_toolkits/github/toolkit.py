"""GitHubToolkit: guidance, no tools; the work is done with `gh` in the developer toolkit's shell."""

from importlib.resources import files
from typing import ClassVar

from goose_like.toolkit import Toolkit


class GitHubToolkit(Toolkit):
    """Guidance for GitHub by the command `gh`."""

    touches_machine: ClassVar[bool] = False

    def prompt(self) -> str:
        """How to use `gh` where nobody can answer its questions."""
        return files(__package__).joinpath("prompt.md").read_text(encoding="utf-8")
