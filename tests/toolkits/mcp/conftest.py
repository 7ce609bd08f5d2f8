"""What several tests of MCP servers share."""

import asyncio
from pathlib import Path

import pytest
from goose_like_toolkits.mcp.definitions import Definitions

from tests.toolkits.mcp.servers import desk, script

DEMO = script("demo_server.py", "stdio")


@pytest.fixture(scope="module")
def demo_definitions(tmp_path_factory: pytest.TempPathFactory) -> Definitions:
    """Ask the demo server once for what it offers."""

    async def ask(folder: Path) -> Definitions:
        async with desk(folder) as session:
            return await session.connect(*DEMO, era="2026-07-28").list_definitions()

    return asyncio.run(ask(tmp_path_factory.mktemp("demo")))
