"""Run code together with the library, in a fresh process of the workspace."""

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from goose_like.core.errors import GooseLikeError
from goose_like.core.threads import run_in_thread
from goose_like.sdk.live_output import LiveOutput, ShowOutput
from goose_like.sessions.output_limit import LimitedOutput, append_notes
from goose_like.workspace.processes.process import Process, describe_exit
from goose_like.workspace.workspace import Workspace

MAX_OUTPUT_BYTES = 1 << 28
_STOP_GRACE_S = 2.0
_CANCEL_GRACE_S = 0.07  # the user waits for the prompt
_PROGRAM = "_program.py"


class CodeResult(NamedTuple):
    """The result of running code, as the model reads it."""

    text: str
    is_success: bool


async def run_code(
    code: str,
    library: Path,
    source: str,
    workspace: Workspace,
    output: LimitedOutput,
    show: ShowOutput,
    *,
    time_limit_s: float,
) -> CodeResult:
    """Run code that can import the library by its module name. Cancelling kills the process with all its children.

    The process gets a copy with the text `source`, since commands may not see the file `library`. `show` receives
    samples of the output while the code runs. Raise GooseLikeError if no process can be started, or the user refused.
    """
    folder = Path(await run_in_thread(tempfile.mkdtemp, prefix="boss-", dir=workspace.tmp))
    try:
        inside = workspace.path_in_sandbox(folder)
        _create_file(folder / _PROGRAM, code)
        (folder / "library").mkdir()
        _create_file(folder / "library" / library.name, source)
        imported_folders = [f"{inside}/library", str(library.parent), str(workspace.root)]
        process = await workspace.spawn(
            [sys.executable, f"{inside}/{_PROGRAM}"],
            env={
                "PYTHONPATH": os.pathsep.join(imported_folders),
                "PYTHONPYCACHEPREFIX": f"{inside}/none",
                "PYTHONHASHSEED": "0",
                "PYTHONUTF8": "1",
            },
            subject=f"Python:\n{code}",
        )
        exit_code, stop_reason = await _read_output(process, output, show, time_limit_s)
    finally:
        output.close()
        await run_in_thread(shutil.rmtree, folder, ignore_errors=True)
    end = stop_reason
    if exit_code and not end:
        end = describe_exit(exit_code)
    notes = await workspace.inspect_changes()
    if end:
        notes.append(end)
    text = output.format_for_model().replace(f"{inside}/", "")  # the same code gives the same text each time
    return CodeResult(append_notes(text, notes), is_success=not end)


async def _read_output(
    process: Process, output: LimitedOutput, show: ShowOutput, time_limit_s: float
) -> tuple[int, str]:
    """Return the exit code, and the reason if the process was stopped."""
    live = LiveOutput(show)
    try:
        async with asyncio.timeout(time_limit_s) as limit:
            while chunk := await process.read():
                output.write(chunk)
                live.write(chunk)
                if output.size_bytes > MAX_OUTPUT_BYTES:
                    await process.stop(_STOP_GRACE_S)
                    return await process.wait(), "stopped after printing more than 256 MiB; print less"
            return await process.wait(), ""
    except TimeoutError:
        if not limit.expired():
            raise
        await process.stop(_STOP_GRACE_S)
        return await process.wait(), f"stopped after the time limit of {time_limit_s:g} s; do less at once"
    except GooseLikeError as error:  # keep the output so far
        return -9, str(error)
    except asyncio.CancelledError:
        await asyncio.shield(process.stop(_CANCEL_GRACE_S))
        raise
    finally:
        live.close()


def _create_file(file: Path, text: str) -> None:
    # O_EXCL: a command may have put a file or a link there.
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as new:
        new.write(text.encode(errors="replace"))
