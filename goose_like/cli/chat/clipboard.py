"""The image in the system's clipboard, by whichever program for it is there."""

import asyncio
import os
import shutil

from goose_like.core.errors import GooseLikeError
from goose_like.core.images import LIMIT_BYTES, media_type
from goose_like.workspace.workspace import Process, Workspace

LIMIT_S = 2.0

_PROGRAMS = {
    "wl-paste": ("WAYLAND_DISPLAY", "wl-paste --type image/png"),
    "xclip": ("DISPLAY", "xclip -selection clipboard -t image/png -o"),
    # macOS's and WSL's; never tried
    "pngpaste": (None, "pngpaste -"),
    "osascript": (
        None,
        "osascript -e 'the clipboard as «class PNGf»' | sed 's/.*PNGf//; s/[^0-9A-F]//g' | xxd -r -p",
    ),
    "powershell.exe": (
        None,
        "powershell.exe -NoProfile -STA -Command 'Add-Type -AssemblyName System.Windows.Forms, System.Drawing; "
        "$image = [Windows.Forms.Clipboard]::GetImage(); $bytes = New-Object IO.MemoryStream; "
        "$image.Save($bytes, [Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($bytes.ToArray())'"
        " | base64 -di",
    ),
}
"""The variable that each needs, and the line that writes the image to its output."""

_DOORS = ("XAUTHORITY",)  # kept from commands, but these few programs need it


async def clipboard_image(workspace: Workspace) -> bytes:
    """The bytes of the image; the workspace starts the program, with the person's own rights.

    Raises:
        GooseLikeError: no program or no image is there, it is too large, or the program takes more than two seconds.
    """
    program, line = _program()
    process = await workspace.spawn(
        ["sh", "-c", f"exec 2>/dev/null; {line}"],
        access="full",
        writes=False,
        env={name: os.environ[name] for name in _DOORS if name in os.environ},
        is_own=True,
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            data = await _read(process)
    except TimeoutError as error:
        raise GooseLikeError(f"{program} did not give the clipboard within {LIMIT_S:g} s; try again") from error
    finally:
        await asyncio.shield(process.stop(0))
    if len(data) > LIMIT_BYTES:
        raise GooseLikeError(f"the image in the clipboard has more than {LIMIT_BYTES:,} bytes; copy a smaller part")
    if media_type(data) is None:
        raise GooseLikeError("there is no image in the clipboard; copy one, or name a file")
    return data


async def _read(process: Process) -> bytes:
    """All that it writes, or enough to know that it is too much."""
    data = bytearray()
    while len(data) <= LIMIT_BYTES and (chunk := await process.read()):
        data += chunk
    return bytes(data)


def _program() -> tuple[str, str]:
    for program, (variable, line) in _PROGRAMS.items():
        if (variable is None or os.environ.get(variable)) and shutil.which(program):
            return program, line
    raise GooseLikeError(
        "no image can be taken from a clipboard here: there is none, or neither wl-paste (Wayland) nor xclip (X); "
        "name a file instead"
    )
