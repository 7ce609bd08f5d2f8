"""Turns whatever a toolkit logs into text; Rich is imported only when a Rich renderable comes."""

import shutil


def plain_text(renderable: object) -> str:
    """The renderable as text without styles, as wide as the terminal (80 columns where there is none)."""
    if isinstance(renderable, str):
        return renderable
    from rich.console import Console

    console = Console(no_color=True, width=shutil.get_terminal_size().columns, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get().rstrip("\n")


def without_markup(text: str) -> str:
    """The text without Rich's `[bold]...[/]`; as it is where that is not well-formed."""
    from rich.errors import MarkupError
    from rich.text import Text

    try:
        return Text.from_markup(text).plain
    except MarkupError:
        return text
