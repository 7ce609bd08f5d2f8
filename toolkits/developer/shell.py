"""Shell: one command after another as if typed into one bash, though each runs in a bash of its own."""

import asyncio
import codecs
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Literal

from goose_like.output import Output
from goose_like.toolkit import ToolError, Workspace

MAX_TIMEOUT_S = 3600.0
MAX_OUTPUT_BYTES = 1 << 30
MAX_STATE_BYTES = 100_000  # each program is started with all of it, and Linux gives arguments and environment 2 MiB
MAX_ARGUMENT_BYTES = 120_000  # Linux takes 128 KiB in one argument (MAX_ARG_STRLEN, execve(2))
NOTES_BYTES = 1_000
STOP_GRACE_S = 2.0
SHOW_EVERY_S = 0.1
SHOW_BYTES = 4096

# Sourced by bash (as BASH_ENV) ahead of the command, so that its messages and line numbers are those of the command
# alone. `eval` keeps whatever can't be read back (bash prints some functions wrongly) from harming the command. A
# command that sets an EXIT trap of its own, or ends by `exec`, leaves the state as it was.
_PROLOGUE = """unset BASH_ENV
builtin cd -- {cwd} 2>/dev/null
builtin eval -- {exports} 2>/dev/null
[[ . -ef $PWD ]] || {{ builtin cd -- {root}; builtin echo "[the folder "{cwd}" is gone; now in $PWD]"; }}
trap '{{ builtin printf "%s\\0" "$PWD"; builtin export -p; builtin export -f; builtin printf "\\0"; }} 2>/dev/null >|{kept}' EXIT
"""

_REFUSALS = {
    "network": re.compile(r"Network is unreachable|Could not resolve host|[Nn]ame resolution|Name or service not known"),
    "writing": re.compile(r"Read-only file system"),
}
_ADVICE = {
    "network": 'the sandbox has no network; if the task needs it, call shell with access="network"',
    "writing": "the sandbox lets you write only in the workspace and in /tmp",
}


@dataclass(frozen=True, slots=True)
class State:
    """What lasts from one command to the next: the folder, and exported variables and functions as bash prints them."""

    cwd: str
    exports: str = ""


class Shell:
    """Runs commands in the workspace. `show` takes a sample of the output while it comes."""

    def __init__(self, workspace: Workspace, show: Callable[[str], None], cwd: str | None = None) -> None:
        self.state = State(cwd or str(workspace.root))
        self._workspace = workspace
        self._show = show
        self._numbers = count(1)

    async def run(self, command: str, timeout_s: float, access: Literal["workspace", "network"], output: Output) -> str:
        """What the model reads of the command: its output, and in brackets what else it must know.

        Cancelling kills the command and all that it started before it passes on.

        Raises:
            ToolError: a command or a time limit that makes no sense, one that was stopped, or was not allowed.
        """
        _check(command, timeout_s)
        before, number = self.state, next(self._numbers)
        private = self._workspace.private_folder
        prologue, kept, script = (private / f".shell-{number}.{kind}" for kind in ("prologue", "state", "sh"))
        argv = ["bash", "-c", command]
        try:
            if len(command.encode()) > MAX_ARGUMENT_BYTES:
                _write(script, command)
                argv = ["bash", self._workspace.inside(script)]
            _write(kept, "")
            _write(
                prologue,
                _PROLOGUE.format(
                    cwd=shlex.quote(before.cwd),
                    exports=shlex.quote(before.exports),
                    root=shlex.quote(str(self._workspace.root)),
                    kept=self._workspace.inside(kept),
                ),
            )
            env = {"BASH_ENV": self._workspace.inside(prologue)}
            process = await self._workspace.spawn(argv, env=env, access=access)
            code, stopped = await self._follow(process, timeout_s, output)
            notes = [*stopped, *self._remember(before, kept)]
        finally:
            for file in (prologue, kept, script):
                file.unlink(missing_ok=True)
            output.close()
        text = output.for_model()
        return ""
