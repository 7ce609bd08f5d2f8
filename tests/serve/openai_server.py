"""A server for OpenAI's clients in the test's own event loop, whose model plays responses over loopback."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import openai
import uvicorn

from goose_like.config.profile import ModelChoice, Profile, ToolkitChoice
from goose_like.config.profile_loader import load_profile
from goose_like.core.events import Artifact, ArtifactShown
from goose_like.serve.app import create_app
from goose_like.serve.middleware import Metrics
from goose_like.serve.settings import Settings
from goose_like.toolkit import ToolError, Toolkit, tool
from tests.loopback import Loopback, Response


class Cellar(Toolkit):
    """A toolkit of the server."""

    has_local_access = False

    def context_updates(self) -> dict[str, str]:
        return {"climate": "the cellar is cold"}

    @tool
    async def count_bottles(self, shelf: str) -> str:
        """Count the bottles on a shelf."""
        if shelf == "none":
            raise ToolError("there is no such shelf")
        return f"{len(shelf)} bottles on {shelf}"

    @tool
    async def draw_shelf(self) -> str:
        """Show a table of the shelf."""
        table = Artifact(kind="table", name="Shelf", rows=({"wine": "Rioja", "bottles": 3},))
        self.notifier.notify(ArtifactShown(call_id="", artifact=table))
        self.report_change("shelf.txt", "+ Rioja")
        return "shown"


@dataclass
class OpenAIServer:
    """A running server, its model, and a client."""

    port: int
    metrics: Metrics
    model: Loopback
    client: openai.AsyncOpenAI

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def ask(self, *messages: Any, **more: Any) -> Any:
        """Ask for a completion. A text is a message of the user."""
        listed = [{"role": "user", "content": each} if isinstance(each, str) else each for each in messages]
        return await self.client.chat.completions.create(model="openbb", messages=listed, **more)  # type: ignore[arg-type]


@asynccontextmanager
async def serving_openai(
    monkeypatch: Any,
    folder: Path,
    responses: Sequence[Response],
    *others: Profile,
    toolkits: Sequence[str] = (),
    **settings: Any,
) -> Any:
    """Serve the profile `openbb` and others; a toolkit `cellar` can be added to it."""
    info = folder / "cellar-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cellar\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[goose_like.toolkit]\ncellar = {__name__}:Cellar\n")
    monkeypatch.syspath_prepend(folder)
    async with Loopback(responses) as model:
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        profile = load_profile("openbb")[0]
        listed = (*profile.toolkits, *(ToolkitChoice(name=name) for name in toolkits))
        profile = profile.model_copy(update={"processor": ModelChoice(model="openai:m"), "toolkits": listed})
        metrics = Metrics()
        known = Settings(signing_key=b"k" * 32, **settings)
        factory = partial(create_app, known, [profile, *others], lambda: metrics)
        config = uvicorn.Config(factory, factory=True, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            running = asyncio.create_task(server.serve([listener]))
            token = settings.get("token") or "any"
            client = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=token, max_retries=0)
            try:
                yield OpenAIServer(port, metrics, model, client)
            finally:
                await client.close()
                server.should_exit = True
                await running
