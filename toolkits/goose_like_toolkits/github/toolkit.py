"""The class of the toolkit `github`, which has no tools: the model runs `gh` in the developer toolkit's shell."""

from importlib.resources import files
from typing import ClassVar

from typing_extensions import override

from goose_like.toolkit import Toolkit


class GitHubToolkit(Toolkit):
    """Guidance for GitHub through the command `gh`."""

    has_local_access: ClassVar[bool] = False

    @override
    def prompt(self) -> str:
        return files(__package__).joinpath("prompt.md").read_text(encoding="utf-8")
