"""The commands `trust ...`."""

from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Manage permanent permissions: trusted projects and answers."
)


@app.command(epilog="Example: goose-like trust add .")
def add(folder: Annotated[str, typer.Argument(help="A folder of the project.")] = ".") -> None:
    """Trust a project's profiles and commands as they are now. Changed files are asked about again."""
    from goose_like.cli.project_trust import add_trust

    add_trust(folder)


@app.command("list", epilog="Example: goose-like trust list")
def list_() -> None:
    """List permanent permissions by folder."""
    from goose_like.cli.project_trust import print_permissions

    print_permissions()


@app.command(epilog="Example: goose-like trust forget 1")
def forget(
    which: Annotated[
        str,
        typer.Argument(metavar="NUMBER|FOLDER", help="A number from `trust list`, or a whole folder."),
    ],
) -> None:
    """Revoke permanent permissions."""
    from goose_like.cli.project_trust import revoke_permissions

    revoke_permissions(which)
