"""Tables on stdout: for a terminal as wide as it is, for a program as wide as they are."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

_ENDLESS = 100_000


def table(*columns: str) -> Table:
    """Rows below headings. What is too long for its column goes on in the next row: a cut path is of no use."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], otherwise: str) -> None:
    """The rows below their headings; where there are none, what to say instead."""
    shown = table(*columns)
    for row in rows:
        shown.add_row(*row)
    print_fitted(shown if rows else otherwise)


def print_fitted(renderable: object) -> None:
    """Fitted to the terminal; without one as wide as it is, since its reader is a program."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _ENDLESS
    with console.capture() as printed:
        console.print(renderable)
    print("\n".join(line.rstrip() for line in printed.get().splitlines()))
