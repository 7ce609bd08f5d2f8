"""Images from the system clipboard, through an installed clipboard program."""

import asyncio
import os

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import MAX_IMAGE_BYTES, detect_media_type
from goose_like.workspace.processes.process import Process
from goose_like.workspace.programs import build_safe_path, find_program
from goose_like.workspace.workspace import Workspace

LIMIT_S = 2.0

_PROGRAMS = {
    "wl-paste": ("WAYLAND_DISPLAY", "wl-paste --type image/png"),
    "xclip": ("DISPLAY", "xclip -selection clipboard -t image/png -o"),
    # For macOS and WSL; not tested.
    "pngpaste": (None, "pngpaste -"),
    "osascript": (None, "osascript -e 'the clipboard as «class PNGf»' | sed 's/.*PNGf//; s/[^0-9A-F]//g' | xxd -r -p"),
    "powershell.exe": (
        None,
        "powershell.exe -NoProfile -STA -Command 'Add-Type -AssemblyName System.Windows.Forms, System.Drawing; "
        "$image = [Windows.Forms.Clipboard]::GetImage(); $bytes = New-Object IO.MemoryStream; "
        "$image.Save($bytes, [Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($bytes.ToArray())'"
        " | base64 -di",
    ),
}
"""Programs with the variable that each needs and the command that writes the image to its output."""

_VARIABLES = ("XAUTHORITY",)
"""Variables that these programs need, and that are hidden from other commands."""


async def read_clipboard_image(workspace: Workspace) -> bytes:
    """Return the bytes of the image. The workspace runs the program with the person's own rights."""
    program, line = _find_program(workspace)
    variables = {"PATH": build_safe_path(*workspace.folders)}
    for name in _VARIABLES:
        if name in os.environ:
            variables[name] = os.environ[name]
    process = await workspace.spawn(
        ["sh", "-c", f"exec 2>/dev/null; {line}"],
        access="full",
        writes=False,
        env=variables,
        is_own=True,
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            data = await _read_image(process)
    except TimeoutError as error:
        raise GooseLikeError(f"{program} did not return the clipboard within {LIMIT_S:g} s; try again") from error
    finally:
        await asyncio.shield(process.stop(0))
    if len(data) > MAX_IMAGE_BYTES:
        raise GooseLikeError(f"the image in the clipboard has more than {MAX_IMAGE_BYTES:,} bytes; copy a smaller part")
    if detect_media_type(data) is None:
        raise GooseLikeError("there is no image in the clipboard; copy one, or attach a file with @PATH")
    return data


async def _read_image(process: Process) -> bytes:
    """Return the output of a process, or the beginning of one that is too long."""
    data = b""
    while len(data) <= MAX_IMAGE_BYTES:
        chunk = await process.read()
        if not chunk:
            break
        data += chunk
    return data


def _find_program(workspace: Workspace) -> tuple[str, str]:
    """Return the first program that is installed and has what it needs, and its command."""
    for program, (variable, line) in _PROGRAMS.items():
        if variable and not os.environ.get(variable):
            continue
        if find_program(program, *workspace.folders):
            return program, line
    raise GooseLikeError(
        "cannot paste an image: no clipboard, or neither wl-paste (Wayland) nor xclip (X) is installed; "
        "attach a file with @PATH"
    )
