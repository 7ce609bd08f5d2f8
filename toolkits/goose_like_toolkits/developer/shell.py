"""Shell: one command after another as if typed into one bash, though each runs in a bash of its own."""

import asyncio
import os
import re
import secrets
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.output_limit import Live, Output, told
from goose_like.toolkit import ToolError, Workspace
from goose_like.workspace.workspace import Access, Process, ending

from .silence import Watch

MAX_TIMEOUT_S = 3600.0
MAX_OUTPUT_BYTES = 1 << 30
MAX_WORDS = 200
MAX_STATE_BYTES = 100_000  # every program is started with these variables, and Linux has an end to that (2 MiB)
MAX_ARGUMENT_BYTES = 120_000  # Linux takes 128 KiB in one argument: MAX_ARG_STRLEN in execve(2)
STOP_GRACE_S = 2.0
CANCEL_GRACE_S = 0.07  # a person waits for the prompt

# bash reads this (as BASH_ENV) ahead of the command, so that messages and line numbers are the command's own.
# `eval` contains what bash printed and can't read back. The trap changes neither exit code nor output, whatever
# options and functions the command has set; a command with an EXIT trap of its own, or `exec`, goes without.
_PROLOGUE = r"""unset BASH_ENV
builtin cd -- {cwd} 2>/dev/null
builtin eval -- {exports} 2>/dev/null
[[ . -ef {cwd} ]] && PWD={cwd} || {{ builtin cd -- {root}; builtin echo "["{cwd}" is gone; this ran in $PWD]"; }}
trap '{{ builtin printf "%s\0" "$PWD"; builtin jobs -rp; builtin printf "\0"; builtin export -p; builtin export -f
builtin printf "\0"; }} 2>/dev/null >|{end}' EXIT
"""
_LASTING = re.compile(r"\b(cd|pushd|popd|export|declare|source|activate)\b")

_NO_NETWORK = re.compile("Network is unreachable|Could not resolve host|[Nn]ame resolution|Name or service not known")
_READ_ONLY = re.compile("Read-only file system|Device or resource busy")


Keep = Callable[[str, Process, Output, ExitStack], str]
"""Takes over a command that goes on (what is to be closed at its end comes with it); gives the name it goes by."""


@dataclass(frozen=True, slots=True)
class State:
    """What lasts from command to command: the folder, and exports as bash prints them. `jobs` are process ids."""

    cwd: str
    exports: str = ""
    jobs: tuple[str, ...] = ()


