"""`goose-like component`: components by hand. Imported at every start, so it is light."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from goose_like.cli.options import ProfileOption, SandboxOption

SettingsOption = Annotated[
    Path | None, typer.Option(help="The settings file [default: ~/.concopilot/settings.yaml].", metavar="FILE")
]
RepositoryOption = Annotated[
    Path | None, typer.Option(help="The local repository, in the place of the settings'.", metavar="DIR")
]
WorkingOption = Annotated[
    Path, typer.Option("--working-directory", "-C", help="Where it runs, and its .runtime is.", metavar="DIR")
]
SetupOption = Annotated[bool, typer.Option("--skip-setup", help="Install nothing of its setup.pip.")]
PipOption = Annotated[str, typer.Option(help="More words for pip, e.g. '--no-index --find-links wheels'.")]


def _path(text: str) -> Path:
    from goose_like_toolkits.components.repositories.sources import a_path

    return a_path(text)


PathsArgument = Annotated[
    list[Path], typer.Argument(help="Component folders, or trees of them.", metavar="PATH...", parser=_path)
]
WhichArgument = Annotated[str, typer.Argument(help="GROUP:ARTIFACT:VERSION, or its folder.", metavar="COMPONENT")]
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON.")]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="ConCopilot components: list, show, check, write, install, run and deploy them.",
)


def _types() -> list[str]:
    from goose_like_toolkits.components.commands.scaffold import TYPES

    return list(TYPES)


@app.callback()
def _component() -> None:
    from goose_like_toolkits.components.commands.extra import require_extra

    require_extra()


def _tell(words: str) -> None:
    from goose_like.terminal.escape import escape_controls

    print(escape_controls(words), file=sys.stderr, flush=True)


def _said(words: str) -> None:
    from goose_like.terminal.escape import escape_controls

    print(escape_controls(words), flush=True)


def _repositories(settings: Path | None, repository: Path | None) -> Any:
    from goose_like_toolkits.components.repositories.repository import Repositories
    from goose_like_toolkits.components.repositories.settings import read_settings

    return Repositories.of(read_settings(settings), repository, _tell)


@app.command("list", epilog="Example: goose-like component list")
def component_list(
    repository: RepositoryOption = None, settings: SettingsOption = None, json: JsonOption = False
) -> None:
    """List the components that are here: installed ones, and those that come along."""
    from goose_like_toolkits.components.commands.report import list_components

    list_components(_repositories(settings, repository), is_json=json)


@app.command("show", epilog="Example: goose-like component show org.example:ocr:0.1.0")
def component_show(
    component: WhichArgument,
    within: Annotated[
        list[Path] | None,
        typer.Option(help="A config.yaml that includes it, and may override its config; the outermost last."),
    ] = None,
    instance: Annotated[str | None, typer.Option(help="Which of several in this folder, by its instance_id.")] = None,
    repository: RepositoryOption = None,
    settings: SettingsOption = None,
    json: JsonOption = False,
) -> None:
    """Draw a component's commands with their parameters, and tell where each key of its config comes from."""
    from goose_like_toolkits.components.commands.report import show_component

    where = _repositories(settings, repository)
    show_component(where, component, within or [], instance_id=instance, is_json=json)


@app.command("check", epilog="Example: goose-like component check .")
def component_check(paths: PathsArgument) -> None:
    """Tell what is wrong, each with its file and line; ends with 1 if anything is."""
    from goose_like_toolkits.components.commands.report import check_components

    raise typer.Exit(check_components(paths))


@app.command("new", epilog="Example: goose-like component new plugin word_count")
def component_new(
    type_name: Annotated[
        str,
        typer.Argument(
            help="plugin, resource, llm, cerebrum, interactor, message_manager, plugin_manager, resource_manager, "
            "storage, user_interface, plugin_prompt_generator or copilot.",
            metavar="TYPE",
            autocompletion=_types,
        ),
    ],
    name: Annotated[str | None, typer.Argument(help="Its folder, and the package of its code.")] = None,
    path: Annotated[Path, typer.Option(help="Where to write its folder.", metavar="DIR")] = Path(),
    group_id: Annotated[str, typer.Option(help="Whose it is, e.g. a domain's name from its end.")] = "org.example",
) -> None:
    """Write a component: its configuration and code that works."""
    from goose_like_toolkits.components.commands.scaffold import write_component

    files = write_component(type_name, name, path, group_id)
    for file in files:
        _said(f"wrote {file}")
    if type_name == "copilot":
        folders = dict.fromkeys(str(file.parent) for file in files if not file.parent.name.startswith("."))
        _tell(f"it finds its interactor once both are installed: goose-like component install {' '.join(folders)}")


