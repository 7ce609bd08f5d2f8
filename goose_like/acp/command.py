"""The command `goose-like acp`."""

import os
import stat
import sys
from typing import Annotated, Any

import typer

from goose_like.core.errors import UsageError
from goose_like.launch.command_line import ProfileOptions
from goose_like.launch.options import ModelOption, ProfileOption

from .editors import EditorName, format_config

app = typer.Typer(
    rich_markup_mode=None,
    subcommand_metavar="",  # there are no subcommands
)


@app.callback(invoke_without_command=True, epilog="Example: goose-like acp --print-config zed")
def acp(
    profile: ProfileOption = None,
    model: ModelOption = None,
    editor: Annotated[
        EditorName | None, typer.Option("--print-config", help="Print what to paste into the settings of an editor.")
    ] = None,
    is_setup: Annotated[
        bool, typer.Option("--setup", help="Run `goose-like setup`: editors add this option to log in.")
    ] = False,
) -> None:
    """Work inside an editor that speaks the Agent Client Protocol, which starts this command."""
    if is_setup:
        os.execv(sys.executable, [sys.executable, "-m", "goose_like", "setup"])
    if editor is not None:
        print(format_config(editor, profile, model))
        return
    from goose_like.launch.exit import run_async

    server = _import_server()
    _check_pipes()
    raise typer.Exit(run_async(server.serve_editor(ProfileOptions(profile, model))))


def _check_pipes() -> None:
    """Check that a program is at the other end of standard input and output.

    Raises:
        UsageError: one of them is a terminal or a file.
    """
    for stream in (sys.stdin, sys.stdout):
        mode = os.fstat(stream.fileno()).st_mode
        if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
            raise UsageError(
                "`goose-like acp` is started by an editor, through pipes; "
                "print the editor's settings: goose-like acp --print-config zed (or jetbrains, neovim, emacs)"
            )


def _import_server() -> Any:
    try:
        from . import server
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("goose_like"):
            raise
        raise UsageError(f"{error.name} is not installed; install it: pip install 'goose-like[acp]'") from error
    return server
