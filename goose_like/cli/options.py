"""Command-line options that several commands share. Imports of this file must stay light: `--help` needs it."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, cast

import typer

from goose_like.config.entry_points import list_names

P = ParamSpec("P")
OutputFormat = Literal["text", "json", "stream-json"]
"""Formats of the output of `run` on standard output."""


def list_session_names() -> Iterator[tuple[str, str]]:
    """Yield printable names of sessions with their titles, for shell completion."""
    from goose_like.sessions.index import list_sessions

    for info in list_sessions():
        if info.name.isprintable():
            title = "".join(filter(str.isprintable, info.summary[:60]))
            yield info.name, re.sub(r"\[[a-z#/@][^\[]*?\]", r"\\\g<0>", title)  # Typer parses Rich markup here


def list_profile_names() -> list[str]:
    """Return the printable names of all profiles, for shell completion."""
    from goose_like.config.profile_loader import list_profile_sources

    return sorted({source.name for source in list_profile_sources() if source.name.isprintable()})


def list_own_profiles() -> list[str]:
    """Return the printable names of profiles in the person's configuration folder, for shell completion."""
    from goose_like.config.paths import config_folder
    from goose_like.config.profile_loader import list_profile_sources

    sources = [source for source in list_profile_sources() if source.file.is_relative_to(config_folder())]
    return sorted({source.name for source in sources if source.name.isprintable()})


def list_model_prefixes() -> list[str]:
    """Return `PROVIDER:` for each provider, for shell completion."""
    return [f"{name}:" for name in list_names("goose_like.provider")]


ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-P",
        help="Profile to use [default: default, or local if no API key is set].",
        autocompletion=list_profile_names,
    ),
]
SandboxOption = Annotated[
    Literal["read-only", "workspace", "workspace+network", "full"] | None,
    typer.Option(
        help="read-only: write nothing. workspace: write in this folder, no network (or +network). full: no sandbox."
    ),
]
ForkOption = Annotated[bool, typer.Option("--fork", help="Resume a copy; the session itself stays unchanged.")]
WorktreeOption = Annotated[
    str | None,
    typer.Option("--worktree", "-w", metavar="[NAME]", help="Work in a new git worktree, on the branch worktree-NAME."),
]
SessionArgument = Annotated[str, typer.Argument(help="Session name.", autocompletion=list_session_names)]


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """Options that choose a profile and change it for one run."""

    profile: ProfileOption = None
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="Model to use instead of the profile's, as PROVIDER:MODEL.",
            autocompletion=list_model_prefixes,
        ),
    ] = None
    sandbox: SandboxOption = None
    approval: Annotated[
        Literal["auto", "ask", "plan", "yolo"] | None,
        typer.Option(
            help="auto: ask before leaving the sandbox. ask: ask before every change. plan: only read and plan. "
            "yolo: never ask."
        ),
    ] = None
    is_trusted: Annotated[
        bool, typer.Option("--trust", help="Use the project's .goose-like/profiles.yaml this time.")
    ] = False
    add_dirs: Annotated[
        list[str] | None,
        typer.Option("--add-dir", metavar="DIR", help="Also show this folder, read-only, this time; repeatable."),
    ] = None
    allowed_tools: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-tools",
            metavar="RULE,...",
            help="Allow 'git push', tool:NAME, path:GLOB ... this time; repeatable.",
        ),
    ] = None


def add_profile_options(command: Callable[Concatenate[ProfileOptions, P], None]) -> Callable[..., None]:
    """Give a command the options of `ProfileOptions`. The command takes them as one value, its first parameter."""
    return add_options(ProfileOptions)(command)


def add_options(*kinds: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of these dataclasses, whose values are its first parameters."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        options = [inspect.signature(kind).parameters for kind in kinds]
        others = list(inspect.signature(command).parameters.values())[len(kinds) :]

        @wraps(command)
        def run(**values: Any) -> None:
            chosen = [
                kind(**{name: values.pop(name) for name in names}) for kind, names in zip(kinds, options, strict=True)
            ]
            command(*chosen, **values)

        added = [parameter for names in options for parameter in names.values()]
        cast(Any, run).__signature__ = inspect.Signature([*others, *added])  # which typer reads
        return run

    return decorate
