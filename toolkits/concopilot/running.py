"""Building and running a component by hand."""

from dataclasses import dataclass
from pathlib import Path

from goose_like.errors import GooseLikeError

from .coordinates import Coordinates
from .repository import Repositories


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which component, by its coordinates or by its config file, and with what.

    `roots` are folders to import from before all others; `arguments` go to the component's constructor as they are.
    """

    repositories: Repositories
    component: Coordinates | Path
    working_directory: Path = Path()
    is_setup_skipped: bool = False
    pip_parameters: tuple[str, ...] = ()
    roots: tuple[Path, ...] = ()
    arguments: tuple[str, ...] = ()


def build(wanted: Wanted) -> int:
    """Places its configuration in `.runtime`, installs what it needs, and constructs it; gives the exit code."""
    raise _not_there("build", wanted)


def run(wanted: Wanted) -> int:
    """Builds a copilot and lets it work; gives the exit code."""
    raise _not_there("run", wanted)


def _not_there(what: str, wanted: Wanted) -> GooseLikeError:
    return GooseLikeError(
        f"{wanted.component} can't be {what} here: there is no stage for components yet; use ConCopilot's own conpack"
    )
