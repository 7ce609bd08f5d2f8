"""The commands `toolkit ...`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from goose_like.cli.options import list_toolkit_names

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, show and create toolkits.")


@app.command("list", epilog="Example: goose-like toolkit list")
def list_() -> None:
    """List installed toolkits."""
    from .inspect import print_toolkits

    print_toolkits()


@app.command(epilog="Example: goose-like toolkit show developer")
def show(name: Annotated[str, typer.Argument(help="Toolkit.", autocompletion=list_toolkit_names)]) -> None:
    """Show the tools of a toolkit as the model sees them."""
    from goose_like.cli.launch import run_and_close

    from .inspect import print_toolkit

    raise typer.Exit(run_and_close(print_toolkit(name)))


@app.command(epilog="Example: goose-like toolkit new my-tools")
def new(
    name: Annotated[str, typer.Argument(help="Name of the toolkit in profiles.")],
    path: Annotated[str, typer.Option(help="Parent of the new folder.")] = ".",
) -> None:
    """Create a package with a new toolkit and a test that needs no model."""
    from .toolkit_new import write_toolkit

    folder = write_toolkit(name, Path(path))
    print(f"wrote {folder}; next: pip install -e {shlex.quote(f'{folder}[test]')}")
