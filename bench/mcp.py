"""Measure MCP servers. `python bench/mcp.py [--rounds N]`.

First the time that servers add to a start that does not use them. Then the tokens that 150 tools add to the first
request. Last, calls of a tool in a session, compared with the same calls through a bare client of the SDK to a server
of its own, in turn.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goose_like_toolkits.mcp.config import load_servers
from goose_like_toolkits.mcp.definitions import Definitions, DefinitionStore, ToolDefinition
from server import print_medians, read_processor_s, record, shuffle

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.config.profile import Profile
from goose_like.core.errors import ProviderError
from goose_like.core.notifier import Recorder
from goose_like.providers.null_provider import build_null_models

TOOLS = 150
TARGET_TOKENS = 2_000
TARGET_START_MS = 5
TARGET_RATIO = 1.3
CALLS = 200
STARTS = (0, 1, 10)
"""Numbers of servers."""
SETTLING_S = 3
"""Definitions that changed a moment ago are parsed at each start."""

SERVER = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("numbers")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run("stdio")
'''


def make_tools() -> tuple[ToolDefinition, ...]:
    """Make definitions as long as those of large servers: about 300 tokens each."""
    text = "Searches the items of a project by words, state, owner and date, and gives a page of them. " * 8
    properties = {name: {"type": "string", "description": "A condition on it."} for name in ("text", "state", "owner")}
    schema = {"type": "object", "properties": properties, "required": ["text"]}
    return tuple(
        ToolDefinition(name=f"search_{number}", description=text, input_schema=schema) for number in range(TOOLS)
    )


@asynccontextmanager
async def open_exchange(servers: Mapping[str, Any], folder: Path) -> AsyncIterator[Exchange]:
    """Open a session with these servers and no model."""
    toolkits = [{"name": "developer"}]
    if servers:
        toolkits.append({"name": "mcp", "config": dict(servers)})
    profile = Profile.model_validate({"name": "bench", "toolkits": toolkits})
    models = build_null_models(ProviderError("no model"), "scripted:none")
    async with build_exchange(profile, Recorder(), models=models, folder=folder) as exchange:
        yield exchange


def count_tokens(exchange: Exchange) -> int:
    """Estimate the tokens of the prompt and all definitions."""
    tools = [(tool.spec.name, tool.spec.description, tool.spec.schema) for tool in exchange.tools.values()]
    return len((exchange.system + json.dumps(tools)).encode()) // 4


async def measure_tokens(folder: Path) -> int:
    """Return the tokens that the tools of one large server add."""
    servers = {"large": {"command": sys.executable}}
    (server,) = load_servers(servers, None)[0]
    DefinitionStore().save(server, Definitions(era="2025-11-25", tools=make_tools()))
    async with open_exchange({}, folder) as exchange:
        before = count_tokens(exchange)
    async with open_exchange(servers, folder) as exchange:
        return count_tokens(exchange) - before


def configure(home: Path, count: int) -> None:
    """Write a configuration with servers of 20 tools each, as if each had been started before."""
    entries = {f"server_{number}": {"command": f"large-{number}"} for number in range(count)}
    (home / "config").mkdir(parents=True)
    if count:
        (home / "config/mcp.json").write_text(json.dumps({"mcpServers": entries}))
    os.environ["GOOSE_LIKE_HOME"] = str(home)
    for server in load_servers({}, None)[0]:
        DefinitionStore().save(server, Definitions(era="2025-11-25", tools=make_tools()[:20]))


async def measure_starts(top: Path, rounds: int) -> None:
    """Print the time from the start of a process to its first request, with and without servers that nobody uses."""
    homes: dict[str, Path] = {}
    for count in STARTS:
        subject = f"servers: {count}"
        homes[subject] = top / f"home {count}"
        configure(homes[subject], count)
    await asyncio.sleep(SETTLING_S)
    starts: dict[str, list[float]] = {subject: [] for subject in homes}
    work: dict[str, list[float]] = {subject: [] for subject in homes}
    words = [sys.executable, "-m", "goose_like", "run", "--model", "openai:bench", "--sandbox", "full", "go"]
    for number in range(rounds + 1):  # the first round fills the caches
        for subject, home in shuffle(homes.items(), number):
            env = {**os.environ, "GOOSE_LIKE_HOME": str(home)}
            before_s = read_processor_s()
            recording, start_s = await record(words, env, 1, str(top))
            assert (b"find_tools" in recording.bodies[0]) == (subject != "servers: 0")
            if number:
                starts[subject].append(start_s * 1000)
                work[subject].append((read_processor_s() - before_s) * 1000)
    print(f"one server should cost at most {TARGET_START_MS} ms")
    print_medians("process start to first request", starts)
    print_medians("processor time of the whole process", work)


async def time_calls(call: Any) -> float:
    """Return the seconds of one call, the median of many."""
    took = []
    for number in range(CALLS):
        begun = time.perf_counter()
        await call(number)
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


async def measure_calls(folder: Path, rounds: int) -> list[tuple[float, float]]:
    """Return the seconds of a call in a session, and through a bare client, in each round."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    file = folder / "server.py"
    file.write_text(SERVER)
    servers = {"numbers": {"command": sys.executable, "args": [str(file)]}}
    transport = stdio_client(StdioServerParameters(command=sys.executable, args=[str(file)]))
    measured = []
    async with open_exchange(servers, folder) as exchange, Client(transport) as client:
        await exchange.tools["find_tools"].function(query="add")

        async def call_ours(number: int) -> None:
            arguments = {"name": "mcp__numbers__add", "arguments": {"a": number, "b": 1}}
            assert await exchange.tools["call_tool"].function(**arguments) == str(number + 1)

        async def call_bare(number: int) -> None:
            result = await client.call_tool("add", {"a": number, "b": 1})
            assert result.content[0].text == str(number + 1)

        for _ in range(rounds):
            measured.append((await time_calls(call_ours), await time_calls(call_bare)))
    return measured


async def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        await measure_starts(top, rounds)
        os.environ["GOOSE_LIKE_HOME"] = str(top / "other home")
        tokens = await measure_tokens(top)
        calls = await measure_calls(top, max(3, rounds // 3))
    print(f"\n{TOOLS} tools: {tokens:,} tokens in the first request (target {TARGET_TOKENS:,})")
    ratio = statistics.median(ours / bare for ours, bare in calls)
    ours_ms = statistics.median(ours for ours, _ in calls) * 1000
    print(f"a call: {ours_ms:.2f} ms, {ratio:.2f}x a bare client (target {TARGET_RATIO}x)")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    sys.path.remove(str(Path(__file__).parent))  # this file has the name of the SDK's package
    asyncio.run(main(options.parse_args().rounds))