@app.command("install", epilog="Example: goose-like component install .")
def component_install(
    components: Annotated[
        list[str],
        typer.Argument(help="Component folders, trees of them, or GROUP:ARTIFACT:VERSION.", metavar="COMPONENT..."),
    ],
    repository: RepositoryOption = None,
    settings: SettingsOption = None,
) -> None:
    """Check components and put them in the local repository, those of folders all or none; fetch what is named."""
    from goose_like_toolkits.components.repositories.packing import install
    from goose_like_toolkits.components.repositories.sources import parted

    repositories = _repositories(settings, repository)
    paths, named = parted(components)
    if paths:
        install(paths, repositories.local, _said)
    for coordinates in named:
        _said(str(repositories.find(coordinates)))


@app.command("fetch", epilog="Example: goose-like component fetch org.example:ocr:0.1.0")
def component_fetch(
    components: Annotated[list[str], typer.Argument(help="Which.", metavar="GROUP:ARTIFACT:VERSION...")],
    anew: Annotated[bool, typer.Option("--anew", help="Also what is here, e.g. an older snapshot.")] = False,
    repository: RepositoryOption = None,
    settings: SettingsOption = None,
) -> None:
    """Get components from the remote repositories of the settings, with checksums and signatures verified."""
    from goose_like_toolkits.components.described.coordinates import parse

    repositories = _repositories(settings, repository)
    for coordinates in map(parse, components):
        _said(str(repositories.fetch(coordinates) if anew else repositories.find(coordinates)))


@app.command("build", epilog="Example: goose-like component build ./word_count")
def component_build(
    component: WhichArgument,
    working_directory: WorkingOption = Path(),
    skip_setup: SetupOption = False,
    pip_params: PipOption = "",
    profile: ProfileOption = None,
    sandbox: SandboxOption = None,
    repository: RepositoryOption = None,
    settings: SettingsOption = None,
) -> None:
    """Place its configuration in .runtime, install what it needs, and construct it."""
    from goose_like_toolkits.components.commands.running import build

    how = (profile, sandbox)
    found = _repositories(settings, repository)
    raise typer.Exit(build(_wanted(found, component, working_directory, skip_setup, pip_params, [], *how)))


@app.command("run", epilog="Example: goose-like component run ./my_copilot")
def component_run(
    component: WhichArgument,
    arguments: Annotated[list[str] | None, typer.Argument(help="For its constructor.")] = None,
    working_directory: WorkingOption = Path(),
    skip_setup: SetupOption = False,
    pip_params: PipOption = "",
    profile: ProfileOption = None,
    sandbox: SandboxOption = None,
    repository: RepositoryOption = None,
    settings: SettingsOption = None,
) -> None:
    """Build a copilot and let it work."""
    from goose_like_toolkits.components.commands.running import run

    how = (profile, sandbox)
    found = _repositories(settings, repository)
    raise typer.Exit(run(_wanted(found, component, working_directory, skip_setup, pip_params, arguments or [], *how)))


@app.command("deploy", epilog="Example: goose-like component deploy . --to ~/shared")
def component_deploy(
    paths: PathsArgument,
    to: Annotated[
        str | None, typer.Option(help="URL or folder of the remote repository [default: the settings' first].")
    ] = None,
    repo_user_name: Annotated[str | None, typer.Option(help="User name at the remote repository.")] = None,
    repo_user_pwd: Annotated[
        str | None, typer.Option(help="Its password; better in the variable.", envvar="CONPACK_REPO_USER_PWD")
    ] = None,
    gpg_passphrase: Annotated[
        str | None, typer.Option(help="Sign with it; better in the variable CONPACK_GPG_PASSPHRASE.")
    ] = None,
    gnupg_home: Annotated[Path | None, typer.Option(help="The folder of GPG keys.", metavar="DIR")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="With --to: name and password may go by http, for all to read.")
    ] = False,
    repository: RepositoryOption = None,
    settings: SettingsOption = None,
) -> None:
    """Install components, then send them to a remote repository, with checksums and signatures."""
    from goose_like_toolkits.components.repositories.packing import Sent, deploy_all
    from goose_like_toolkits.components.repositories.repository import LocalRepository
    from goose_like_toolkits.components.repositories.settings import read_settings

    read = read_settings(settings)
    sent = Sent(to, repo_user_name, repo_user_pwd, gpg_passphrase, gnupg_home, insecure)
    deploy_all(paths, read, LocalRepository(repository or read.local), sent, _said)


def _wanted(
    repositories: Any,
    component: str,
    working_directory: Path,
    is_setup_skipped: bool,
    pip_params: str,
    arguments: list[str],
    profile: str | None,
    sandbox: SandboxOption,
) -> Any:
    from goose_like_toolkits.components.commands.running import Wanted
    from goose_like_toolkits.components.repositories.sources import meant

    return Wanted(
        repositories=repositories,
        component=meant(component),
        working_directory=working_directory,
        is_setup_skipped=is_setup_skipped,
        pip_parameters=tuple(pip_params.split()),
        arguments=tuple(arguments),
        profile=profile,
        sandbox=sandbox,
    )
