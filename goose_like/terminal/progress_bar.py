"""A progress bar for long work of known length, with lines below it."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text
from typing_extensions import override

from .escape import escape_controls

_STEPS = 20
"""Without a terminal, a line is printed at each of so many steps of the work."""


class _Bar(Progress):
    """The bar of Rich, with lines of text below it."""

    lines: Sequence[str] = ()

    @override
    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        for line in self.lines:
            yield Text(escape_controls(line), style="dim", overflow="ellipsis", no_wrap=True)


class ProgressBar:
    """A bar in a terminal, and a line now and then elsewhere. Use it in a `with` block."""

    def __init__(self, total: int, file: TextIO) -> None:
        console = Console(file=file, highlight=False, markup=False, emoji=False)
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        self._bar = _Bar(*columns, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=total)
        self._file = file
        self._total = total
        self._printed_step = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._bar.stop()

    def update(self, completed: int, facts: str, lines: Sequence[str]) -> None:
        """Show how much is completed, facts behind the bar, and lines below it."""
        self._bar.lines = lines
        self._bar.update(self._task, completed=completed, description=escape_controls(facts))
        if self._bar.disable:
            self._print_step(completed, facts)

    def _print_step(self, completed: int, facts: str) -> None:
        step = completed * _STEPS // self._total
        if step > self._printed_step:
            self._printed_step = step
            line = f"{completed:,} of {self._total:,} · {facts}"
            print(escape_controls(line), file=self._file, flush=True)
