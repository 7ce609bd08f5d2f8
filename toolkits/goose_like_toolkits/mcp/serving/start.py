"""The life of a server: open a session for it, and serve its tools over a transport until the end."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field, replace
from typing import Any, cast

import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.agent.tool_rules import apply_tool_rules
from goose_like.config.profile import Profile, ToolkitChoice
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, ProfileError, ProviderError
from goose_like.core.json_bytes import repair_json
from goose_like.core.threads import run_in_daemon_thread
from goose_like.core.tool import Tool, make_tool
from goose_like.launch.command_line import ProfileOptions
from goose_like.launch.start import SessionRequest, open_session
from goose_like.launch.start_notifier import print_warning
from goose_like.providers.base import ModelPair
from goose_like.providers.null_provider import build_null_models
from goose_like.providers.registry import choose_models, format_model_label, open_models
from goose_like.terminal.interaction import handle_signals

from .call import FrontEnd
from .prompts import Prompts
from .request_queue import RequestQueue
from .resources import Resources
from .server import ToolServer
from .tasks import ServerBudget, TaskRunner

_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of a server: its profile, the toolkits that it offers (none: all), and the budget of its models.

    `patience_s` is explained at `RequestQueue`.
    """

    profile: ProfileOptions
    toolkits: Sequence[str] = ()
    budget: Mapping[str, float | None] = field(default_factory=dict)
    patience_s: float = 60


@asynccontextmanager
async def open_server(options: ServeOptions) -> AsyncIterator[Server[Any]]:
    """Open a session in the current folder, and a server for its tools. The end of the block stops all that runs.

    Raises:
        GooseLikeError: the session cannot be opened, or there is no such toolkit.
    """
    front_end = FrontEnd(print_warning)
    async with AsyncExitStack() as stack:
        # Without a key another profile holds, whose toolkits suit a small model. Clients have a model of their own.
        chosen = replace(options.profile, profile=options.profile.profile or "default")
        opened = await stack.enter_async_context(open_session(SessionRequest(chosen), front_end))
        profile = _add_toolkits(opened.profile, options.toolkits)
        models, problem = _open_models(profile)
        for provider in models.providers:
            stack.push_async_callback(provider.close)
        if problem:
            without_cost = profile.limits.model_copy(update={"cost_usd": None})
            profile = profile.model_copy(update={"limits": without_cost})
            print_warning(f"run_task is left out, as it needs a model: {problem}")
        building = build_exchange(
            profile,
            front_end,
            session=opened.session,
            folder=opened.folder,
            project=opened.choice.project,
            models=models,
            logs_prints=True,  # standard output is for the protocol
        )
        exchange = await stack.enter_async_context(building)
        budget = ServerBudget(exchange, options.budget)
        own_tools: Mapping[str, Tool] = {}
        if not problem:
            run_task = make_tool(TaskRunner(exchange, budget).run_task)
            # Hooks see the calls of the task, not this one.
            own_tools = apply_tool_rules({run_task.name: run_task}, exchange.workspace)
        offered = _choose_tools(exchange, options.toolkits)
        prompts = Prompts(exchange, profile, opened.choice.project)
        resources = Resources(exchange, options.toolkits or list(exchange.hooks.toolkits))
        queue = RequestQueue(front_end, profile.session.answer_s, options.patience_s)
        server = ToolServer(exchange, offered, own_tools, budget, prompts, resources, queue)
        stack.push_async_callback(queue.close)
        print_warning(f"the session {opened.session.name} records all calls; `goose-like -r` and /undo take them back")
        yield server.build()


async def serve_stdio(options: ServeOptions) -> int:
    """Serve one client on standard input and output until it closes the pipe, or a signal stops the server."""
    task = asyncio.create_task(_serve_pipes(options))

    def stop() -> None:
        if not task.cancelling():  # another signal must not cancel the end of the session
            task.cancel()

    with handle_signals(stop) as signals:
        try:
            await task
        except asyncio.CancelledError:
            if not signals:
                raise
    if signals:
        return 128 + signals[0]
    return 0


async def _serve_pipes(options: ServeOptions) -> None:
    lines = cast("anyio.AsyncFile[str]", Lines())
    # A copy, because from now on prints go elsewhere.
    output = anyio.wrap_file(os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8"))
    async with open_server(options) as server, stdio_server(lines, output) as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())


class Lines:
    """The lines of standard input. A thread that waits for one does not delay the end of the process."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks: list[bytes] = []  # of the unfinished line, which may be long
        while chunk := await run_in_daemon_thread(lambda: os.read(sys.stdin.fileno(), _CHUNK_BYTES)):
            end, newline, rest = chunk.rpartition(b"\n")
            if newline:
                for line in b"".join([*chunks, end]).split(b"\n"):
                    if line.strip():
                        yield _repair(line)
                chunks = []
            chunks.append(rest)
        last = b"".join(chunks)
        if last.strip():
            yield _repair(last)


def _repair(line: bytes) -> bytes:
    """Repair a message whose text the SDK would not read. It refuses other lines by itself."""
    try:
        return repair_json(line)
    except (ValueError, RecursionError):
        return line


def _add_toolkits(profile: Profile, names: Sequence[str]) -> Profile:
    """Return the profile with these toolkits, too. Its others stay: some guard the person, and tasks use them all."""
    choices = {choice.name: choice for choice in profile.toolkits}
    for name in names:
        choices.setdefault(name, ToolkitChoice(name=name))
    return profile.model_copy(update={"toolkits": tuple(choices.values())})


def _choose_tools(exchange: Exchange, toolkits: Sequence[str]) -> Mapping[str, Tool]:
    """Return the tools of some toolkits, or of all. What clients of other protocols run themselves is left out."""
    names = set(exchange.tools)
    if toolkits:
        names = set()
        for toolkit in toolkits:
            names.update(tool.name for tool in exchange.hooks.toolkits[toolkit].tools())
    offered = {}
    for name, tool in exchange.tools.items():
        if name in names and not tool.options.remote:
            offered[name] = tool
    return offered


def _open_models(profile: Profile) -> tuple[ModelPair, str]:
    """Open the models of a profile. Without any, tools still work: return why, and models that answer with that.

    Raises:
        ProfileError: the profile names a wrong model.
    """
    label = ""  # nobody knows it where no provider has a key
    try:
        label = format_model_label(choose_models(profile)[0])
        return open_models(profile), ""
    except ProfileError:
        raise
    except GooseLikeError as error:
        return build_null_models(ProviderError(str(error)), label), str(error)
