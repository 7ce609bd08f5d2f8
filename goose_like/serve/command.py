"""`goose-like serve`. Imported at every start, so it is light."""

import os
from typing import Annotated

import typer

app = typer.Typer(
    rich_markup_mode=None,
    subcommand_metavar="",  # it has none
    help="Make a profile available to OpenBB Workspace over HTTP.",
)


@app.callback(
    invoke_without_command=True,
    epilog="Example: goose-like serve --profile openbb --port 7777",
)
def serve(
    profile: Annotated[str, typer.Option("--profile", "-p", help="Profile to serve.")] = "openbb",
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="PROVIDER:MODEL instead of the profile's processor.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen; beyond this machine a token is needed.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Which port; 0 picks one.")] = 7777,
    token: Annotated[
        str | None, typer.Option(help="What clients must send as `Authorization: Bearer`; or GOOSE_LIKE_SERVE_TOKEN.")
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option(help="A page's address that may ask, beside the Workspace's; repeat it.")
    ] = None,
    toolkit: Annotated[
        list[str] | None, typer.Option(help="Serve this toolkit although it touches the machine; repeat it.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that answer.")] = 1,
    log_content: Annotated[bool, typer.Option("--log-content", help="Log what is asked and answered, too.")] = False,
    max_body: Annotated[int, typer.Option(min=1, help="Megabytes of a request at most.")] = 32,
    max_messages: Annotated[int, typer.Option(min=1, help="Messages of a request at most.")] = 2000,
    max_concurrent: Annotated[int, typer.Option(min=1, help="Queries at once at most.")] = 256,
    max_concurrent_per_client: Annotated[
        int, typer.Option(min=1, help="Queries of one address at once at most, in a worker.")
    ] = 64,
    max_cost: Annotated[float | None, typer.Option(min=0.000001, help="US dollars of a request at most.")] = None,
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds of a request at most.")] = 600.0,
    drain: Annotated[float, typer.Option(min=0.0, help="Seconds that running answers have when it is stopped.")] = 30.0,
) -> None:
    """Serve a profile over HTTP until it is told to stop, as a copilot of OpenBB Workspace."""
    from goose_like.core.errors import GooseLikeError

    from .settings import TOKEN, Settings, origins, seal_key

    settings = Settings(
        host=host,
        token=(token or os.environ.get(TOKEN, "")).strip(),  # a line of a file of secrets ends in one
        seal_key=seal_key(),
        origins=origins(origin or ()),
        toolkits=tuple(toolkit or ()),
        workers=workers,
        log_content=log_content,
        max_body_bytes=max_body * 1_000_000,
        max_messages=max_messages,
        max_concurrent=max_concurrent,
        max_concurrent_per_client=max_concurrent_per_client,
        cost_usd=max_cost,
        time_s=timeout,
        drain_s=drain,
    )
    try:
        from .process import Served
        from .process import serve as run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("goose_like"):
            raise
        raise GooseLikeError(
            f"{error.name} is missing; install what serving needs: pip install 'goose-like[serve]'"
        ) from error
    raise typer.Exit(run(Served(profile, model, port), settings))
