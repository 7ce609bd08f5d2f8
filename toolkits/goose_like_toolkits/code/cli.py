"""`goose-like plugin`: a project's plugins by hand. Imported at every start, so it is light."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Sandbox(StrEnum):
    read_only = "read-only"
    workspace = "workspace"
    workspace_network = "workspace+network"
    full = "full"


SandboxOption = Annotated[Sandbox, typer.Option(help="What the plugin can reach.")]
OutputOption = Annotated[Path, typer.Option("-o", "--output", help="The folder for files that it makes.")]

_ARTIFACTS = Path("artifacts")

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="TaskWeaver plugins: list, check, test, run and write a project's.",
)


@app.callback()
def _plugin(
    context: typer.Context,
    project: Annotated[
        Path, typer.Option(help="A folder of plugins, or a project with taskweaver_config.json or plugins/.")
    ] = Path(),
) -> None:
    context.obj = project


def _read(context: typer.Context) -> Any:
    """The project; where there is no folder to read the command ends."""
    from goose_like.core.errors import UsageError
    from goose_like_toolkits.code.plugins.project import Project

    project = Project.read(context.obj)
    if not os.path.isdir(project.plugins):
        raise UsageError(str(project.faults[-1]))
    return project


@app.command("list", epilog="Example: goose-like plugin --project . list")
def plugin_list(context: typer.Context) -> None:
    """List the plugins: which are on, why others are off, what they do."""
    from goose_like.terminal.report_table import print_table
    from goose_like_toolkits.code.plugins.report import nothing_there, rows

    project = _read(context)
    print_table(("name", "state", "what it does"), rows(project, project.off.get), nothing_there(project))


@app.command("check", epilog="Example: goose-like plugin --project . check")
def plugin_check(context: typer.Context) -> None:
    """Tell what is wrong, each with its file and line; ends with 1 if anything is."""
    from goose_like_toolkits.code.plugins.report import checked

    raise typer.Exit(checked(_read(context)))


@app.command("test", epilog="Example: goose-like plugin --project . test word_count")
def plugin_test(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Which plugin.")],
    sandbox: SandboxOption = Sandbox.workspace,
) -> None:
    """Run a plugin's tests: its functions with @test_plugin."""
    from .manual_run import test

    raise typer.Exit(test(_read(context), name, _ARTIFACTS, sandbox.value))


@app.command("run", epilog="Example: goose-like plugin --project . run word_count text='so it is'")
def plugin_run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Which plugin.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="JSON, or text.")] = None,
    output: OutputOption = _ARTIFACTS,
    sandbox: SandboxOption = Sandbox.workspace,
) -> None:
    """Call a plugin, and print what it gives and the files that it made."""
    from .manual_run import call

    raise typer.Exit(call(_read(context), name, arguments or [], output, sandbox.value))


@app.command("new", epilog="Example: goose-like plugin --project . new word_count")
def plugin_new(context: typer.Context, name: Annotated[str, typer.Argument(help="What it is called by.")]) -> None:
    """Write NAME.yaml and NAME.py: a plugin that works, and its test."""
    from goose_like_toolkits.code.plugins.scaffold import write_plugin

    for file in write_plugin(name, _read(context)):
        print(f"wrote {file}")
