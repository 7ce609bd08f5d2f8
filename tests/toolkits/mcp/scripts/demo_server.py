"""A server of the SDK with one of everything. The first argument is the transport, the second one the port."""

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import AudioContent, ElicitRequestURLParams, ImageContent, TextContent
from pydantic import BaseModel

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
server = MCPServer("demo", instructions="Add numbers with it.")


class Person(BaseModel):
    name: str
    age: int = 30


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def ask_for_person() -> Elicit[Person]:
    return Elicit("Who are you?", Person)


@server.tool()
async def greet(answer: Annotated[ElicitationResult[Person], Resolve(ask_for_person)]) -> str:
    """Greet the person."""
    return f"{answer.action}: {getattr(answer, 'data', None)}"


@server.tool()
async def count(ctx: Context) -> str:
    """Count slowly."""
    for number in range(1, 4):
        await ctx.report_progress(number, 4, f"step {number}")
        await asyncio.sleep(0.05)
    return "done"


@server.tool()
async def wait(path: str) -> str:
    """Wait until it is cancelled, and note that."""
    note = Path(path).write_text
    note("waits")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "too late"


@server.tool(structured_output=False)
def draw() -> list[ImageContent | TextContent | AudioContent]:
    """Draw."""
    data = base64.b64encode(PNG).decode()
    return [
        TextContent(text="a picture"),
        ImageContent(data=data, mime_type="image/png"),
        ImageContent(data=data, mime_type="image/png"),
        AudioContent(data=base64.b64encode(b"RIFF").decode(), mime_type="audio/wav"),
    ]


@server.tool()
def environment(name: str) -> str:
    """Read a variable of the environment."""
    return os.environ.get(name, "(unset)")


@server.tool()
def write(path: str, text: str) -> str:
    """Write a file."""
    try:
        Path(path).write_text(text)
    except OSError as error:
        return str(error.strerror)
    return "written"


@server.tool()
def die() -> str:
    """End the server."""
    print("a last word", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
async def learn(ctx: Context) -> str:
    """Add a tool."""
    server.add_tool(add, name="sum")
    await ctx.session.send_tool_list_changed()  # the old era
    await ctx.notify_tools_changed()  # the new one
    return "learned"


visited: list[str] = []


def need_visit() -> UrlElicitationRequiredError:
    return UrlElicitationRequiredError(
        [ElicitRequestURLParams(message="Log in.", url="https://example.org/login", elicitation_id="1")]
    )


@server.tool()
async def lock() -> str:
    """Need a visit each time."""
    raise need_visit()


@server.tool()
async def unlock() -> str:
    """Need a visit once."""
    if not visited:
        visited.append("once")
        raise need_visit()
    return "unlocked"


@server.prompt()
def review(code: str) -> str:
    """Review code."""
    return f"Review this: {code}"


@server.resource("note://one", mime_type="text/plain")
def one() -> str:
    """The first note."""
    return "the first note"


@server.resource("note://{number}/big")
def big(number: str) -> str:
    """A big note."""
    return number * 3


if sys.argv[1] == "stdio":
    server.run("stdio")
elif sys.argv[1] == "sse":
    server.run("sse", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
