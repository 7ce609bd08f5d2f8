"""Options that several commands share, as Typer takes them. Imports of this file must stay light: `--help` needs it."""

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, cast, get_args, get_type_hints

import typer

from .command_line import Option, ProfileOptions, SessionOptions, list_session_names

P = ParamSpec("P")


def _make_typer_option(option: Option) -> Any:
    return typer.Option(
        *option.names,
        metavar=option.metavar,
        min=option.minimum,
        help=option.help,
        autocompletion=option.complete,
    )


def _find_option(kind: type, field: str) -> Any:
    """Find an option of a dataclass of options, as Typer takes it."""
    _, option = get_args(get_type_hints(kind, include_extras=True)[field])
    return _make_typer_option(option)


ProfileOption = Annotated[str | None, _find_option(ProfileOptions, "profile")]
ModelOption = Annotated[str | None, _find_option(ProfileOptions, "model")]
SandboxOption = Annotated[
    Literal["read-only", "workspace", "workspace+network", "full"] | None, _find_option(ProfileOptions, "sandbox")
]
ForkOption = Annotated[bool, _find_option(SessionOptions, "is_forked")]
WorktreeOption = Annotated[str | None, _find_option(SessionOptions, "worktree")]
SessionArgument = Annotated[str, typer.Argument(help="Session name.", autocompletion=list_session_names)]
OptionalSessionArgument = Annotated[
    str | None,
    typer.Argument(help="Session name [default: the newest of this folder].", autocompletion=list_session_names),
]


def list_own_profiles() -> list[str]:
    """Return the printable names of profiles in the person's configuration folder, for shell completion."""
    from goose_like.config.paths import config_folder
    from goose_like.config.profile_loader import list_profile_sources

    sources = [source for source in list_profile_sources() if source.file.is_relative_to(config_folder())]
    return sorted({source.name for source in sources if source.name.isprintable()})


def add_profile_options(command: Callable[Concatenate[ProfileOptions, P], None]) -> Callable[..., None]:
    """Give a command the options of `ProfileOptions`. The command takes them as one value, its first parameter."""
    return add_options(ProfileOptions)(command)


def add_options(*kinds: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of these dataclasses, whose values are its first parameters."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        options = [list(_iterate_parameters(kind)) for kind in kinds]
        others = list(inspect.signature(command).parameters.values())[len(kinds) :]

        @wraps(command)
        def run(**values: Any) -> None:
            chosen = []
            for kind, parameters in zip(kinds, options, strict=True):
                fields = {parameter.name: values.pop(parameter.name) for parameter in parameters}
                chosen.append(kind(**fields))
            command(*chosen, **values)

        added = [parameter for parameters in options for parameter in parameters]
        cast(Any, run).__signature__ = inspect.Signature([*others, *added])  # which typer reads
        return run

    return decorate


def _iterate_parameters(kind: type[Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a dataclass of options, with the options as Typer takes them."""
    hints = get_type_hints(kind, include_extras=True)
    for name, parameter in inspect.signature(kind).parameters.items():
        value_type, *notes = get_args(hints[name]) or (hints[name],)
        if notes and isinstance(notes[0], Option):
            parameter = parameter.replace(annotation=Annotated[value_type, _make_typer_option(notes[0])])
        yield parameter