class Shell:
    """Runs commands in the workspace. `show` takes a sample of the output while it comes, `watch` minds its absence."""

    def __init__(self, workspace: Workspace, show: Callable[[str], None], watch: Watch, cwd: str | None = None) -> None:
        self.state = State(cwd or str(workspace.root))
        self._workspace = workspace
        self._show = show
        self._watch = watch

    async def start(
        self, command: str, access: Access, held: ExitStack, stdin: int | None = None
    ) -> tuple[Process, Path]:
        """A command with the shell's folder and variables, and the file in which it leaves its own at its end.

        `held` removes that file and others; close it when the command has ended.

        Raises:
            ToolError: a command that makes no sense.
            GooseLikeError: it can't be started or was not allowed.
        """
        size_bytes = _checked(command)
        start, end, script = held.enter_context(_new_files(self._workspace.tmp))
        _create(start, _prologue(self.state, self._workspace.root, self._workspace.inside(end)))
        argv = ["bash", "-c", command]
        if size_bytes > MAX_ARGUMENT_BYTES:
            _create(script, command)
            argv = ["bash", self._workspace.inside(script)]
        env = {"BASH_ENV": self._workspace.inside(start)}
        return await self._workspace.spawn(argv, env=env, access=access, stdin=stdin, subject=command), end

    async def run(
        self, command: str, timeout_s: float, access: Access, output: Output, keep: Keep | None = None
    ) -> str:
        """What the model reads of the command: its output, and in brackets what else it must know.

        At its time limit, or when it seems stuck, the command is stopped or, with `keep`, handed over to go on.
        Cancelling kills it and all that it started before it passes on.

        Raises:
            ToolError: a command or a time limit that makes no sense, or a command that had to be stopped.
            GooseLikeError: a command that can't be started or was not allowed.
        """
        if not 0 < timeout_s <= MAX_TIMEOUT_S:
            raise ToolError(f"timeout_s is in seconds, more than 0 and at most {MAX_TIMEOUT_S:g}")
        before = self.state
        full = _full_files(command, Path(before.cwd))
        with ExitStack() as held:
            held.callback(output.close)
            process, end = await self.start(command, access, held)
            code, why_stopped = await self._followed(command, process, timeout_s, output, stops=keep is None)
            if keep and code is None:
                name = keep(command, process, output, held.pop_all())
                text = output.take()
                why_not_ended = (
                    f"{why_stopped}: goes on as process {name}, without lasting cd or export; "
                    f"view_process_output shows what is new, cancel_process ends it"
                )
                return told(text, [*await self._workspace.inspect_changes(), why_not_ended])
            state = self._read(end)
            if state and why_stopped:
                state = replace(state, jobs=())  # they were stopped, too
        text = output.for_model()
        notes = [
            *([ending(code)] if code else []),
            *(self._advice(text, access) if code or why_stopped else []),
            *self._remembered(before, state, command),
            *_emptied(full),
            *await self._workspace.inspect_changes(),
            *([why_stopped] if why_stopped else []),
        ]
        answer = told(text, notes)
        if why_stopped:
            raise ToolError(answer)
        return answer

    async def _followed(
        self, command: str, process: Process, timeout_s: float, output: Output, *, stops: bool
    ) -> tuple[int | None, str]:
        """The exit code, and why the command was stopped if it was; None where it was not and is to go on, and why."""
        live = Live(self._show)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                with self._watch.over(command, output, limit) as silence:
                    while chunk := await process.read():
                        silence.broken()
                        output.write(chunk)
                        live.take(chunk)
                        if output.size_bytes > MAX_OUTPUT_BYTES:
                            await process.stop(STOP_GRACE_S)
                            return 0, "stopped, since it printed more than 1 GiB; print less, e.g. with `| tail`"
                    return await process.wait(), ""
        except TimeoutError:
            if not limit.expired():
                raise
            if not stops:
                return None, silence.verdict or f"not ended after {timeout_s:g} s"
            await process.stop(STOP_GRACE_S)
            if silence.verdict:
                return (
                    0,
                    f"stopped: it {silence.verdict}; give what it waits for by options or a pipe, or do it otherwise",
                )
            return 0, (
                f"stopped after the time limit of {timeout_s:g} s; do less at once, give a larger timeout_s "
                f"(at most {MAX_TIMEOUT_S:g}), or run it as `... > log 2>&1 &` and look into the log"
            )
        except GooseLikeError as error:  # what it printed until then is worth keeping
            return 0, str(error)
        except asyncio.CancelledError:
            await asyncio.shield(process.stop(CANCEL_GRACE_S))
            raise
        finally:
            live.close()

    def _read(self, end: Path) -> State | None:
        """What the command left behind, if it is whole. By the workspace, as it may have left a link to a secret."""
        with suppress(OSError, GooseLikeError, ValueError):
            data = self._workspace.read_bytes(end, MAX_STATE_BYTES).decode(errors="surrogateescape")
            cwd, jobs, exports, _ = data.split("\0")
            return State(cwd, exports, tuple(jobs.split()))
        return None

    def _remembered(self, before: State, after: State | None, command: str) -> Iterator[str]:
        """Takes over what the command changed: of two side by side one may have gone elsewhere and the other not.

        Exports are one text, so of these the last to finish counts.
        """
        if after is None:
            if _LASTING.search(command):
                yield "cd and export did not last: exec, an EXIT trap, a kill or 100 kB of variables prevent it"
            return
        if after.exports != before.exports:
            self.state = replace(self.state, exports=after.exports)
        if after.cwd != before.cwd:
            self.state = replace(self.state, cwd=after.cwd)
            yield f"now in {after.cwd}"
        if after.jobs:
            yield f"in the background, process {', '.join(after.jobs)} goes on unseen until you kill it"

    def _advice(self, text: str, access: Access) -> Iterator[str]:
        if self._workspace.mode == "full":
            return
        if access == "workspace" and self._workspace.may_ask_for_network and _NO_NETWORK.search(text):
            yield 'the sandbox has no network; if the task needs it, call shell with access="network"'
        if not _READ_ONLY.search(text):
            return
        if self._workspace.mode == "read-only":
            yield "this session can change nothing but /tmp; say what you would change"
        else:
            yield (
                "the sandbox lets commands write only in /tmp and the workspace (.git/config and hooks aside); "
                "do it there or tell the person"
            )


def _full_files(command: str, here: Path) -> list[tuple[str, Path]]:
    """The files that a command that writes to one names, and that hold something."""
    if ">" not in command:
        return []
    named = {word.strip("\"'`;&|<>()"): None for word in command.split()[:MAX_WORDS]}
    return [(word, here / word) for word in named if word and _size_bytes(here / word) > 0]


def _emptied(full: list[tuple[str, Path]]) -> Iterator[str]:
    """What weak models overlook: `sort x > x` ends well and says nothing."""
    for word, path in full:
        if _size_bytes(path) == 0:
            yield f"{word} is empty now: `>` emptied it before it was read; write to another file, then mv"


def _size_bytes(path: Path) -> int:
    with suppress(OSError, ValueError):
        return path.stat().st_size if path.is_file() else -1
    return -1


def _checked(command: str) -> int:
    """The command's length in bytes.

    Raises:
        ToolError: it can't be run.
    """
    if not command.strip():
        raise ToolError("the command is empty")
    if "\0" in command:
        raise ToolError(r"a command can't hold a NUL byte; write it as \0, e.g. with printf")
    try:
        return len(command.encode())
    except UnicodeEncodeError as error:
        raise ToolError(f"the command holds half a character ({command[error.start]!a}); send it whole") from error


def _prologue(state: State, root: Path, end: str) -> str:
    quoted = {"cwd": state.cwd, "exports": state.exports, "root": str(root), "end": end}
    return _PROLOGUE.format(**{name: shlex.quote(text) for name, text in quoted.items()})


@contextmanager
def _new_files(folder: Path) -> Iterator[tuple[Path, Path, Path]]:
    """Names for three files that are gone afterwards: they hold variables, which are nobody else's business."""
    name = f".shell-{secrets.token_hex(8)}"
    files = (folder / f"{name}-start", folder / f"{name}-end", folder / f"{name}-script")
    try:
        yield files
    finally:
        for file in files:
            file.unlink(missing_ok=True)


def _create(file: Path, text: str) -> None:
    """Opens no existing file, nor a link: a command could have put it there."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        new.write(text.encode(errors="surrogateescape"))
