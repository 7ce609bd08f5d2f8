"""Command-line options that several commands share. Imports of this file must stay light: `--help` needs it."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

OutputFormat = Literal["text", "json", "stream-json"]
"""Formats of the output of `run` on standard output."""


@dataclass(frozen=True, slots=True)
class ProfileOptions:
    """Options that choose a profile and change it for one run."""

    profile: str | None = None
    model: str | None = None
    sandbox: str | None = None
    approval: str | None = None
    is_trusted: bool = False


def list_session_names() -> list[tuple[str, str]]:
    """Return printable names of sessions with their titles, for shell completion."""
    from goose_like.sessions.index import list_sessions

    sessions = [info for info in list_sessions() if info.name.isprintable()]
    titles = ["".join(filter(str.isprintable, info.summary[:60])) for info in sessions]
    # Typer parses Rich markup in the help of candidates.
    escaped = [re.sub(r"\[[a-z#/@][^\[]*?\]", r"\\\g<0>", title) for title in titles]
    return [(info.name, title) for info, title in zip(sessions, escaped, strict=True)]


def list_profile_names() -> list[str]:
    """Return the printable names of all profiles, for shell completion."""
    from goose_like.config.profile_loader import list_profile_sources

    return sorted({source.name for source in list_profile_sources() if source.name.isprintable()})


def list_toolkit_names() -> list[str]:
    """Return the names of installed toolkits, for shell completion."""
    from goose_like.core.entry_points import list_entry_points

    return list(list_entry_points("goose_like.toolkit"))


def list_model_prefixes() -> list[str]:
    """Return `PROVIDER:` for each provider, for shell completion."""
    from goose_like.core.entry_points import list_entry_points

    return [f"{name}:" for name in list_entry_points("goose_like.provider")]


ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        "-p",
        help="Profile to use [default: default, or local if no API key is set].",
        autocompletion=list_profile_names,
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="Model to use instead of the profile's, as PROVIDER:MODEL.",
        autocompletion=list_model_prefixes,
    ),
]
SandboxOption = Annotated[
    Literal["read-only", "workspace", "workspace+network", "full"] | None,
    typer.Option(
        help="read-only: write nothing. workspace: write in this folder, no network (or +network). full: no sandbox."
    ),
]
ApprovalOption = Annotated[
    Literal["auto", "ask", "plan", "yolo"] | None,
    typer.Option(
        help="auto: ask before leaving the sandbox. ask: ask before every change. plan: only read and plan. "
        "yolo: never ask."
    ),
]
TrustOption = Annotated[bool, typer.Option("--trust", help="Use the project's .goose-like/profiles.yaml this time.")]
SessionArgument = Annotated[str, typer.Argument(help="Session name.", autocompletion=list_session_names)]
