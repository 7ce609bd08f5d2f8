"""The commands `session ...`."""

import os
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from goose_like.cli.root_group import WorktreeCommand
from goose_like.launch.command_line import ProfileOptions, list_session_names
from goose_like.launch.options import (
    ForkOption,
    OptionalSessionArgument,
    SessionArgument,
    WorktreeOption,
    add_profile_options,
)

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


PlanOption = Annotated[str | None, typer.Option(help="Start with the plan in a file: Markdown with a list, or YAML.")]
ArgsOption = Annotated[
    list[str] | None, typer.Option("--args", "-a", metavar="NAME=VALUE,...", help="Values for variables in the plan.")
]


@app.command(cls=WorktreeCommand, epilog="Example: goose-like session start --profile local")
@add_profile_options
def start(
    options: ProfileOptions,
    name: Annotated[str | None, typer.Argument(help="Session name [default: a short one].")] = None,
    plan: PlanOption = None,
    args: ArgsOption = None,
    worktree: WorktreeOption = None,
) -> None:
    """Start a session. Ctrl-C stops a turn, Ctrl-D leaves."""
    _start(options, name, plan, args, worktree)


@app.command("planned", epilog="Example: goose-like session planned --plan plan.md --args name=parser")
@add_profile_options
def start_with_plan(
    options: ProfileOptions,
    plan: Annotated[str, typer.Option(help="File with the plan: Markdown with a list, or YAML.")],
    args: ArgsOption = None,
) -> None:
    """Start a session with a plan."""
    _start(options, None, plan, args)


def _start(
    options: ProfileOptions,
    name: str | None,
    plan: str | None,
    args: list[str] | None,
    worktree: str | None = None,
) -> None:
    from goose_like.cli.chat.startup import start_session

    if args and not plan:
        raise typer.BadParameter("--args needs --plan")
    work: dict[str, Any] = {}
    if plan:
        from goose_like.config.task_file import parse_arguments, read_task_file
        from goose_like.core.events import Task

        task_file = read_task_file(plan, parse_arguments(args or []))
        tasks = tuple(Task(description=task) for task in task_file.tasks)
        work = {"plan": tasks, "first": task_file.first_message}
    raise typer.Exit(start_session(options, session=name, worktree=worktree, **work))


@app.command(epilog="Example: goose-like session resume")
@add_profile_options
def resume(
    options: ProfileOptions,
    name: Annotated[
        str | None,
        typer.Argument(
            help="Session name [default: chosen from a list; without a terminal, the newest of this folder].",
            autocompletion=list_session_names,
        ),
    ] = None,
    fork: ForkOption = False,
) -> None:
    """Resume a session."""
    from goose_like.cli.chat.startup import start_session

    code = start_session(options, session=name, is_resumed=True, is_forked=fork, picks=name is None)
    raise typer.Exit(code)


@app.command("list", epilog="Example: goose-like session list --here")
def list_(
    words: Annotated[
        list[str] | None, typer.Argument(help="List only sessions with these words in name, folder or messages.")
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="List only sessions of this folder.")] = False,
    every: Annotated[bool, typer.Option("--all", help="List all sessions instead of the newest 20.")] = False,
) -> None:
    """List sessions, newest first. Columns: name, age, folder, turns, cost, tokens, about."""
    from .session_actions import print_sessions

    print_sessions(words or [], cwd=os.getcwd() if here else None, is_complete=every)


@app.command(epilog="Example: goose-like session search parser")
def search(
    words: Annotated[list[str], typer.Argument(help="Words that all occur in name, title, messages and answers.")],
    here: Annotated[bool, typer.Option("--here", help="Search only sessions of this folder.")] = False,
    every: Annotated[bool, typer.Option("--all", help="List all matches instead of the newest 20.")] = False,
) -> None:
    """Search sessions, newest first. Columns: name, age, folder, who wrote the line, the line."""
    from .session_actions import print_matches

    print_matches(words, cwd=os.getcwd() if here else None, is_complete=every)


@app.command(epilog="Example: goose-like session show")
def show(name: OptionalSessionArgument = None) -> None:
    """Show a session. This includes its turns, the files it changed, its tokens and cost."""
    from .session_actions import print_session

    print_session(name)


@app.command(epilog="Example: goose-like session export -o talk.html")
def export(
    name: OptionalSessionArgument = None,
    form: Annotated[
        Literal["markdown", "html", "notebook", "json", "atif"] | None,
        typer.Option("--format", help="Format [default: by the suffix of FILE, else markdown]."),
    ] = None,
    file: Annotated[str | None, typer.Option("-o", "--output", help="File to write [default: stdout].")] = None,
) -> None:
    """Export a session. Formats: Markdown, a web page, a notebook, ATIF (a trajectory), or JSON for import."""
    from .session_actions import export_session

    export_session(name, form, Path(file) if file else None)


@app.command("receipt-schema", epilog="Example: goose-like session receipt-schema > receipt.schema.json")
def print_receipt_schema() -> None:
    """Print the JSON Schema of the receipts that `run --receipt FILE.json` writes."""
    import json

    from goose_like.agent.receipt import build_receipt_schema

    print(json.dumps(build_receipt_schema(), indent=2))


@app.command("import", epilog="Example: goose-like session import talk.json")
def import_(
    file: Annotated[str, typer.Argument(help="File from `session export --format json` or from goose 0.9.")],
    name: Annotated[str | None, typer.Option(help="Session name [default: the exported name, if it is free].")] = None,
) -> None:
    """Create a session from an exported file."""
    from goose_like.sessions.archive import import_file

    from .session_actions import describe_resumption, print_problems

    session = import_file(Path(file), name)
    session.close()
    print_problems(session.damage)
    facts = describe_resumption(session.name)
    _print_name(f"imported as {session.name!r} ({facts})", session.name)


@app.command("fork", epilog="Example: goose-like session fork --at 2")
def copy(
    name: OptionalSessionArgument = None,
    at: Annotated[int | None, typer.Option(help="Copy only what precedes this turn [default: everything].")] = None,
    new: Annotated[str | None, typer.Option("--name", help="Name of the copy [default: a short one].")] = None,
) -> None:
    """Copy a session into a new one. The original can be open and stays unchanged."""
    from goose_like.sessions.fork import fork
    from goose_like.sessions.index import find_session_or_newest

    from .session_actions import print_problems

    original = find_session_or_newest(name, os.getcwd())
    session = fork(original, at=at, name=new)
    session.close()
    print_problems(session.damage)
    _print_name(f"forked {original.name!r} as {session.name!r}", session.name)


@app.command(epilog="Example: goose-like session rename NAME parser")
def rename(
    name: SessionArgument, new: Annotated[str, typer.Argument(help="New name, or a title of several words in quotes.")]
) -> None:
    """Rename a session."""
    from goose_like.sessions.index import rename_session

    new = rename_session(name, new)
    _print_name(f"renamed {name!r} to {new!r}", new)


def _print_name(change: str, name: str) -> None:
    print(f"{change}; resume with: goose-like session resume {shlex.quote(name)}")


@app.command(epilog="Example: goose-like session clear --keep 10 --yes")
def clear(
    keep: Annotated[int, typer.Option(min=0, metavar="N", help="Number of newest sessions to keep.")],
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
) -> None:
    """Delete old sessions, after asking. Open sessions stay."""
    from .session_actions import delete_sessions

    delete_sessions(keep, is_confirmed=yes)
