"""ScreenToolkit: a picture of the person's screen, taken by whichever program for it is there."""

import os
import shutil

from goose_like.toolkit import Picture, ToolError, Toolkit, tool

_PROGRAMS = {
    "grim": ("WAYLAND_DISPLAY", ()),
    "gnome-screenshot": ("DISPLAY", ("-f",)),
    "scrot": ("DISPLAY", ()),
    "import": ("DISPLAY", ("-window", "root")),  # ImageMagick's
    "screencapture": (None, ("-x",)),  # macOS's; never tried
}
"""The variable that each needs, and what stands before the file in its command line."""

_DOORS = ("XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS")  # kept from commands, but these few programs need them


class ScreenToolkit(Toolkit):
    """Pictures of the screen, for models that can see."""

    def prompt(self) -> str:
        """When a picture helps, and what it shows."""
        return (
            "To see what is on the person's screen, call `take_screenshot` and say first what you look for. It shows "
            "all that is open: speak only of what matters to the task."
        )

    @tool(alone=True)
    async def take_screenshot(self) -> Picture:
        """Take a picture of the whole screen and look at it; the person may be asked first."""
        program, words = _program()
        self.session.outputs.mkdir(parents=True, exist_ok=True)
        taken = len(list(self.session.outputs.glob("screenshot-*.png")))
        file = self.session.outputs / f"screenshot-{taken + 1}.png"
        process = await self.workspace.spawn(
            [program, *words, str(file)],
            access="full",  # a sandbox has no screen
            writes=False,
            env={name: os.environ[name] for name in _DOORS if name in os.environ},
            subject="a picture of your screen, for the model to see",
        )
        said = b""
        while chunk := await process.read():
            said += chunk
        if await process.wait() or not file.is_file():
            raise ToolError(
                f"{program} took no picture: {said.decode(errors='replace').strip() or 'it did not say why'}"
            )
        self.notifier.log(f"took a picture of the screen: {file}")
        return Picture(file.read_bytes(), str(file))


def _program() -> tuple[str, tuple[str, ...]]:
    for program, (variable, words) in _PROGRAMS.items():
        if (variable is None or os.environ.get(variable)) and (path := shutil.which(program)):
            return path, words
    raise ToolError(
        "no picture of the screen can be taken here: there is no screen, or none of grim (Wayland), gnome-screenshot, "
        "scrot and import (X); ask the person for a picture or a description"
    )
