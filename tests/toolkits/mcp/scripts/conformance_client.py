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
from urllib.parse import parse_qs, urlsplit

import httpx2
from goose_like_toolkits.mcp.connection import Connection
from goose_like_toolkits.mcp.server import ServerConfig
from goose_like_toolkits.mcp.surroundings import Surroundings
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.core.tool import ToolError
from goose_like.workspace.workspace import Workspace

REDIRECT = "http://127.0.0.1:3000/callback"
SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT: Mapping[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
KNOWN_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}


class Memory:
    """Where the SDK keeps tokens."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Visitor:
    """A person who allows everything at the address of a login."""

    def __init__(self) -> None:
        self.answer: Mapping[str, list[str]] = {}

    async def visit(self, url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            response = await browser.get(url)
        self.answer = parse_qs(urlsplit(response.headers["location"]).query)

    async def get_result(self) -> AuthorizationCodeResult:
        def read(name: str) -> str | None:
            return self.answer.get(name, [None])[0]

        return AuthorizationCodeResult(code=read("code") or "", state=read("state"), iss=read("iss"))


def build_auth(server: ServerConfig) -> OAuthClientProvider:
    memory = Memory()
    if CONTEXT.get("client_id"):
        secret = CONTEXT.get("client_secret")
        memory.client = OAuthClientInformationFull(
            client_id=CONTEXT["client_id"],
            client_secret=secret,
            redirect_uris=[REDIRECT],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
    visitor = Visitor()
    return OAuthClientProvider(
        server_url=server.url,
        client_metadata=OAuthClientMetadata(client_name="goose-like", redirect_uris=[REDIRECT]),
        storage=memory,
        redirect_handler=visitor.visit,
        callback_handler=visitor.get_result,
        client_metadata_url="https://conformance-test.local/client-metadata.json",
    )


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
    find_auth = build_auth if SCENARIO.startswith("auth/") else (lambda server: None)
    server = ServerConfig(name="conformance", origin="the suite", transport="http", url=url)
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
