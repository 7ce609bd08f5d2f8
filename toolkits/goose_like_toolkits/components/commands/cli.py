"""The options that `goose-like component` and `conpack` share. Every start imports this file, so imports stay light."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from goose_like.launch.options import ModelOption, ProfileOption, SandboxOption


@dataclass(frozen=True, slots=True)
class ComponentOptions:
    """Options of the commands that build, run, install and deploy components."""

    working_directory: Annotated[
        Path, typer.Option("--working-directory", "-C", help="Where it runs, and its .runtime is.", metavar="DIR")
    ] = Path()
    settings: Annotated[
        Path | None, typer.Option(help="The settings file [default: ~/.concopilot/settings.yaml].", metavar="FILE")
    ] = None
    skip_setup: Annotated[bool, typer.Option("--skip-setup", help="Install nothing of setup.pip.")] = False
    pip_params: Annotated[str, typer.Option(help="More words for pip, e.g. '--no-index --find-links wheels'.")] = ""
    profile: ProfileOption = None
    model: ModelOption = None
    sandbox: SandboxOption = None
    approval: Annotated[
        Literal["auto", "ask", "yolo"] | None,
        typer.Option(help="auto: ask before leaving the sandbox. yolo: never ask, such as without a terminal."),
    ] = None
    repo_user_name: Annotated[str | None, typer.Option(help="User name for `deploy`.")] = None
    repo_user_pwd: Annotated[
        str | None, typer.Option(help="Its password; better in the variable.", envvar="CONPACK_REPO_USER_PWD")
    ] = None
    gpg_passphrase: Annotated[
        str | None,
        typer.Option(help="Sign with it in `deploy`; better in the variable.", envvar="CONPACK_GPG_PASSPHRASE"),
    ] = None
    gnupg_home: Annotated[Path | None, typer.Option(help="The folder of GPG keys.", metavar="DIR")] = None
