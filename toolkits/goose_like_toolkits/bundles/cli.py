"""The command `goose-like bundle`: add, list, show, update and remove bundles."""

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def _list_names() -> list[str]:
    from goose_like.config.bundles import list_names

    return list_names()


SourceArgument = Annotated[
    str, typer.Argument(help="A folder, a git repository (address or OWNER/NAME), or a package.", metavar="SOURCE")
]
MemberArgument = Annotated[str, typer.Argument(help="The bundle, if the source is a list of several.", metavar="NAME")]
NameArgument = Annotated[str, typer.Argument(help="The bundle.", metavar="NAME", autocompletion=_list_names)]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command(epilog="Example: goose-like bundle add anthropics/claude-code code-review")
def add(source: SourceArgument, name: MemberArgument = "", yes: YesOption = False) -> None:
    """Show what a bundle contains and may do, ask, and add it. For a list of bundles, print the list."""
    from .commands import add_bundle

    add_bundle(source, name, is_sure=yes)


@app.command("list", epilog="Example: goose-like bundle list")
def list_all() -> None:
    """List the bundles that you added, and packages that bring one."""
    from .commands import print_bundles

    print_bundles()


@app.command(epilog="Example: goose-like bundle show ./my-bundle")
def show(source: SourceArgument, name: MemberArgument = "") -> None:
    """Show what a bundle contains and may do: one that you added, or any source. Nothing runs."""
    from .commands import show_bundle

    show_bundle(source, name)


@app.command(epilog="Example: goose-like bundle update")
def update(
    name: Annotated[
        str, typer.Argument(help="The bundle; all without one.", metavar="NAME", autocompletion=_list_names)
    ] = "",
    yes: YesOption = False,
) -> None:
    """Look for new files at the source, show what changed in files and permissions, and ask."""
    from .commands import update_bundles

    update_bundles(name, is_sure=yes)


@app.command(epilog="Example: goose-like bundle remove code-review")
def remove(name: NameArgument) -> None:
    """Remove a bundle and its data."""
    from .commands import remove_bundle

    remove_bundle(name)
