"""The command `goose-like mcp`: servers by hand."""

from typing import Annotated, Literal

import typer

from goose_like.core.errors import UsageError
from goose_like.launch.command_line import ProfileOptions
from goose_like.launch.options import ProfileOption, add_profile_options

NameArgument = Annotated[str, typer.Argument(help="The server.", metavar="NAME")]

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command(
    "add",
    epilog="Example: goose-like mcp add git -- mcp-server-git --repository .",
    context_settings={"ignore_unknown_options": True},  # those of the server's program, also without `--`
)
def mcp_add(
    name: Annotated[str, typer.Argument(help="A name of your choice.", metavar="NAME")] = "",
    words: Annotated[
        list[str] | None, typer.Argument(help="Its command behind `--`, or its URL.", metavar="URL | -- COMMAND...")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(help="Variable of the program; NAME alone passes yours on.", metavar="NAME=VALUE"),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(help="Header of requests, e.g. 'Authorization: Bearer ${TOKEN}'.")
    ] = None,
    transport: Annotated[
        Literal["stdio", "http", "sse"] | None, typer.Option(help="Only old servers at a URL need this: sse.")
    ] = None,
    client_id: Annotated[str, typer.Option(help="Client that you registered at the server, for `mcp login`.")] = "",
    from_agent: Annotated[
        str, typer.Option("--from", help="Take over all servers of claude, codex, cursor, ..., or only NAME.")
    ] = "",
    is_started: Annotated[
        bool, typer.Option("--start/--no-start", help="Start it once, and keep what it offers.")
    ] = True,
) -> None:
    """Add a server to your own, for all projects; show what it may reach, and start it once.

    A project's own servers are in its file .mcp.json, which counts after: goose-like trust add
    """
    from .commands import adding

    options = adding.AddOptions(env or [], header or [], transport, client_id, is_started=is_started)
    if from_agent:
        adding.import_servers(from_agent, [name, *(words or [])])
    else:
        adding.add_server(name, words or [], options)


@app.command("list", epilog="Example: goose-like mcp list")
def mcp_list(profile: ProfileOption = None) -> None:
    """List the servers that hold in this folder. Nothing is started."""
    from .commands import report

    report.print_servers(profile)


@app.command("show", epilog="Example: goose-like mcp show git")
def mcp_show(name: NameArgument, profile: ProfileOption = None) -> None:
    """Show what a server may reach, and what it offered last. Nothing is started."""
    from .commands import report

    report.print_server(name, profile)


@app.command("test", epilog="Example: goose-like mcp test git")
def mcp_test(
    name: NameArgument,
    profile: ProfileOption = None,
    is_accepted: Annotated[bool, typer.Option("--accept", help="Accept what changed, without a question.")] = False,
) -> None:
    """Start a server as a session does, list what it offers, and ask about what changed; ends with 1 if it fails."""
    from .commands import trying

    trying.try_server(name, profile, is_accepted=is_accepted)


@app.command("remove", epilog="Example: goose-like mcp remove git")
def mcp_remove(name: NameArgument) -> None:
    """Remove one of your own servers, its login, and what it offered."""
    from .commands import adding

    adding.remove_server(name)


@app.command("login", epilog="Example: goose-like mcp login github")
def mcp_login(
    name: NameArgument,
    profile: ProfileOption = None,
    is_shown: Annotated[
        bool, typer.Option("--no-browser", help="Only show the page's address, for a browser elsewhere.")
    ] = False,
) -> None:
    """Log in at a server with a browser, or store the keys that its configuration names."""
    from .commands import logging_in

    logging_in.log_in(name, profile, has_browser=not is_shown)


@app.command("logout", epilog="Example: goose-like mcp logout github")
def mcp_logout(name: NameArgument, profile: ProfileOption = None) -> None:
    """Delete the login at a server from this machine."""
    from .commands import logging_in

    logging_in.log_out(name, profile)


@app.command("serve", epilog="Example: goose-like mcp serve --toolkit developer")
@add_profile_options
def mcp_serve(
    options: ProfileOptions,
    toolkit: Annotated[
        list[str] | None,
        typer.Option(help="Offer the tools of this toolkit; repeatable [default: all].", metavar="NAME"),
    ] = None,
    is_http: Annotated[
        bool, typer.Option("--http", help="Serve several agents at an address until stopped, with a token.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen on, with --http.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen on, with --http; 0 picks a free one.")
    ] = 7778,
    token: Annotated[
        str, typer.Option(envvar="GOOSE_LIKE_MCP_TOKEN", help="Token that clients must send, with --http.")
    ] = "",
    max_steps: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most model requests of all calls together.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0001, metavar="USD", help="Most US dollars of all calls together.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Most tokens of all calls together.")
    ] = None,
) -> None:
    """Offer tools, and the tool run_task, to another agent that speaks MCP and starts this command."""
    from goose_like.launch.exit import run_async

    try:
        from .serving import start
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("goose_like"):
            raise
        raise UsageError(f"{error.name} is not installed; install it: pip install 'goose-like[mcp]'") from error
    budget = {"steps": max_steps, "cost_usd": max_cost, "tokens": max_tokens}
    wanted = start.ServeOptions(options, toolkit or (), budget)
    if not is_http:
        raise typer.Exit(run_async(start.serve_stdio(wanted)))
    from .serving import http  # imported here: clients give a server little time to start

    raise typer.Exit(run_async(http.serve_http(wanted, host, port, token.strip())))
