"""Code that is run with the library: in a fresh process of the workspace, which imports it as it is now."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel, Utf8Text
from goose_like.core.output_limit import LimitedOutput, LiveOutput, append_notes
from goose_like.toolkit import ToolError, Workspace
from goose_like.workspace.workspace import Process, describe_exit

MAX_OUTPUT_BYTES = 1 << 28
_STOP_GRACE_S = 2.0
_CANCEL_GRACE_S = 0.07  # a person waits for the prompt
_PROGRAM = "_program.py"


class Ran(FrozenModel):
    """What came of it: what a model reads of the output, the exit code (negative: a signal), and why it was stopped."""

    output: Utf8Text
    exit_code: int
    why_stopped: Utf8Text = ""
    notes: tuple[Utf8Text, ...] = ()

    @property
    def is_well(self) -> bool:
        return self.exit_code == 0 and not self.why_stopped

    @property
    def told(self) -> str:
        """All of it, as a model reads it."""
        how = [self.why_stopped] if self.why_stopped else [describe_exit(self.exit_code)] if self.exit_code else []
        return append_notes(self.output, [*self.notes, *how])


async def run(
    code: str,
    library: Path | None,
    workspace: Workspace,
    output: LimitedOutput,
    show: Callable[[str], None],
    *,
    time_limit_s: float,
    source: str | None = None,
) -> Ran:
    """Runs code that imports the library by its module's name. Cancelling kills it with all that it started.

    Args:
        library: its file.
        show: takes a sample of the output while it comes.
        source: the library's text, where commands can't see its file: then they are given a copy.

    Raises:
        ToolError: the code is no text.
        GooseLikeError: no process can be started, or was not allowed.
    """
    try:
        data = code.encode()
    except UnicodeEncodeError as error:
        raise ToolError(f"the code holds half a character ({code[error.start]!a}); send it whole") from error
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="boss-", dir=workspace.tmp))
    try:
        inside, folders = workspace.path_in_sandbox(folder), list[str]()
        _create(folder / _PROGRAM, data)
        if library is not None and source is not None:
            (folder / "library").mkdir()
            _create(folder / "library" / library.name, source.encode(errors="replace"))
            folders.append(f"{inside}/library")
        elif library is not None:
            folders.append(str(library.parent))
        process = await workspace.spawn(
            [sys.executable, f"{inside}/{_PROGRAM}"],
            env=_variables([*folders, str(workspace.root)], f"{inside}/none"),
            subject=f"Python:\n{code}",
        )
        exit_code, why_stopped = await _followed(process, output, show, time_limit_s)
    finally:
        output.close()
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    notes = tuple(await workspace.inspect_changes())
    text = output.format_for_model().replace(f"{inside}/", "")  # what the same code says is the same each time
    return Ran(output=text, exit_code=exit_code, why_stopped=why_stopped, notes=notes)


async def _followed(
    process: Process, output: LimitedOutput, show: Callable[[str], None], time_limit_s: float
) -> tuple[int, str]:
    """The exit code, and why it was stopped if it was."""
    live = LiveOutput(show)
    try:
        async with asyncio.timeout(time_limit_s) as limit:
            while chunk := await process.read():
                output.write(chunk)
                live.write(chunk)
                if output.size_bytes > MAX_OUTPUT_BYTES:
                    await process.stop(_STOP_GRACE_S)
                    return await process.wait(), "stopped, since it printed more than 256 MiB; print less"
            return await process.wait(), ""
    except TimeoutError:
        if not limit.expired():
            raise
        await process.stop(_STOP_GRACE_S)
        return await process.wait(), f"stopped after the time limit of {time_limit_s:g} s; do less at once"
    except GooseLikeError as error:  # what it printed until then is worth keeping
        return -9, str(error)
    except asyncio.CancelledError:
        await asyncio.shield(process.stop(_CANCEL_GRACE_S))
        raise
    finally:
        live.close()


def _variables(folders: list[str], nowhere: str) -> dict[str, str]:
    """Bytecode has a cache of its own: none of an older library is found, none stays. Sets keep their order."""
    return {
        "PYTHONPATH": os.pathsep.join(folders),
        "PYTHONPYCACHEPREFIX": nowhere,
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
    }


def _create(file: Path, data: bytes) -> None:
    """Opens no existing file, nor a link: a command could have put it there."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as new:
        new.write(data)
