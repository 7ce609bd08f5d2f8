"""A session with a server that has a child. It waits to be killed."""

import asyncio
import sys
from pathlib import Path

from tests.toolkits.mcp.servers import desk, script


async def main(folder: Path) -> None:
    async with desk(folder) as session:
        server = session.connect(*script("faulty_server.py", "child", f"mark-of-{folder}"), era="2025-11-25")
        print(await server.call_tool("echo", {}), flush=True)
        await asyncio.sleep(600)


asyncio.run(main(Path(sys.argv[1])))
