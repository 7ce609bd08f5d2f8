"""The command line of goose-like: all commands and the plugins that add more.

Functions import what they need when they run, so that `--help` and usage errors are fast.
"""

import os
import sys
from collections.abc import Collection
from typing import Annotated, Literal, cast

import typer

from goose_like.core.errors import GooseLikeError
from goose_like.launch.command_line import (
    InputOptions,
    ProfileOptions,
    SessionOptions,
    TaskOptions,
    find_run_conflict,
    find_session_conflict,
)
from goose_like.launch.exit import run_guarded
from goose_like.launch.options import ProfileOption, add_options

from .root_group import RootGroup, RunCommand

app = typer.Typer(
    name="goose-like",
    cls=RootGroup,
    subcommand_metavar="[COMMAND [ARGS]...]",
    help="A developer agent for the shell. Without a command, start a session; words in quotes are its first message.",
    epilog='Try: goose-like run "explain what this repository does"',
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,  # Rich takes a third of the time of `--help`
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_GROUPS = {
    "session": "Start, resume and manage conversations of several turns.",
    "profile": "Show, check, create and edit profiles.",
    "toolkit": "List, show and create toolkits.",
    "provider": "List and check model providers, and store API keys.",
    "trust": "Manage permanent permissions: trusted projects and answers.",
    "permissions": "Show which rule decides about a command, and list all rules.",
    "batch": "Run a recipe on many inputs, on this machine or on a Ray cluster.",
    "bundle": "Bundles of skills, commands, agents, hooks and servers: add, list, show, update and remove them.",
    "boss": "Work on a long goal: plan it, then act round by round, with memory in files.",
    "component": "ConCopilot components: list, show, check, write, install, run and deploy them.",
    "mcp": "MCP servers: add, list, show, test and remove them, and log in.",
    "plugin": "List, show, check, test, run and create TaskWeaver plugins.",
    "acp": "Work inside an editor: Zed, JetBrains, Neovim, Emacs.",
    "recipe": "Run saved tasks with parameters: recipes, also those of goose. List, show, check and write them.",
    "serve": "Make profiles available to OpenBB Workspace and to clients of OpenAI's API over HTTP.",
    "eval": "Measure how many tasks of a suite profiles and models solve.",
    "hooks": "List hooks, try them with a sample, and say which files of yours may run.",
    "skill": "List, show, check and write skills.",
}
"""The built-in groups of commands with their help. A command line that does not name a group needs no import of it."""


def _list_help_topics(context: typer.Context) -> list[str]:
    from .help import list_topics_below

    return list_topics_below(app, context.params.get("words") or [])


@app.callback(invoke_without_command=True)
@add_options(SessionOptions, ProfileOptions)
def _run_without_command(
    chosen: SessionOptions,
    options: ProfileOptions,
    context: typer.Context,
    is_print: Annotated[bool, typer.Option("-p", "--print", help="Do one task: the same as run.")] = False,
) -> None:
    if context.invoked_subcommand is not None:
        if options != ProfileOptions() or chosen != SessionOptions():
            raise typer.BadParameter(f"put options after the command; see goose-like {context.invoked_subcommand} -h")
        return
    from goose_like.cli.chat.startup import start_session

    if conflict := find_session_conflict(chosen):
        raise typer.BadParameter(conflict)
    picks = chosen.resume == "" and not chosen.is_continued
    code = start_session(
        options,
        session=chosen.resume or None,
        is_resumed=chosen.is_resumed,
        is_forked=chosen.is_forked,
        picks=picks,
        worktree=chosen.worktree,
        first=context.meta["first"],
    )
    raise typer.Exit(code)


@app.command(cls=RunCommand, epilog='Example: goose-like run --max-steps 20 "make the tests in tests/ pass"')
@add_options(InputOptions, TaskOptions, SessionOptions, ProfileOptions)
def run(
    given: InputOptions,
    wanted: TaskOptions,
    chosen: SessionOptions,
    options: ProfileOptions,
    text: Annotated[list[str] | None, typer.Argument(help="The task; - at the end adds standard input.")] = None,
) -> None:
    """Do one task. Progress goes to standard error, the answer to standard output.

    Exit codes: 0 done, 1 error, 2 usage, 3 steps, 4 cost, 5 tokens, 6 denied, 7 no sandbox, 8 check failed,
    75 rate limit, 76 key, 77 model unavailable, 124 time, 130 SIGINT, 143 SIGTERM.
    """
    from .run_start import start_run

    if conflict := find_run_conflict(wanted, chosen):
        raise typer.BadParameter(conflict)
    raise typer.Exit(start_run(text or [], given, wanted, chosen, options))


@app.command(epilog="Example: goose-like doctor")
def doctor(
    profile: ProfileOption = None,
    is_report: Annotated[
        bool, typer.Option("--report", help="Print it for a bug report: without secrets and names.")
    ] = False,
) -> None:
    """Check the installation. Show the model that would be used and why, and what to do next."""
    from goose_like.cli.commands.doctor import run_doctor

    raise typer.Exit(run_doctor(profile, is_report=is_report))


@app.command(epilog="Example: goose-like setup")
def setup() -> None:
    """Choose provider, key and default model, and try them. Needs a terminal."""
    from goose_like.cli.commands.setup import run_setup

    run_setup()


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
    """Print the version with its commit, and the versions of packages that extend goose-like."""
    from importlib import metadata

    from goose_like.config.entry_points import list_other_packages
    from goose_like.core.version import describe_version

    print(f"goose-like {describe_version()}")
    for name in list_other_packages():
        print(f"{name} {metadata.version(name)}")


def run_command_line() -> int:
    """Run the command in `sys.argv`, or answer a completion request; return the exit code."""
    return run_guarded(_run)


def _run() -> None:
    if "_GOOSE_LIKE_COMPLETE" in os.environ:
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # makes Typer answer, without its options such as --install-completion
        add_groups()
    else:
        add_groups(None if "help" in sys.argv else sys.argv)
    app(prog_name="goose-like")


def add_groups(words: Collection[str] | None = None) -> None:
    """Add the groups of commands, with their commands if the words name them. Without words, add all commands.

    Groups of installed packages are always imported, because only the import gives their help.
    """
    from goose_like.config.entry_points import list_names, load_entry_point

    for name in dict.fromkeys([*_GROUPS, *list_names("goose_like.cli")]):
        help_text = _GROUPS.get(name)
        if help_text and words is not None and name not in words:
            app.add_typer(typer.Typer(), name=name, help=help_text)
            continue
        try:
            group = cast(typer.Typer, load_entry_point("goose_like.cli", name))
        except GooseLikeError as error:  # the other commands still work
            print(f"goose-like: skipped: {error}", file=sys.stderr)
            continue
        app.add_typer(group, name=name, help=help_text or group.info.help)
