"""The class of the toolkit `screen`, which takes screenshots with the first program that is installed."""

import os
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from goose_like.toolkit import ImageResult, ToolError, Toolkit, tool
from goose_like.workspace.programs import build_safe_path, find_program

_PROGRAMS = {
    "grim": ("WAYLAND_DISPLAY", ()),
    "gnome-screenshot": ("DISPLAY", ("-f",)),
    "scrot": ("DISPLAY", ()),
    "import": ("DISPLAY", ("-window", "root")),  # ImageMagick's
    "screencapture": (None, ("-x",)),  # macOS's; never tried
}
"""Programs, the environment variable that each needs, and its arguments before the file name."""

_DISPLAY_VARIABLES = ("XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS")  # hidden from other commands


class ScreenToolkit(Toolkit):
    """Screenshots for models that can see."""

    @override
    def prompt(self) -> str:
        return (
            "To see what is on the person's screen, call `take_screenshot` and say first what you look for. It shows "
            "all that is open: speak only of what matters to the task."
        )

    @tool(kind="read", title="Take a screenshot")
    async def take_screenshot(self) -> ImageResult:
        """Take a picture of the whole screen and look at it; the person may be asked first."""
        program, arguments = _find_program(self.workspace.folders)
        self.session.outputs.mkdir(parents=True, exist_ok=True)
        count = len(list(self.session.outputs.glob("screenshot-*.png")))
        file = self.session.outputs / f"screenshot-{count + 1}.png"
        process = await self.workspace.spawn(
            [program, *arguments, str(file)],
            access="full",  # a sandbox has no screen
            writes=False,
            env={
                "PATH": build_safe_path(*self.workspace.folders),
                **{name: os.environ[name] for name in _DISPLAY_VARIABLES if name in os.environ},
            },
            subject="a picture of your screen, for the model to see",
        )
        output = bytearray()
        if not await process.read_all(output.extend):
            await process.stop(0)
        if await process.wait() or not file.is_file():
            reason = output.decode(errors="replace").strip()
            raise ToolError(f"{program} took no picture: {reason or 'it gave no reason'}")
        self.notifier.log(f"took a picture of the screen: {file}")
        return ImageResult(file.read_bytes(), str(file))


def _find_program(folders: Sequence[Path]) -> tuple[str, tuple[str, ...]]:
    for program, (variable, arguments) in _PROGRAMS.items():
        if (variable is None or os.environ.get(variable)) and (path := find_program(program, *folders)):
            return path, arguments
    raise ToolError(
        "no picture of the screen can be taken here: there is no screen, or none of grim (Wayland), gnome-screenshot, "
        "scrot and import (X); ask the person for a picture or a description"
    )
