"""Tables on standard output: as wide as the terminal, or without line breaks for programs."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

_UNLIMITED_COLUMNS = 100_000


def make_table(*columns: str) -> Table:
    """Return an empty table with these headings; long cells wrap, so that no path is cut."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], otherwise: str) -> None:
    """Print rows below their headings, or the text `otherwise` if there are none."""
    table = make_table(*columns)
    for row in rows:
        table.add_row(*row)
    print_fitted(table if rows else otherwise)


def print_fitted(renderable: object) -> None:
    """Print a renderable as wide as the terminal, or as wide as needed if a program reads it."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _UNLIMITED_COLUMNS
    with console.capture() as capture:
        console.print(renderable)
    lines = capture.get().splitlines()
    print("\n".join(map(str.rstrip, lines)))
