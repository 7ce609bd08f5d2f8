"""Measure MCP servers. `python bench/mcp.py [--rounds N]`.

First the tokens that 150 tools add to the first request. Then the time that a configured but unused server adds to a
start: each start is a new process that has imported the modules of a session. Last, calls of a tool in a session,
compared with the same calls through a bare client of the SDK to a server of its own, in turn.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goose_like_toolkits.mcp.config import load_servers
from goose_like_toolkits.mcp.definitions import Definitions, ToolDefinition
from goose_like_toolkits.mcp.store import DefinitionStore

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

SERVER = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("numbers")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


server.run("stdio")
'''

START = """
import time
import goose_like.agent.build, goose_like.sdk.testing
from pathlib import Path
from goose_like.agent.present_toolkits import find_present_toolkits
from goose_like.config.entry_points import load_entry_point
from goose_like.core.notifier import Recorder
begun = time.process_time()
recorder = Recorder()
for name in find_present_toolkits(Path.cwd(), None, recorder):
    toolkit = load_entry_point("goose_like.toolkit", name)(recorder, {}, config={})
    toolkit.tools()
    toolkit.prompt()
took = time.process_time() - begun
import sys
assert "mcp" not in sys.modules
print(took * 1000)
"""


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


def measure_start(home: Path) -> float:
    """Return the milliseconds of a processor for looking for servers, and making their toolkit, in a new process."""
    env = {**os.environ, "GOOSE_LIKE_HOME": str(home), "PYTHONPYCACHEPREFIX": str(home / "cache")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", START], env=env, capture_output=True, text=True, check=True, cwd=home)
    return float(done.stdout)


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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    rounds = options.parse_args().rounds
    sys.path.remove(str(Path(__file__).parent))  # this file has the name of the SDK's package
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        homes = {name: top / name for name in ("one server", "none")}
        for name, home in homes.items():
            (home / "config").mkdir(parents=True)
            if name == "one server":
                (home / "config/mcp.json").write_text('{"mcpServers": {"large": {"command": "large"}}}')
        os.environ["GOOSE_LIKE_HOME"] = str(homes["none"])
        tokens = asyncio.run(measure_tokens(top))
        os.environ["GOOSE_LIKE_HOME"] = str(homes["one server"])
        (server,) = load_servers({}, None)[0]
        DefinitionStore().save(server, Definitions(era="2025-11-25", tools=make_tools()[:20]))
        starts: dict[str, list[float]] = {name: [] for name in homes}
        for home in homes.values():
            measure_start(home)  # compiles the modules
        for _ in range(rounds):
            for name, home in homes.items():
                starts[name].append(measure_start(home))
        os.environ["GOOSE_LIKE_HOME"] = str(homes["none"])
        calls = asyncio.run(measure_calls(top, rounds))
    print(f"{TOOLS} tools: {tokens:,} tokens in the first request (target {TARGET_TOKENS:,})")
    added = statistics.median(starts["one server"]) - statistics.median(starts["none"])
    best = min(starts["one server"]) - min(starts["none"])
    print(f"start with an unused server of 20 tools: {added:.1f} ms more (best {best:.1f}; target {TARGET_START_MS})")
    ratio = statistics.median(ours / bare for ours, bare in calls)
    ours_ms = statistics.median(ours for ours, _ in calls) * 1000
    print(f"a call: {ours_ms:.2f} ms, {ratio:.2f}x a bare client (target {TARGET_RATIO}x)")


if __name__ == "__main__":
    main()
