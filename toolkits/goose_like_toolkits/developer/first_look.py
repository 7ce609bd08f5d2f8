"""Files that a small model forgets to read: those that its task names."""

from collections.abc import Iterator

from goose_like.core.pattern import compile_later
from goose_like.toolkit import Workspace

from .seen_files import show_name

MAX_BYTES = 1_000_000

_LIST = 'cd "$1" && timeout 2 rg --no-config --files --sort path'
_WORD = compile_later(r"[\w./-]+")


class FirstLook:
    """The files of a workspace at the start of a turn, and its task."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._names: list[str] = []
        self._task = ""

    async def start_turn(self, task: str) -> None:
        """Note the task, and list the files that are neither hidden nor ignored."""
        self._task = task
        root = str(self._workspace.root)
        _, output = await self._workspace.run_internal(["bash", "-c", _LIST, "bash", root], MAX_BYTES)
        names = output.decode(errors="surrogateescape").splitlines()
        self._names = list(map(show_name, names))

    def list_named(self) -> Iterator[str]:
        """List the files that the task names, by their path or name."""
        words = {word.rstrip(".") for word in _WORD.findall(self._task)}
        for name in self._names:
            if name in words or name.rpartition("/")[2] in words:
                yield name
