"""The command `goose-like plugin` for the plugins of a project."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

SandboxOption = Annotated[
    Literal["read-only", "workspace", "workspace+network", "full"], typer.Option(help="Limits of the plugin's access.")
]
PythonOption = Annotated[
    str | None, typer.Option(metavar="PATH", help="Interpreter with ipykernel [default: goose-like's own].")
]
OutputOption = Annotated[Path, typer.Option("-o", "--output", help="Folder for the plugin's artifacts.")]

_ARTIFACTS = Path("artifacts")

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _set_project(
    context: typer.Context,
    project: Annotated[
        Path, typer.Option(help="A folder of plugins, or a project with taskweaver_config.json or plugins/.")
    ] = Path(),
) -> None:
    context.obj = project


def _read_project(context: typer.Context) -> Any:
    from goose_like.core.errors import UsageError
    from goose_like_toolkits.code.plugins.project import Project

    project = Project.read(context.obj)
    if not os.path.isdir(project.plugins):
        raise UsageError(str(project.diagnostics[-1]))
    return project


@app.command("list", epilog="Example: goose-like plugin --project . list")
def list_plugins(context: typer.Context) -> None:
    """List the plugins with their state and description."""
    from goose_like.terminal.report_table import print_table
    from goose_like_toolkits.code.plugins.project import explain_empty, list_rows

    project = _read_project(context)
    rows = list_rows(project, project.off.get)
    print_table(("name", "state", "description"), rows, explain_empty(project))


@app.command("check", epilog="Example: goose-like plugin --project . check")
def check_plugins(context: typer.Context) -> None:
    """Print each error with its file and line; exit with 1 if there is an error."""
    from goose_like_toolkits.code.plugins.project import print_diagnostics

    raise typer.Exit(print_diagnostics(_read_project(context)))


@app.command("show", epilog="Example: goose-like plugin --project . show word_count")
def show_plugin(context: typer.Context, name: Annotated[str, typer.Argument(help="Name of the plugin.")]) -> None:
    """Print everything about a plugin: its files, parameters, results, examples and configuration."""
    from .manual_run import print_plugin

    print_plugin(_read_project(context), name)


@app.command("test", epilog="Example: goose-like plugin --project . test word_count")
def run_tests(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the plugin.")],
    sandbox: SandboxOption = "workspace",
    python: PythonOption = None,
) -> None:
    """Run the tests of a plugin: its functions with @test_plugin."""
    from .manual_run import Place, run_plugin_tests

    place = Place(_ARTIFACTS, sandbox, python)
    raise typer.Exit(run_plugin_tests(_read_project(context), name, place))


@app.command("run", epilog="Example: goose-like plugin --project . run word_count text='so it is'")
def run_plugin(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the plugin.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE]...", help="JSON, text, or @FILE for a data frame."),
    ] = None,
    output: OutputOption = _ARTIFACTS,
    sandbox: SandboxOption = "workspace",
    python: PythonOption = None,
) -> None:
    """Call a plugin and print its result and the paths of its artifacts."""
    from .manual_run import Place, call_plugin

    place = Place(output, sandbox, python)
    raise typer.Exit(call_plugin(_read_project(context), name, arguments or [], place))


@app.command("new", epilog="Example: goose-like plugin --project . new word_count")
def create_plugin(context: typer.Context, name: Annotated[str, typer.Argument(help="Name of the new plugin.")]) -> None:
    """Write NAME.yaml and NAME.py: a working plugin with a test."""
    from goose_like_toolkits.code.plugins.scaffold import write_plugin

    for file in write_plugin(name, _read_project(context)):
        print(f"wrote {file}")
