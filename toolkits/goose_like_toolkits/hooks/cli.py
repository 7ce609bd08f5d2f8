"""The command `goose-like hooks`: whose hooks run, and a trial of them."""

from pathlib import Path
from typing import Annotated

import typer

from goose_like.config.paths import expand_home
from goose_like.launch.options import ProfileOption

FileArgument = Annotated[Path, typer.Argument(help="A file with hooks, such as ~/.claude/settings.json.")]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("list", epilog="Example: goose-like hooks list")
def list_hooks(profile: ProfileOption = None) -> None:
    """List all hooks of the profile, the project and your own files, and which of them run."""
    from .report import print_hooks

    print_hooks(profile)


@app.command("test", epilog='Example: goose-like hooks test PreToolUse --tool shell --input \'{"command": "ls"}\'')
def try_hooks(
    event: Annotated[str, typer.Argument(help="The event, such as PreToolUse.")],
    tool: Annotated[str, typer.Option(help="The tool of the call.")] = "shell",
    arguments: Annotated[
        str, typer.Option("--input", metavar="JSON", help="The arguments of the call.")
    ] = '{"command": "true"}',
    profile: ProfileOption = None,
) -> None:
    """Run the hooks of an event once with a sample, and show their replies and what these would mean."""
    from goose_like.launch.exit import run_async

    from .report import print_trial

    raise typer.Exit(run_async(print_trial(event, tool, arguments, profile)))


@app.command("use", epilog="Example: goose-like hooks use ~/.claude/settings.json")
def use_hooks(file: FileArgument, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Let the hooks of a file of yours run with your rights, as they are now. Shows them first."""
    from .report import take_over

    take_over(expand_home(file).absolute(), is_sure=yes)


@app.command("forget", epilog="Example: goose-like hooks forget ~/.claude/settings.json")
def forget_hooks(file: FileArgument) -> None:
    """Stop using the hooks of a file of yours."""
    from .sources import forget_hooks

    path = expand_home(file).absolute()
    forget_hooks(path)
    print(f"not used any more: the hooks of {path}")
