"""The scripts of an input: they run in a sandbox of their own, before the model's session and after it."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goose_like.agent.verification import EXIT_CODE
from goose_like.config.profile import SandboxMode
from goose_like.core.errors import GooseLikeError
from goose_like.core.masking import mask_text
from goose_like.core.notifier import Notifier
from goose_like.workspace.workspace import Workspace

from .job import Outcome, Scripts

_LIMIT_S = 300.0
_MAX_OUTPUT_BYTES = 1_000_000
_MAX_REASON_CHARACTERS = 300


async def run_setup(scripts: Scripts, folder: Path, options: Mapping[str, Any]) -> None:
    """Make the files of a folder ready.

    Raises:
        GooseLikeError: the script failed, or took too long.
    """
    reason = await _run(scripts, scripts.setup, folder, options)
    if reason:
        raise GooseLikeError(f"the setup failed: {reason}")


async def check_work(scripts: Scripts, outcome: Outcome, folder: Path, options: Mapping[str, Any]) -> Outcome:
    """Return the outcome as the check decides it. The script finds the answer in the file that ANSWER names."""
    reason = await _run(scripts, scripts.check, folder, options, outcome.result)
    if not reason:
        return outcome.model_copy(update={"status": "done", "exit_code": 0, "reason": ""})
    reasons = [f"the check failed: {reason}"]
    if outcome.reason:
        reasons.insert(0, outcome.reason)
    update = {"status": "failed", "exit_code": outcome.exit_code or EXIT_CODE, "reason": "; ".join(reasons)}
    return outcome.model_copy(update=update)


async def _run(
    scripts: Scripts, command: Sequence[str], folder: Path, options: Mapping[str, Any], answer: str = ""
) -> str:
    """Run a command, and return why it failed: the last line that it printed. The text is empty if it did not fail."""
    mode: SandboxMode = "full" if options.get("sandbox") == "full" else "workspace"
    programs = str(Path(sys.executable).parent)
    path = os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])
    variables = {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **scripts.environment}
    output = bytearray()
    async with Workspace(folder, mode=mode, approval="unattended", notifier=Notifier()) as workspace:
        workspace.open_folders([Path(scripts.folder)])
        answer_file = workspace.tmp / "answer.txt"
        answer_file.write_text(answer, encoding="utf-8")
        variables["ANSWER"] = workspace.path_in_sandbox(answer_file)
        await workspace.prepare_sandbox()
        process = await workspace.spawn(command, env=variables, is_own=True)
        try:
            async with asyncio.timeout(_LIMIT_S):
                if not await process.read_all(output.extend, _MAX_OUTPUT_BYTES):
                    return f"it printed more than {_MAX_OUTPUT_BYTES:,} bytes"
                code = await process.wait()
        except TimeoutError:
            return f"it took longer than {_LIMIT_S:g} s"
        finally:
            await asyncio.shield(process.stop(0))
    if code == 0:
        return ""
    lines = output.decode(errors="replace").strip().splitlines()
    last = lines[-1] if lines else f"exit code {code}"
    return mask_text(last[:_MAX_REASON_CHARACTERS])
