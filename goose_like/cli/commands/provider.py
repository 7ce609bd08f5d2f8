"""The commands `provider ...`."""

from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List and check model providers, and store API keys."
)

NameArgument = Annotated[str, typer.Argument(help="Provider.")]


@app.command("list", epilog="Example: goose-like provider list")
def list_() -> None:
    """List providers and what each still needs."""
    from .inspect import print_providers

    print_providers()


@app.command(epilog="Example: goose-like provider check openai")
def check(name: Annotated[str, typer.Argument(help="Provider, or PROVIDER:MODEL.")]) -> None:
    """Ask a provider for its models, to check the server and the API key. This costs nothing."""
    from goose_like.cli.launch import run_and_close

    from .inspect import check_provider

    raise typer.Exit(run_and_close(check_provider(name)))


@app.command(epilog="Example: goose-like provider login openai < key.txt")
def login(
    name: NameArgument,
    no_check: Annotated[bool, typer.Option("--no-check", help="Store the key without asking the server.")] = False,
) -> None:
    """Store an API key, typed at a hidden prompt or read from standard input."""
    from goose_like.cli.launch import run_and_close

    from .provider_login import log_in, read_key

    raise typer.Exit(run_and_close(log_in(name, read_key(name), is_checked=not no_check)))


@app.command(epilog="Example: goose-like provider logout openai")
def logout(name: NameArgument) -> None:
    """Delete the API key that `provider login` stored."""
    from .provider_login import log_out

    log_out(name)
