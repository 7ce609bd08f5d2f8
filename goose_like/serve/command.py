"""The command `goose-like serve`."""

from typing import Annotated, Any

import typer

from goose_like.core.errors import UsageError

app = typer.Typer(
    rich_markup_mode=None,
    subcommand_metavar="",  # there are no subcommands
)


@app.callback(invoke_without_command=True, epilog="Example: goose-like serve --profile openbb --port 7777")
def serve(
    profile: Annotated[
        list[str], typer.Option("--profile", "-P", help="Profile to serve; repeatable, for clients that choose.")
    ] = ["openbb"],  # noqa: B006
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="PROVIDER:MODEL instead of the profile's processor.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any address except this machine's own requires a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen on; 0 picks a free one.")
    ] = 7777,
    token: Annotated[
        str, typer.Option(envvar="GOOSE_LIKE_SERVE_TOKEN", help="Token that clients must send as a bearer token.")
    ] = "",
    origin: Annotated[
        list[str] | None, typer.Option(help="Allow pages of this origin, too, e.g. https://example.com; repeatable.")
    ] = None,
    file_host: Annotated[
        list[str] | None, typer.Option(help="Fetch files also from this host of a private network; repeatable.")
    ] = None,
    toolkit: Annotated[
        list[str] | None, typer.Option(help="Serve this toolkit although it can access this machine; repeatable.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, metavar="N", help="Number of worker processes.")] = 1,
    log_content: Annotated[bool, typer.Option("--log-content", help="Log questions and answers, too.")] = False,
    max_body: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum megabytes of a request.")] = 32,
    max_messages: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum messages of a request.")] = 2000,
    max_concurrent: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum queries at once.")] = 256,
    max_concurrent_per_client: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum queries at once from one address, per worker.")
    ] = 64,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0001, metavar="USD", help="Maximum US dollars of a request.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.001, metavar="SECONDS", help="Maximum seconds of a request.")] = 600.0,
    drain: Annotated[
        float,
        typer.Option(
            min=0.0, metavar="SECONDS", help="Seconds that running answers get to finish when the server stops."
        ),
    ] = 30.0,
) -> None:
    """Serve profiles over HTTP to OpenBB Workspace and to clients of OpenAI's API until the server is stopped."""
    from .settings import Settings, load_signing_key, parse_origins

    settings = Settings(
        host=host,
        token=token.strip(),  # secrets in files end with a line break
        signing_key=load_signing_key(),
        origins=parse_origins(origin or ()),
        file_hosts=tuple(file_host or ()),
        toolkits=tuple(toolkit or ()),
        workers=workers,
        log_content=log_content,
        max_body_bytes=max_body * 1_000_000,
        max_messages=max_messages,
        max_concurrent=max_concurrent,
        max_concurrent_per_client=max_concurrent_per_client,
        max_cost_usd=max_cost,
        query_timeout_s=timeout,
        shutdown_timeout_s=drain,
    )
    raise typer.Exit(_import_process().run_server(profile, model, port, settings))


def _import_process() -> Any:
    try:
        from . import process
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("goose_like"):
            raise
        raise UsageError(
            f"{error.name} is not installed; install the server's packages: pip install 'goose-like[serve]'"
        ) from error
    return process
