"""The command line of goose-like: all commands and the plugins that add more.

Functions import what they need when they run, so that `--help` and usage errors are fast.
"""

import os
import sys
from typing import Annotated, Literal, cast

import typer

from goose_like import __version__
from goose_like.core.errors import GooseLikeError

from .commands import profile, provider, run, session, toolkit, trust
from .exit import run_guarded
from .options import ApprovalOption, ModelOption, ProfileOption, ProfileOptions, SandboxOption, TrustOption

app = typer.Typer(
    name="goose-like",
    help="A developer agent for the shell. Without a command, start a session.",
    epilog='Try: goose-like run "explain what this repository does"',
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,  # Rich takes a third of the time of `--help`
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog='Example: goose-like run --max-steps 20 "make the tests in tests/ pass"')(run.run)
app.add_typer(session.app, name="session")
app.add_typer(profile.app, name="profile")
app.add_typer(toolkit.app, name="toolkit")
app.add_typer(provider.app, name="provider")
app.add_typer(trust.app, name="trust")


def _list_help_topics(context: typer.Context) -> list[str]:
    from .help import list_topics_below

    return list_topics_below(app, context.params.get("words") or [])


@app.callback(invoke_without_command=True)
def _run_without_command(
    context: typer.Context,
    profile: ProfileOption = None,
    model: ModelOption = None,
    sandbox: SandboxOption = None,
    approval: ApprovalOption = None,
    trust: TrustOption = False,
) -> None:
    options = ProfileOptions(profile, model, sandbox, approval, trust)
    if context.invoked_subcommand is None:
        from goose_like.cli.chat.startup import has_prompt, start_session

        if not has_prompt():
            print(context.get_help())
            raise typer.Exit(2)
        raise typer.Exit(start_session(options))
    if options != ProfileOptions():
        raise typer.BadParameter(f"put options after the command; see goose-like {context.invoked_subcommand} -h")


@app.command(epilog="Example: goose-like doctor")
def doctor(profile: ProfileOption = None) -> None:
    """Check the installation. Show the model that would be used and why, and what to do next."""
    from goose_like.cli.commands.inspect import run_doctor

    from .launch import run_and_close

    raise typer.Exit(run_and_close(run_doctor(profile)))


@app.command("help", epilog="Example: goose-like help run")
def show_help(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND|TOPIC]...", help="Command or topic.", autocompletion=_list_help_topics),
    ] = None,
) -> None:
    """Show help for a command or a topic. Topics: profiles, toolkits, sandbox, keys, exit-codes, ..."""
    from pydoc import pager

    from .help import find_page

    pager(find_page(app, words or []))


@app.command(epilog="Example: goose-like completion bash")
def completion(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Your shell.")]) -> None:
    """Print a completion script. Load it in the start file of your shell."""
    from .shell_completion import SCRIPTS

    print(SCRIPTS[shell].strip())


@app.command(epilog="Example: goose-like version")
def version() -> None:
    """Print the version."""
    print(f"goose-like {__version__}")


def run_command_line() -> int:
    """Run the command in `sys.argv`, or answer a completion request; return the exit code."""
    return run_guarded(_run)


def _run() -> None:
    _add_plugins()
    if "_GOOSE_LIKE_COMPLETE" in os.environ:
        from .shell_completion import register_shells

        register_shells()
    app(prog_name="goose-like")


def _add_plugins() -> None:
    """Add the commands of installed packages. All of these are imported, so they must be light."""
    from goose_like.core.entry_points import list_entry_points, load_entry_point

    for name in list_entry_points("goose_like.cli"):
        try:
            app.add_typer(cast(typer.Typer, load_entry_point("goose_like.cli", name)), name=name)
        except GooseLikeError as error:  # the other commands still work
            print(f"goose-like: skipped: {error}", file=sys.stderr)
