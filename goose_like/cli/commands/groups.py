"""The commands `profile ...`, `toolkit ...`, `provider ...`, `trust ...` and `permissions ...`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from goose_like.config.entry_points import list_names
from goose_like.launch.command_line import list_profile_names
from goose_like.launch.options import ProfileOption, list_own_profiles


def _make_app() -> typer.Typer:
    return typer.Typer(no_args_is_help=True, rich_markup_mode=None)


profile_app = _make_app()
toolkit_app = _make_app()
provider_app = _make_app()
trust_app = _make_app()
permissions_app = _make_app()

ProfileArgument = Annotated[
    str | None, typer.Argument(help="Profile [default: the one `run` would use].", autocompletion=list_profile_names)
]
ToolkitArgument = Annotated[
    str, typer.Argument(help="Toolkit.", autocompletion=lambda: list(list_names("goose_like.toolkit")))
]
ProviderArgument = Annotated[str, typer.Argument(help="Provider.")]


@profile_app.command("list", epilog="Example: goose-like profile list")
def list_profiles() -> None:
    """List profiles and their files."""
    from . import profile_actions

    profile_actions.print_profiles()


@profile_app.command("show", epilog="Example: goose-like profile show local")
def show_profile(name: ProfileArgument = None) -> None:
    """Show a profile with everything that it extends."""
    from . import profile_actions

    profile_actions.print_profile(name)


@profile_app.command("check", epilog="Example: goose-like profile check default")
def check_profile(name: ProfileArgument = None) -> None:
    """Show where each value of a profile comes from, and check that the profile works."""
    from . import profile_actions

    raise typer.Exit(profile_actions.check_profile(name))


@profile_app.command("new", epilog="Example: goose-like profile new careful --from default")
def add_profile(
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
    from . import profiles_yaml

    file = profiles_yaml.add_profile(name, base)
    print(f"added {name!r} to {file}; edit it: goose-like profile edit {name}")


@profile_app.command("edit", epilog="Example: goose-like profile edit")
def edit_profile(
    name: Annotated[
        str | None,
        typer.Argument(help="One of your own profiles [default: the whole file].", autocompletion=list_own_profiles),
    ] = None,
) -> None:
    """Edit your profiles in $VISUAL or $EDITOR; errors are reported with their line before saving."""
    from . import profiles_yaml

    profiles_yaml.edit_profile(name)


@profile_app.command("use", epilog="Example: goose-like profile use local")
def use_profile(name: Annotated[str, typer.Argument(help="Profile.", autocompletion=list_profile_names)]) -> None:
    """Make a profile the default for commands without --profile."""
    from . import profiles_yaml

    file = profiles_yaml.use_profile(name)
    print(f"{name!r} is now the default profile: {file}")


@profile_app.command("schema", epilog="Example: goose-like profile schema > profiles.schema.json")
def print_schema() -> None:
    """Print the JSON Schema of profiles.yaml for editors."""
    from . import profiles_yaml

    print(profiles_yaml.format_schema(), end="")


@toolkit_app.command("list", epilog="Example: goose-like toolkit list")
def list_toolkits() -> None:
    """List installed toolkits."""
    from . import toolkit_actions

    toolkit_actions.print_toolkits()


@toolkit_app.command("show", epilog="Example: goose-like toolkit show developer")
def show_toolkit(name: ToolkitArgument) -> None:
    """Show the tools of a toolkit as the model sees them."""
    from . import toolkit_actions

    toolkit_actions.print_toolkit(name)


@toolkit_app.command("new", epilog="Example: goose-like toolkit new my-tools")
def create_toolkit(
    name: Annotated[str, typer.Argument(help="Name of the toolkit in profiles.")],
    path: Annotated[str, typer.Option(help="Parent of the new folder.")] = ".",
) -> None:
    """Create a package with a new toolkit and a test that needs no model."""
    from . import toolkit_actions

    folder = toolkit_actions.write_toolkit(name, Path(path))
    requirement = shlex.quote(f"{folder}[test]")
    print(f"wrote {folder}; next: pip install -e {requirement}")


@provider_app.command("list", epilog="Example: goose-like provider list")
def list_providers() -> None:
    """List providers and what each still needs."""
    from . import provider_actions

    provider_actions.print_providers()


@provider_app.command("check", epilog="Example: goose-like provider check openai")
def check_provider(name: Annotated[str, typer.Argument(help="Provider, or PROVIDER:MODEL.")]) -> None:
    """Ask a provider for its models, to check the server and the API key. This costs nothing."""
    from . import provider_actions

    raise typer.Exit(provider_actions.check_provider(name))


@provider_app.command("login", epilog="Example: goose-like provider login openai < key.txt")
def log_in(
    name: ProviderArgument,
    no_check: Annotated[bool, typer.Option("--no-check", help="Store the key without asking the server.")] = False,
) -> None:
    """Store an API key, typed at a hidden prompt or read from standard input."""
    from . import provider_actions

    provider_actions.log_in(name, is_checked=not no_check)


@provider_app.command("logout", epilog="Example: goose-like provider logout openai")
def log_out(name: ProviderArgument) -> None:
    """Delete the API key that `provider login` stored."""
    from . import provider_actions

    provider_actions.log_out(name)


@trust_app.command("add", epilog="Example: goose-like trust add .")
def add_trust(
    folders: Annotated[
        list[str] | None,
        typer.Argument(metavar="FOLDER", help="A folder of the project, or files of another agent: ~/.claude."),
    ] = None,
) -> None:
    """Trust a project's profiles and commands as they are now, or use your own files for another agent.

    Changed files of a project are asked about again.
    """
    from . import trust_actions

    for folder in folders or ["."]:
        trust_actions.add_trust(folder)


@trust_app.command("list", epilog="Example: goose-like trust list")
def list_permissions() -> None:
    """List permanent permissions by folder."""
    from . import trust_actions

    trust_actions.print_permissions()


@trust_app.command("forget", epilog="Example: goose-like trust forget 1")
def revoke_permissions(
    which: Annotated[
        str, typer.Argument(metavar="NUMBER|FOLDER", help="A number from `trust list`, or a whole folder.")
    ],
) -> None:
    """Revoke permanent permissions."""
    from . import trust_actions

    trust_actions.revoke_permissions(which)


@permissions_app.command("test", epilog='Example: goose-like permissions test "git push --force"')
def show_deciding_rule(
    action: Annotated[
        str, typer.Argument(metavar="COMMAND", help="A command line in quotes, or tool:NAME, path:FILE or domain:HOST.")
    ],
    profile: ProfileOption = None,
) -> None:
    """Show which rule decides about a command. Nothing is run."""
    from . import permission_actions

    permission_actions.print_judgement(action, profile)


@permissions_app.command("list", epilog="Example: goose-like permissions list")
def list_rules(profile: ProfileOption = None) -> None:
    """List the rules of a profile and of this folder. Answers for good are in: goose-like trust list."""
    from . import permission_actions

    permission_actions.print_rules(profile)
