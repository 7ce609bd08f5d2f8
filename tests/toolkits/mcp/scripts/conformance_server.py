"""`mcp serve` with the tools that MCP's conformance suite expects, without a token. Arguments: a folder and a port."""

import asyncio
import io
import json
import sys
import wave
from base64 import b64decode
from pathlib import Path

import uvicorn
from goose_like_toolkits.mcp.serving.http import create_app
from goose_like_toolkits.mcp.serving.start import ServeOptions, open_server

from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.turn_request import TurnRequest
from goose_like.core.images import save_image
from goose_like.core.message import Message, Text
from goose_like.core.tool import make_tool
from goose_like.launch.command_line import ProfileOptions
from goose_like.toolkit import ImageResult, InnerCall, Question, Resource, ToolError, Toolkit, tool

PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
PDF = b"%PDF-1.7\n"
PROFILE = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]
CHOICES = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
TOKEN = "of-the-suite"


class Conformance(Toolkit):
    """Tools with the names of the suite."""

    @tool
    def test_simple_text(self) -> str:
        """Return a text."""
        return "This is a simple text response for testing."

    @tool
    def test_image_content(self) -> ImageResult:
        """Return an image."""
        return ImageResult(PIXEL, "pixel.png")

    @tool
    def test_embedded_resource(self) -> ImageResult:
        """Return a document."""
        return ImageResult(PDF, "document.pdf")

    @tool
    def test_audio_content(self) -> str:
        """Return audio."""
        return self._save("silence.wav", make_silence())

    @tool
    def test_multiple_content_types(self) -> ImageResult:
        """Return a text, an image and a file."""
        note = self._save("data.json", b'{"test":"data","value":123}')
        return ImageResult(PIXEL, "pixel.png", f"Multiple content types test:\n{note}")

    @tool
    def read(self, uri: str) -> str | ImageResult:
        """Read a resource."""
        if uri == "test://static-binary":
            return ImageResult(PIXEL, "pixel.png")
        if uri == "test://static-text":
            return "This is the content of the static text resource."
        number = uri.removeprefix("test://template/").removesuffix("/data")
        return json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})

    def resources(self):
        """Offer the resources of the suite."""
        return (
            Resource("test://static-text", "text", media_type="text/plain"),
            Resource("test://static-binary", "pixel", media_type="image/png"),
            Resource("test://template/{id}/data", "numbers", is_template=True),
        )

    def resource_call(self, uri):
        """Read them with the tool."""
        if uri.startswith(("test://static-", "test://template/")):
            return InnerCall(make_tool(self.read), {"uri": uri})
        return None

    @tool
    async def test_elicitation_sep1034_defaults(self) -> str:
        """Ask for several values."""
        return await self._ask("Who are you?", form=make_form(PROFILE))

    @tool
    async def test_elicitation_sep1330_enums(self) -> str:
        """Ask for several choices."""
        return await self._ask("What do you take?", form=make_form(CHOICES))

    @tool
    def test_error_handling(self) -> str:
        """Fail."""
        raise ToolError("This tool intentionally returns an error for testing")

    @tool
    async def test_tool_with_progress(self) -> str:
        """Tell how it gets on."""
        for percent in (0, 50, 100):
            self.report_progress(f"{percent}\n")
            await asyncio.sleep(0.1)
        return "done"

    @tool
    async def test_elicitation(self, message: str) -> str:
        """Ask a question."""
        return f"User response: {await self._ask(message)}"

    @tool
    async def test_streaming_elicitation(self) -> str:
        """Ask a question while the answer streams."""
        return await self._ask("Go on?")

    @tool
    async def test_input_required_result_elicitation(self) -> str:
        """Ask for a name."""
        form = make_form({"name": {"type": "string"}})
        answer = await self._ask("What is your name?", "user_name", form)
        return f"Hello, {answer}!"

    @tool
    async def test_input_required_result_request_state(self) -> str:
        """Ask, and confirm that the call went on."""
        await self._ask("Please confirm")
        return "state-ok"

    @tool
    async def test_input_required_result_multi_round(self) -> str:
        """Ask twice."""
        name = await self._ask("Step 1: What is your name?")
        color = await self._ask("Step 2: What is your favorite color?")
        return f"{name} likes {color}"

    @tool
    async def test_input_required_result_tampered_state(self) -> str:
        """Ask once."""
        return await self._ask("Please confirm")

    def commands(self):
        """Offer the prompts of the suite."""
        run = {
            "test_simple_prompt": lambda context, words: "This is a simple prompt for testing.",
            "test_prompt_with_arguments": lambda context, words: f"Prompt with arguments: {words}",
            "test_prompt_with_embedded_resource": lambda context, words: attach(context, PDF, words),
            "test_prompt_with_image": lambda context, words: attach(context, PIXEL, "pixel.png"),
            "test_input_required_result_prompt": self._send_answer,
        }
        usages = {
            "test_prompt_with_arguments": "ARG1 ARG2",
            "test_prompt_with_embedded_resource": "RESOURCEURI",
        }
        return [SlashCommand(name, "A prompt", run[name], usages.get(name, ""), in_run=True) for name in run]

    async def _send_answer(self, context, words):
        return f"Context: {await self._ask('What context should the prompt use?')}"

    def _save(self, name: str, data: bytes) -> str:
        self.session.outputs.mkdir(exist_ok=True)
        file = self.session.outputs / name
        file.write_bytes(data)
        return f"saved as {file}"

    async def _ask(self, text: str, subject: str = "the suite", form=None) -> str:
        question = Question(kind="text", subject=subject, text=text, form=form)
        answer = await self.notifier.ask(question)
        return answer.text


def make_form(fields):
    """Make a form of fields."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def make_silence() -> bytes:
    """Make a tenth of a second of audio."""
    written = io.BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8_000)
        sound.writeframes(bytes(800))
    return written.getvalue()


def attach(context, data: bytes, source: str) -> TurnRequest:
    """Send a file."""
    file = save_image(data, source, context.exchange.session.outputs)
    return TurnRequest(Message(role="user", parts=(Text(text="Look at this."), file)))


async def main(folder: Path, port: int) -> None:
    """Serve until the process is killed."""
    options = ServeOptions(ProfileOptions(profile="suite"), ("conformance",))
    async with open_server(options) as server:
        app = create_app(server, TOKEN)

        async def add_token(scope, receive, send):
            """Add the token, for which the suite has no option."""
            if scope["type"] == "http":
                header = (b"authorization", f"Bearer {TOKEN}".encode())
                scope = {**scope, "headers": [*scope["headers"], header]}
            await app(scope, receive, send)

        await uvicorn.Server(uvicorn.Config(add_token, port=port, log_level="warning")).serve()


def install_toolkit(folder: Path) -> None:
    """Write what an installed package would bring, and a profile that asks for it."""
    info = folder / "conformance-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: conformance\nVersion: 1.0\n")
    point = f"conformance = {Path(__file__).stem}:Conformance"
    (info / "entry_points.txt").write_text(f"[goose_like.toolkit]\n{point}\n")
    sys.path += [str(folder), str(Path(__file__).parent)]
    home = folder / "home" / "config"
    home.mkdir(parents=True)
    profile = "suite: {processor: 'anthropic:claude-sonnet-5', session: {answer_s: 1}, toolkits: [conformance]}\n"
    (home / "profiles.yaml").write_text(profile)


if __name__ == "__main__":
    install_toolkit(Path(sys.argv[1]))
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
