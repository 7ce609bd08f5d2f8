"""What git ignores below a folder, by git's own word."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from goose_like.core.errors import GooseLikeError

from .git import root_of

PATIENCE_S = 5.0

Run = Callable[[list[str]], Awaitable[tuple[int, bytes]]]
"""Runs a short command of ours; gives its exit code and output."""

# Errors would come in one stream with the names.
_GIT = ("sh", "-c", 'exec "$@" 2>/dev/null', "sh", "git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C")
_LIST = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")


async def ignored(folder: Path, run: Run) -> frozenset[str]:
    """The paths of ignored files, and of folders with nothing else in them.

    None where there is no repository, or no git, or the folder is ignored itself, or git takes longer than 5 s.
    """
    if not (root_of(folder) / ".git").exists():
        return frozenset()
    with suppress(GooseLikeError, TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            code, output = await run([*_GIT, str(folder), *_LIST])
        if code == 0:
            names = (name.rstrip("/") for name in os.fsdecode(output).split("\0") if name)
            return frozenset(os.path.join(folder, name) for name in names)
    return frozenset()
