"""Files in the sandbox's own /tmp that a command or a cell names: these vanish with the session, unnoticed."""

from collections.abc import Sequence

from goose_like.core.pattern import compile_later
from goose_like.workspace.workspace import Workspace

IN_PRIVATE_TMP = "in the sandbox's own /tmp, which is removed when the session ends"

_TMP_PATH = compile_later(r"(?<![\w.-])/tmp/[\w./-]*[\w-]")


def find_private_files(workspace: Workspace, text: str) -> list[str]:
    """Find the existing files below the sandbox's own /tmp that a text names."""
    found = []
    for path in dict.fromkeys(_TMP_PATH.findall(text)):
        if workspace.is_private(path) and workspace.resolve(path).is_file():
            found.append(path)
    return found


def describe_private_files(paths: Sequence[str]) -> list[str]:
    """Return a note about such files, or nothing if there are none."""
    if not paths:
        return []
    what = f"the files {', '.join(paths)} are"
    if len(paths) == 1:
        what = f"the file {paths[0]} is"
    return [f"{what} {IN_PRIVATE_TMP}"]
