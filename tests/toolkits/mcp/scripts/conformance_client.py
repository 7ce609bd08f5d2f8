"""The client of the conformance suite: a connection of ours that lists the tools of a server and calls each.

The suite gives the address as the last argument, and describes the scenario in variables.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
from goose_like_toolkits.mcp.connection import Connection
from goose_like_toolkits.mcp.login import build_login_auth
from goose_like_toolkits.mcp.server import ServerConfig
from goose_like_toolkits.mcp.surroundings import Surroundings

from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.core.tool import ToolError
from goose_like.workspace.workspace import Workspace

REDIRECT = "http://127.0.0.1:3000/callback"
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT: Mapping[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The description of the client that the suite expects."""

KNOWN_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}


async def visit(url: str) -> str:
    """The address to which a login leads a person who allows everything."""
    async with httpx2.AsyncClient() as browser:
        response = await browser.get(url)
    return str(response.headers["location"])


def find_auth(server: ServerConfig) -> Any:
    return build_login_auth(server, visit, REDIRECT) if SCENARIO.startswith("auth/") else None


def make_value(schema: Mapping[str, Any]) -> Any:
    """A value for an argument."""
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type", "string")
    return {"integer": 5, "number": 2.5, "boolean": True, "array": [], "object": {}}.get(kind, "text")


def make_arguments(tool: Any) -> dict[str, Any]:
    if tool.name in KNOWN_ARGUMENTS:
        return dict(KNOWN_ARGUMENTS[tool.name])
    return {name: make_value(schema) for name, schema in tool.input_schema.get("properties", {}).items()}


def list_calls(tools: Any) -> list[tuple[str, dict[str, Any]]]:
    """The calls that the scenario wants, by default one of each tool."""
    wanted = CONTEXT.get("toolCalls")
    if wanted:
        return [(call["name"], call["arguments"]) for call in wanted]
    return [(tool.name, make_arguments(tool)) for tool in tools]


async def main(url: str) -> None:
    folder = Path(tempfile.mkdtemp())
    recorder = Recorder(Answer(choice="allow", by="person"))
    server = ServerConfig(
        name="conformance",
        origin="the suite",
        transport="http",
        url=url,
        client_id=CONTEXT.get("client_id", DOCUMENT),
        client_secret=CONTEXT.get("client_secret", ""),
    )
    async with Workspace(folder, mode="workspace", approval="auto", notifier=recorder) as workspace:
        around = Surroundings(workspace, recorder, print, folder / "outputs", find_auth=find_auth)
        version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
        connection = Connection(server, around, era=version)
        try:
            definitions = await connection.list_definitions()
            print(definitions.era, [tool.name for tool in definitions.tools])
            for name, arguments in list_calls(definitions.tools):
                try:
                    print(name, await connection.call_tool(name, arguments))
                except ToolError as error:
                    print(name, "failed:", error)
        except ToolError as error:
            print("failed:", error)
        finally:
            await connection.close()


asyncio.run(main(sys.argv[-1]))
