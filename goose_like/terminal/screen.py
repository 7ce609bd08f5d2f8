"""The interface of a front-end that draws on a terminal."""

from goose_like.core.notifier import Notifier

from .renderer import Renderer


class Screen(Notifier):
    """A notifier that draws events with a renderer."""

    renderer: Renderer

    def pause(self) -> None:
        """Remove what moves, such as a spinner, so that something else can use the terminal."""
