"""Rich renderables and markup as plain text. Rich is imported late: few toolkits need it."""

import shutil

from typing_extensions import override

from goose_like.core.events import Logged
from goose_like.core.notifier import EventNotifier


class RichNotifier(EventNotifier):
    """A notifier that takes also Rich renderables in `log`."""

    @override
    def log(self, content: object) -> None:
        self.notify(Logged(text=render_plain_text(content)))


def render_plain_text(content: object) -> str:
    """Render a string or Rich renderable as text without styles, for a terminal (80 columns without one).

    Two columns are left for the indentation of log entries. Lines have no blanks at their end.
    """
    if isinstance(content, str):
        return content
    from rich.console import Console

    width = max(shutil.get_terminal_size().columns - 2, 20)
    console = Console(no_color=True, width=width, force_terminal=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(content)
    lines = capture.get().rstrip("\n").split("\n")
    return "\n".join(map(str.rstrip, lines))


def strip_markup(text: str) -> str:
    """Remove Rich markup such as `[bold]...[/]`. Text with malformed markup returns unchanged."""
    from rich.errors import MarkupError
    from rich.text import Text

    try:
        return Text.from_markup(text).plain
    except MarkupError:
        return text
