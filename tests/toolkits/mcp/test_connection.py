"""Connections to servers that behave: everything that a server offers, over each transport."""

import asyncio
import subprocess
import sys

import pytest

from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.core.tool import ImageResult, ToolError
from tests.toolkits.mcp.servers import GIT, desk, script, wait_until
from tests.toolkits.mcp.sessions import write_list

DEMO = script("demo_server.py", "stdio")


async def test_definitions_and_calls(tmp_path):
    async with desk(tmp_path) as session:
        demo = session.connect(*DEMO)
        found = await demo.list_definitions()
        assert [tool.name for tool in found.tools][:3] == ["add", "greet", "count"]
        assert found.tools[0].description == "Add two numbers."
        assert found.tools[0].input_schema["required"] == ["a", "b"]
        assert found.instructions == "Add numbers with it."
        assert [prompt.arguments[0].name for prompt in found.prompts] == ["code"]
        assert [(each.uri, each.is_template) for each in found.resources] == [
            ("note://one", False),
            ("note://{number}/big", True),
        ]
        assert found.era == demo.era == "2026-07-28"
        assert demo.state == "running"
        assert await demo.call_tool("add", {"a": 1, "b": 2}) == "3"
        with pytest.raises(ToolError, match="valid integer"):
            await demo.call_tool("add", {"a": "one", "b": 2})
        assert await demo.get_prompt("review", {"code": "x = 1"}) == "Review this: x = 1"
        assert await demo.read_resource("note://one") == "the first note"
        with pytest.raises(ToolError, match="refuses the resource note://two"):
            await demo.read_resource("note://two")
        assert session.logged == []


async def test_a_server_of_others(tmp_path):
    async with desk(tmp_path) as session:
        subprocess.run(["git", "init", "-q", session.root], check=True)  # noqa: ASYNC221
        git = session.connect(*GIT)
        assert "git_status" in [tool.name for tool in (await git.list_definitions()).tools]
        text = await git.call_tool("git_status", {"repo_path": str(session.root)})
        assert "No commits yet" in str(text)


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_progress_and_cancellation(tmp_path, era):
    async with desk(tmp_path) as session:
        demo = session.connect(*DEMO, era=era)
        assert (await demo.list_definitions()).era == era  # a known era is not asked for
        assert await demo.call_tool("count", {}) == "done"
        assert session.shown == ["25 % step 1\n", "50 % step 2\n", "75 % step 3\n"]
        mark = session.root / "mark"
        call = asyncio.create_task(demo.call_tool("wait", {"path": str(mark)}))
        await wait_until(mark.exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await wait_until(lambda: mark.read_text() == "cancelled")
        assert await demo.call_tool("add", {"a": 1, "b": 2}) == "3"


async def test_images_and_files(tmp_path):
    async with desk(tmp_path) as session:
        demo = session.connect(*DEMO)
        drawn = await demo.call_tool("draw", {})
        assert isinstance(drawn, ImageResult)
        assert drawn.data.startswith(b"\x89PNG")
        first, image, audio = drawn.text.splitlines()
        assert first == "a picture"
        assert "image/png, 70 bytes, saved as " in image
        assert "audio/" in audio
        files = sorted(path.suffix for path in session.around.outputs.iterdir())
        assert files == [".png", ".wav"]


class Talker(Recorder):
    """A person who gives several answers."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self.texts = list(texts)

    async def ask(self, question):
        self.questions.append(question)
        if question.kind != "text":
            return Answer(choice="allow", by="person")
        return Answer(choice="allow", by="person", text=self.texts.pop(0))


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_a_form(tmp_path, era):
    async with desk(tmp_path, recorder=Talker("Ann", "old", "41")) as session:
        demo = session.connect(*DEMO, era=era)
        assert await demo.call_tool("greet", {}) == "accept: name='Ann' age=41"
        assert "Who are you?" in session.asked[0]
        assert "'old' does not fit: it must be a whole number" in session.asked[2]


async def test_a_form_with_nobody_there(tmp_path):
    async with desk(tmp_path, recorder=Recorder()) as session:
        demo = session.connect(*DEMO)
        assert str(await demo.call_tool("greet", {})).startswith("decline")


async def test_an_address_to_visit(tmp_path):
    async with desk(tmp_path, recorder=Talker("no", "yes")) as session:
        demo = session.connect(*DEMO, era="2025-11-25")
        with pytest.raises(ToolError, match="refuses lock"):
            await demo.call_tool("lock", {})
        assert await demo.call_tool("unlock", {}) == "unlocked"
        for question in session.asked:
            assert "Log in.\nOpen https://example.org/login in a browser, then answer yes." in question
        assert len(session.asked) == 2


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_changes_of_the_list(tmp_path, era):
    async with desk(tmp_path) as session:
        demo = session.connect(*DEMO, era=era)
        changes: list[str] = []
        demo.on_list_changed = lambda: changes.append("changed")
        assert "sum" not in [tool.name for tool in (await demo.list_definitions()).tools]
        assert await demo.call_tool("learn", {}) == "learned"
        await wait_until(lambda: changes)
        assert "sum" in [tool.name for tool in (await demo.list_definitions()).tools]


async def test_the_sandbox_holds_for_servers(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_PERSON", "s3cret")
    outside = tmp_path / "outside"
    async with desk(tmp_path) as session:
        demo = session.connect(*DEMO, variables={"GIVEN": "yes"})
        assert await demo.call_tool("environment", {"name": "GIVEN"}) == "yes"
        assert await demo.call_tool("environment", {"name": "SECRET_OF_THE_PERSON"}) == "(unset)"
        assert await demo.call_tool("write", {"path": "inside", "text": "x"}) == "written"
        assert (session.root / "inside").read_text() == "x"
        # The server has a /tmp of its own.
        assert await demo.call_tool("write", {"path": str(outside), "text": "x"}) == "written"
        elsewhere = {"path": f"{sys.prefix}/planted", "text": "x"}
        assert await demo.call_tool("write", elsewhere) == "Read-only file system"
    assert not outside.exists()


async def test_a_turn_that_only_reads_has_a_server_that_only_reads(tmp_path):
    async with desk(tmp_path) as session:
        write_list(session.root / "list.json", {"touch": "Make a file."})
        server = session.connect(*script("listed_server.py", "list.json"), era="2025-11-25")
        assert await server.call_tool("touch", {"text": "one"}) == "touched"
        async with session.workspace.limit_turn(is_read_only=True):
            assert await server.call_tool("touch", {"text": "two"}) == "Read-only file system"
        assert await server.call_tool("touch", {"text": "three"}) == "touched"
        assert sorted(path.name for path in session.root.iterdir()) == ["list.json", "one", "three"]


async def test_a_change_is_announced_to_undo(tmp_path):
    async with desk(tmp_path) as session:
        announced = []

        async def note(path, argv, folder, is_confined):
            announced.append((list(argv), is_confined))

        demo = session.connect(*DEMO)
        await demo.list_definitions()
        session.workspace.add_change_listener(note)
        await demo.call_tool("add", {"a": 1, "b": 2})
        assert announced == [(["demo", "add", '{"a": 1, "b": 2}'], True)]
