"""The command `goose-like component`: components by hand."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from goose_like.launch.options import add_options

from .commands.cli import ComponentOptions

ComponentArgument = Annotated[str, typer.Argument(help="GROUP:ARTIFACT:VERSION, or its folder.", metavar="COMPONENT")]
ComponentsArgument = Annotated[
    list[str],
    typer.Argument(help="Component folders, trees of them, or GROUP:ARTIFACT:VERSION.", metavar="COMPONENT..."),
]
SettingsOption = Annotated[Path | None, typer.Option(help="The settings file.", metavar="FILE")]
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON.")]


app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _component() -> None:
    from .toolkit import require_extra

    require_extra()


@app.command("list", epilog="Example: goose-like component list")
def component_list(settings: SettingsOption = None, json: JsonOption = False) -> None:
    """List installed components, and those that come with goose-like."""
    from .commands.report import list_components

    list_components(settings, is_json=json)


@app.command("show", epilog="Example: goose-like component show org.example:ocr:0.1.0")
def component_show(
    component: ComponentArgument,
    instance: Annotated[str | None, typer.Option(help="Which of several in this folder, by its instance_id.")] = None,
    settings: SettingsOption = None,
) -> None:
    """Show a component's file, its commands and its config."""
    from .commands.report import show_component

    show_component(settings, component, instance)


@app.command("check", epilog="Example: goose-like component check .")
def component_check(paths: ComponentsArgument) -> None:
    """Show what is wrong, each with its file and line; ends with 1 if anything is."""
    from .commands.report import check_components

    raise typer.Exit(check_components(paths))


@app.command("new", epilog="Example: goose-like component new plugin word_count")
def component_new(
    type_name: Annotated[
        str,
        typer.Argument(help="plugin, resource, llm, interactor or copilot.", metavar="TYPE"),
    ],
    name: Annotated[str | None, typer.Argument(help="Its folder, and the package of its code.")] = None,
    path: Annotated[Path, typer.Option(help="Where to write its folder.", metavar="DIR")] = Path(),
    group_id: Annotated[str, typer.Option(help="Whose it is, e.g. a domain's name from its end.")] = "org.example",
) -> None:
    """Write a component: its configuration, its project file, and code that works."""
    from .commands.scaffold import write_component

    files = write_component(type_name, name, path, group_id)
    for file in files:
        print(f"wrote {file}")
    if type_name == "copilot":
        parents = dict.fromkeys(file.parent for file in files)
        folders = " ".join(str(folder) for folder in parents if not folder.name.startswith("."))
        text = f"it finds its interactor once both are installed: goose-like component install {folders}"
        print(text, file=sys.stderr)


@app.command("install", epilog="Example: goose-like component install .")
@add_options(ComponentOptions)
def component_install(options: ComponentOptions, components: ComponentsArgument) -> None:
    """Check components and put them in the local repository, all or none; download those named by coordinates."""
    from .commands.packaging import install

    install(components, options)


@app.command("deploy", epilog="Example: goose-like component deploy .")
@add_options(ComponentOptions)
def component_deploy(options: ComponentOptions, components: ComponentsArgument) -> None:
    """Install components, then upload them to the first repository of the settings."""
    from .commands.packaging import deploy

    deploy(components, options)


@app.command("build", epilog="Example: goose-like component build ./word_count")
@add_options(ComponentOptions)
def component_build(options: ComponentOptions, component: ComponentArgument) -> None:
    """Place its configuration in .runtime, install what it needs, and construct it."""
    from .commands.run import perform

    raise typer.Exit(perform("build", component, options))


@app.command("run", epilog="Example: goose-like component run ./my_copilot")
@add_options(ComponentOptions)
def component_run(
    options: ComponentOptions,
    component: ComponentArgument,
    arguments: Annotated[list[str] | None, typer.Argument(help="For its constructor.")] = None,
) -> None:
    """Build a copilot and let it work."""
    from .commands.run import perform

    raise typer.Exit(perform("run", component, options, arguments or []))
