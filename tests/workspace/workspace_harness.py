"""Workspaces for tests, and commands in them."""

import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.workspace.sandbox import bubblewrap
from goose_like.workspace.workspace import Workspace

needs_sandbox = pytest.mark.skipif(
    bubblewrap.find_sandbox_problem() is not None, reason=str(bubblewrap.find_sandbox_problem())
)


ONCE = Answer(choice="allow", by="person")


SESSION = Answer(choice="allow_prefix", by="person")


GIT = "git -c user.name=n -c user.email=e"


def create_confined(root: Path, answer: Answer = Answer()) -> tuple[Workspace, Recorder]:
    recorder = Recorder(answer)
    return Workspace(root, mode="workspace", approval="auto", notifier=recorder), recorder


def find_place() -> str:
    """Find a folder for homes outside /tmp, which the sandbox replaces."""
    for folder in (sys.prefix, "/var/lib", "/var/cache"):
        if not folder.startswith(("/tmp/", "/var/tmp/")) and os.access(folder, os.W_OK):
            return folder
    return pytest.skip("no folder outside /tmp is writable")


async def run_script(workspace: Workspace, script: str, **options: object) -> tuple[int, str]:
    process = await workspace.spawn(["bash", "-c", script], **options)  # type: ignore[arg-type]
    output = b""
    while chunk := await process.read():
        output += chunk
    return await process.wait(), output.decode()


def write_wheel(folder: Path, name: str, version: str, requires: Sequence[str] = ()) -> None:
    """Write a wheel with one module, which has a VERSION, and the extras `herd` and `wild`."""
    about = f"{name}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    metadata += [f"Requires-Dist: {line}" for line in requires]
    metadata += [f"Provides-Extra: {extra}" for extra in ("herd", "wild")]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        archive.writestr(f"{about}/METADATA", "\n".join(metadata) + "\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", f"{name}.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
