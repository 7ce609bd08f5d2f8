"""The commands `profile ...`."""

from typing import Annotated

import typer

from goose_like.cli.options import list_profile_names

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show, check, create and edit profiles.")


def _list_own_names() -> list[str]:
    from goose_like.config.profile_loader import list_profile_sources

    from .profiles_yaml import is_own_profile

    sources = [source for source in list_profile_sources() if is_own_profile(source.file)]
    return sorted({source.name for source in sources if source.name.isprintable()})


NameOption = Annotated[
    str | None,
    typer.Argument(help="Profile [default: the one `run` would use].", autocompletion=list_profile_names),
]


@app.command("list", epilog="Example: goose-like profile list")
def list_() -> None:
    """List profiles and their files."""
    from .inspect import print_profiles

    print_profiles()


@app.command(epilog="Example: goose-like profile show local")
def show(name: NameOption = None) -> None:
    """Show a profile with everything that it extends."""
    from .inspect import print_profile

    print_profile(name)


@app.command(epilog="Example: goose-like profile check default")
def check(name: NameOption = None) -> None:
    """Show where each value of a profile comes from, and check that the profile works."""
    from goose_like.agent.profile_choice import choose_profile
    from goose_like.cli.launch import run_and_close

    from .inspect import check_profile

    choice = choose_profile(name)
    raise typer.Exit(run_and_close(check_profile(choice.profile, choice.source), choice))


@app.command(epilog="Example: goose-like profile new careful --from default")
def new(
    name: Annotated[str, typer.Argument(help="Name of the new profile.")],
    base: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Profile to extend [default: an existing profile NAME, else default].",
            autocompletion=list_profile_names,
        ),
    ] = None,
) -> None:
    """Add a profile to your profiles.yaml that extends another one."""
    from .profiles_yaml import add_profile

    print(f"added {name!r} to {add_profile(name, base)}; edit it: goose-like profile edit {name}")


@app.command(epilog="Example: goose-like profile edit")
def edit(
    name: Annotated[
        str | None,
        typer.Argument(help="One of your own profiles [default: the whole file].", autocompletion=_list_own_names),
    ] = None,
) -> None:
    """Edit your profiles in $VISUAL or $EDITOR; errors are reported with their line before saving."""
    from .profile_edit import edit_profile

    edit_profile(name)


@app.command(epilog="Example: goose-like profile use local")
def use(name: Annotated[str, typer.Argument(help="Profile.", autocompletion=list_profile_names)]) -> None:
    """Make a profile the default for commands without --profile."""
    from .profiles_yaml import use_profile

    print(f"{name!r} is now the default profile: {use_profile(name)}")


@app.command(epilog="Example: goose-like profile schema > profiles.schema.json")
def schema() -> None:
    """Print the JSON Schema of profiles.yaml for editors."""
    from .profiles_yaml import format_schema

    print(format_schema(), end="")
