"""`conpack`: ConCopilot's own command line, with the commands of `goose-like component`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.launch.exit import run_guarded
from goose_like.launch.options import add_options

from .commands.cli import ComponentOptions

_COMMANDS = ("build", "run", "install", "deploy")
_MORE = {"allow_extra_args": True, "ignore_unknown_options": True}

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help="ConCopilot components: build, run, install and deploy them. `conpack help COMMAND` shows the options.",
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The options with which `conpack` names components."""

    src_folder: Annotated[Path, typer.Option(help="The folder with .config in it.", metavar="DIR")] = Path()
    config_file: Annotated[Path | None, typer.Option(help="Its config.yaml.", metavar="FILE")] = None
    group_id: Annotated[str | None, typer.Option(help="With --artifact-id and --version.")] = None
    artifact_id: Annotated[str | None, typer.Option()] = None
    version: Annotated[str | None, typer.Option()] = None
    recursive: Annotated[bool, typer.Option("--recursive", help="Every component below the source folder.")] = False
    add_current_folder_to_path: Annotated[bool, typer.Option("--add-current-folder-to-path")] = False
    add_working_directory_to_path: Annotated[bool, typer.Option("--add-working-directory-to-path")] = False
    add_src_folder_to_path: Annotated[bool, typer.Option("--add-src-folder-to-path")] = False

    def list_components(self) -> list[str]:
        """Return the selected components: coordinates, or paths of config files."""
        from .host.sources import list_config_files

        parts = {"--group-id": self.group_id, "--artifact-id": self.artifact_id, "--version": self.version}
        missing = [flag for flag, value in parts.items() if not value]
        if not missing:
            return [":".join(map(str, parts.values()))]
        if len(missing) < len(parts):
            raise UsageError(f"coordinates are three: give {' and '.join(missing)}, too")
        if self.config_file:
            if not self.config_file.is_file():
                raise UsageError(f"there is no file {self.config_file}; give a component's config.yaml")
            return [str(self.config_file)]
        files = list_config_files(self.src_folder, is_recursive=self.recursive)
        return list(map(str, files))

    def list_roots(self, options: ComponentOptions) -> list[Path]:
        """Return the folders from which packages are imported."""
        folders = []
        if self.add_current_folder_to_path:
            folders.append(Path())
        if self.add_working_directory_to_path:
            folders.append(options.working_directory)
        if self.add_src_folder_to_path:
            folders.append(self.src_folder)
        return [folder.absolute() for folder in folders]


@app.command("build", context_settings=_MORE)
@add_options(Selection, ComponentOptions)
def build(selection: Selection, options: ComponentOptions, context: typer.Context) -> None:
    """Place configurations in .runtime, install what they need, and construct components."""
    _perform("build", selection, options, context.args)


@app.command("run", context_settings=_MORE)
@add_options(Selection, ComponentOptions)
def run(selection: Selection, options: ComponentOptions, context: typer.Context) -> None:
    """Build a copilot and let it work; more arguments go to its constructor."""
    _perform("run", selection, options, context.args)


@app.command("install")
@add_options(Selection, ComponentOptions)
def install(selection: Selection, options: ComponentOptions) -> None:
    """Put components in the local repository."""
    from .commands.packaging import install as install_components

    install_components(selection.list_components(), options, selection.list_roots(options))


@app.command("deploy")
@add_options(Selection, ComponentOptions)
def deploy(selection: Selection, options: ComponentOptions) -> None:
    """Install components and upload them."""
    from .commands.packaging import deploy as deploy_components

    deploy_components(selection.list_components(), options, selection.list_roots(options))


def _perform(
    method: Literal["build", "run"], selection: Selection, options: ComponentOptions, arguments: Sequence[str]
) -> None:
    from .commands.run import perform

    roots = selection.list_roots(options)
    for component in selection.list_components():
        code = perform(method, component, options, arguments, roots)
        if code:
            raise typer.Exit(code)


def main() -> None:
    """Run the console script. Options may also come before the command, as in ConCopilot."""
    sys.exit(run_guarded(lambda: execute(sys.argv[1:])))


def execute(words: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    from .toolkit import require_extra

    rest = ["--help" if word == "--help-cmd" else word for word in words]
    command = next((word for word in rest if word in _COMMANDS), "")
    if command:
        rest.remove(command)
        rest.insert(0, command)
    if "help" in rest[:2]:
        rest = [command, "--help"] if command else ["--help"]
    elif rest and not command and not rest[0].startswith("-"):
        raise UsageError(f"unknown command {rest[0]!r}; {did_you_mean(rest[0], [*_COMMANDS, 'help'])}")
    require_extra()
    if not rest:
        rest = ["--help"]
    try:
        return int(app(rest, standalone_mode=False, prog_name="conpack") or 0)
    except typer.TyperException as error:
        text = getattr(error, "message", error)
        raise UsageError(f"{text}; `conpack help COMMAND` shows the options") from error


if __name__ == "__main__":
    main()
