"""What `mcp serve` hands on to other agents: resources, files and forms, of MCP servers and of toolkits."""

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from goose_like_toolkits.mcp.config import load_servers
from goose_like_toolkits.mcp.definitions import Definitions, DefinitionStore
from goose_like_toolkits.mcp.results import ResultReader
from goose_like_toolkits.mcp.serving.forms import make_form, read_answer
from goose_like_toolkits.mcp.serving.resources import read_contents
from goose_like_toolkits.mcp.serving.saved_files import SavedFiles
from mcp import MCPError

from goose_like.core import events
from goose_like.core.events import Question
from goose_like.core.images import save_image
from goose_like.core.message import Image, ToolResult
from goose_like.core.tool import ImageResult
from tests.toolkits.mcp.servers import script
from tests.toolkits.mcp.test_serving import ERAS, PNG, connect, read_events, work, write_profile

DEMO = script("demo_server.py", "stdio")
FIXTURES = (work,)
"""Those of other files, which pytest finds here by their names."""

KEY = "ghp_" + "a1" * 18
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""The image of one point."""

TOOLKIT = """
from goose_like.toolkit import Resource, Toolkit, command


class Colors(Toolkit):
    @command(usage="COLOR", in_run=True, choices=lambda context: ["red", ("green", "calm"), "dark red"])
    def paint(self, context, words):
        return f"Paint it {words}."

    @command(usage="COLOR", in_run=True, choices=lambda context: 1 / 0)
    def fail(self, context, words):
        return "x"

    @command(usage="COLOR", choices=lambda context: ["secret"])
    def own(self, context, words):
        return None


class Broken(Toolkit):
    def resources(self):
        return 1 / 0
"""


@pytest.fixture
def demo(home: Path, work: Path, demo_definitions: Definitions) -> Path:
    """Write a profile with the demo server, whose list is stored."""
    write_demo(home, demo_definitions)
    return work


def write_demo(home: Path, definitions: Definitions, *names: str, **keys: Any) -> None:
    command, *arguments = DEMO
    servers = {name: {"command": command, "args": arguments} for name in names or ("demo",)}
    write_profile(home, mcp=servers, sandbox="full", **keys)
    for server in load_servers(servers, None)[0]:
        DefinitionStore().save(server, definitions)


@pytest.fixture
def colors(home: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install two toolkits, as a package would."""
    site = tmp_path / "site"
    info = site / "colors-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "colors_of_tests.py").write_text(TOOLKIT)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: colors\nVersion: 1.0\n")
    points = "colors = colors_of_tests:Colors\nbroken = colors_of_tests:Broken\n"
    (info / "entry_points.txt").write_text(f"[goose_like.toolkit]\n{points}")
    monkeypatch.syspath_prepend(str(site))


# --- resources


@pytest.mark.parametrize("era", ERAS)
async def test_resources_of_a_server(era: str, demo: Path) -> None:
    async with connect(era, toolkits=("mcp",)) as client:
        (one,) = (await client.list_resources()).resources
        assert (one.uri, one.mime_type, one.description) == ("mcp:demo/note://one", "text/plain", "The first note.")
        (big,) = (await client.list_resource_templates()).resource_templates
        assert big.uri_template == "mcp:demo/note://{number}/big"
        (read,) = (await client.read_resource(one.uri)).contents
        assert (read.uri, read.mime_type, read.text) == (one.uri, "text/plain", "the first note")
        long = "7" * 40_000
        (read,) = (await client.read_resource(f"mcp:demo/note://{long}/big")).contents
        assert read.text == long * 3  # no model reads it, so nothing is cut
        for wrong in ("mcp:demo/note://two", "mcp:dem/note://one", "note://one", ""):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(wrong)
            assert caught.value.code == types.INVALID_PARAMS
            assert caught.value.data == {"uri": wrong}
    calls = [event.result.output for event in read_events() if isinstance(event, events.ToolFinished)]
    assert calls[0] == "the first note"


async def test_a_server_whose_name_has_a_slash(home: Path, work: Path, demo_definitions: Definitions) -> None:
    names = ("io.github.x", "io.github.x/y")
    write_demo(home, demo_definitions, *names)
    async with connect("2026-07-28", toolkits=("mcp",)) as client:
        listed = [each.uri for each in (await client.list_resources()).resources]
        assert sorted(listed) == [f"mcp:{name}/note://one" for name in names]
        for uri in listed:
            (read,) = (await client.read_resource(uri)).contents
            assert (read.uri, read.text) == (uri, "the first note")
        for wrong in ("mcp:io.github.x/", "mcp:io.github.x", "mcp:/note://one", "mcp:note://one"):
            with pytest.raises(MCPError, match="there is no resource"):
                await client.read_resource(wrong)


async def test_rules_about_the_tool_hold_for_resources(home: Path, work: Path, demo_definitions: Definitions) -> None:
    write_demo(home, demo_definitions, permissions={"deny": ["tool:read_mcp_resource"]})
    async with connect("2026-07-28", toolkits=("mcp",)) as client:
        with pytest.raises(MCPError, match="read_mcp_resource"):
            await client.read_resource("mcp:demo/note://one")


async def test_only_offered_toolkits_have_resources(demo: Path) -> None:
    async with connect("2026-07-28") as client:
        assert client.server_capabilities.resources is None
        with pytest.raises(MCPError):
            await client.read_resource("mcp:demo/note://one")


async def test_a_toolkit_that_fails_is_one_sentence(colors: None) -> None:
    async with connect("2026-07-28", toolkits=("broken",)) as client:
        with pytest.raises(MCPError, match="toolkit 'broken' can't be used: ZeroDivisionError"):
            await client.list_resources()


# --- files


@pytest.mark.parametrize("era", ERAS)
async def test_audio_of_a_server_is_handed_on(era: str, demo: Path) -> None:
    async with connect(era, toolkits=("mcp",)) as client:
        for _ in range(2):  # the file of the second call has the same name
            result = await client.call_tool("mcp__demo__draw", {})
            assert [block.type for block in result.content] == ["text", "image", "audio"]
            assert result.content[2].mime_type == "audio/wav"


def make_result(*files: Path, images: tuple[Image, ...] = ()) -> ToolResult:
    return ToolResult(call_id="c", output="\n".join(f"saved as {file}" for file in files), images=images)


def test_new_files_that_a_result_names_are_brought_along(tmp_path: Path) -> None:
    old = tmp_path / "old.csv"
    old.write_text("a,b")
    saved = SavedFiles(tmp_path)
    table = tmp_path / "cells" / "table.csv"
    table.parent.mkdir()
    table.write_text(f"a,{KEY}")
    figure = tmp_path / "figure.png"
    figure.write_bytes(PNG)
    drawing = tmp_path / "figure.svg"
    drawing.write_text("<svg/>")
    book = tmp_path / "book.xlsx"
    book.write_bytes(b"PK\xff")
    whole = tmp_path / "c.txt"
    whole.write_text("the whole of an output that was cut")
    unnamed = tmp_path / "page.html"
    unnamed.write_text("<p>")
    result = make_result(old, table, figure, drawing, book, whole)
    (image,) = [block for block in saved.convert(result) if block.type == "image"]
    found = [block for block in saved.convert(result) if block.type == "resource"]
    names = [block.resource.uri.rpartition("/")[2] for block in found]
    assert sorted(names) == ["book.xlsx", "figure.svg", "table.csv"]
    texts = {block.resource.uri: block.resource.text for block in found if hasattr(block.resource, "text")}
    assert texts[table.as_uri()] == "a,[masked:github-token]"
    assert image.mime_type == "image/png"


def test_the_image_of_a_result_comes_once(tmp_path: Path) -> None:
    saved = SavedFiles(tmp_path)
    figure = tmp_path / "figure.png"
    figure.write_bytes(PNG)
    name = f"{hashlib.sha256(PNG).hexdigest()[:24]}.png"
    image = Image(name=name, media_type="image/png", source=str(figure))
    assert saved.convert(make_result(figure, images=(image,))) == []


def test_large_files_are_named_only(tmp_path: Path) -> None:
    saved = SavedFiles(tmp_path)
    table = tmp_path / "table.csv"
    table.write_text("a" * 50_001)
    sounds = [tmp_path / f"{number}.wav" for number in range(3)]
    for sound in sounds:
        sound.write_bytes(bytes(4_000_000))
    found = saved.convert(make_result(table, *sounds))
    assert [block.type for block in found] == ["audio", "audio"]


@pytest.mark.parametrize(
    ("name", "encoding", "end"),
    [
        ("a.csv", "latin-1", ""),
        ("a.csv", "latin-1", "\0"),
        ("a.csv", "utf-16", ""),
        ("a.csv", "utf-8-sig", "\0"),
        ("a.html", "cp1252", ""),
        ("a.json", "latin-1", "\0"),
    ],
)
def test_no_text_brings_a_secret_along(tmp_path: Path, name: str, encoding: str, end: str) -> None:
    saved = SavedFiles(tmp_path)
    file = tmp_path / name
    file.write_bytes(f"é,{KEY}{end}".encode(encoding))
    (block,) = saved.convert(make_result(file))
    content = block.resource
    text = content.text if hasattr(content, "text") else base64.b64decode(content.blob).decode("latin-1")
    assert ",[masked:github-token]" in text


def test_a_file_that_goes_away_is_named_only(tmp_path: Path) -> None:
    saved = SavedFiles(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("a,b")
    (tmp_path / "a.csv").chmod(0)
    if os.access(tmp_path / "a.csv", os.R_OK):  # root reads everything
        (tmp_path / "a.csv").unlink()
    (found,) = saved.convert(make_result(tmp_path / "a.csv", tmp_path / "b.csv"))
    assert found.resource.uri.endswith("b.csv")


def read_parts(outputs: Path, *parts: object) -> list[tuple[str, str | bytes]]:
    """Read a resource of a server as the tool does, and return its text and its files for the client."""
    saved = SavedFiles(outputs)
    found = ResultReader(outputs, "demo note://one").read_resource(parts)
    images = ()
    if isinstance(found, ImageResult):
        images = (save_image(found.data, found.source, outputs),)
        found = found.text or f"[image {found.source}]"
    text, blobs = read_contents(ToolResult(call_id="c", output=found, images=images), saved, outputs)
    contents = [("text", text)] if text else []
    for blob in blobs:
        content = blob.text if hasattr(blob, "text") else base64.b64decode(blob.blob)
        contents.append((blob.mime_type, content))
    return contents


def make_part(media_type: str, content: str | bytes) -> types.TextResourceContents | types.BlobResourceContents:
    if isinstance(content, str):
        return types.TextResourceContents(uri="note://one", mime_type=media_type, text=content)
    blob = base64.b64encode(content).decode()
    return types.BlobResourceContents(uri="note://one", mime_type=media_type, blob=blob)


@pytest.mark.parametrize(
    ("media_type", "data", "content"),
    [
        ("text/plain", b"plain", "plain"),
        ("text/csv", b"a" * 50_001, "a" * 50_001),
        ("application/zip", b"PK\0" * 4_000_000, b"PK\0" * 4_000_000),
        ("application/gzip", b"\x1f\x8b", b"\x1f\x8b"),
        ("audio/wav", b"RIFF", b"RIFF"),
    ],
)
def test_a_resource_is_read_whole(tmp_path: Path, media_type: str, data: bytes, content: str | bytes) -> None:
    (found,) = read_parts(tmp_path, make_part(media_type, data))
    assert found[1] == content


def test_a_resource_has_all_its_parts(tmp_path: Path) -> None:
    assert read_parts(tmp_path, make_part("image/png", DOT)) == [("image/png", DOT)]
    other = DOT + b"another"
    parts = (make_part("text/plain", "a text"), make_part("image/png", DOT), make_part("image/png", other))
    assert read_parts(tmp_path, *parts) == [("text", "a text"), ("image/png", DOT), ("image/png", other)]


def test_a_resource_whose_file_is_unreadable_is_an_error(tmp_path: Path) -> None:
    saved = SavedFiles(tmp_path)
    image = Image(name="gone.png", media_type="image/png", source="s")
    with pytest.raises(MCPError, match="the content of the resource cannot be read: No such file"):
        read_contents(ToolResult(call_id="c", output="[image s]", images=(image,)), saved, tmp_path)


# --- forms


class FormPerson:
    """A person in front of the client, who fills in whole forms."""

    def __init__(self, action: str, **values: object) -> None:
        self.action = action
        self.values = values
        self.forms: list[types.ElicitRequestFormParams] = []

    async def elicit(self, _: object, params: types.ElicitRequestFormParams) -> types.ElicitResult:
        self.forms.append(params)
        values = self.values if self.action == "accept" else None
        return types.ElicitResult(action=self.action, content=values)


@pytest.mark.parametrize("era", ERAS)
async def test_a_form_of_a_server_is_handed_on_whole(era: str, demo: Path) -> None:
    person = FormPerson("accept", name="Ann", age=31, other="left out")
    async with connect(era, person, toolkits=("mcp",)) as client:
        result = await client.call_tool("mcp__demo__greet", {})
        assert result.content[0].text == "accept: name='Ann' age=31"
        person.action = "decline"
        result = await client.call_tool("mcp__demo__greet", {})
        assert result.content[0].text == "decline: None"
    form = person.forms[0].requested_schema
    assert list(form["properties"]) == ["name", "age"]
    assert form["properties"]["age"]["default"] == 30
    assert "the MCP server demo asks: The server gets what you type: never a password.\nWho" in person.forms[0].message
    asked = [event for event in read_events() if isinstance(event, events.Asked)]
    assert [event.question.form for event in asked] == [None, None]


def test_the_answer_to_a_form_is_its_values() -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
    question = Question(kind="text", subject="s", text="t", form=schema)
    assert make_form(question).requested_schema == schema
    answer = read_answer(question, types.ElicitResult(action="accept", content={"size": 3}))
    assert json.loads(answer.text) == {"size": 3}
    assert answer.is_allowed
    assert not read_answer(question, types.ElicitResult(action="cancel")).is_allowed
    assert "form" not in question.model_dump_json()


# --- completion


@pytest.mark.parametrize("era", ERAS)
async def test_arguments_are_completed_as_in_a_session(era: str, colors: None) -> None:
    async def complete(name: str, value: str) -> list[str]:
        prompt = types.PromptReference(name=name)
        result = await client.complete(prompt, {"name": "color", "value": value})
        return result.completion.values

    async with connect(era, toolkits=("colors",)) as client:
        assert await complete("paint", "") == ["red", "green", "dark red"]
        assert await complete("paint", "RED") == ["red", "dark red"]
        assert await complete("paint", "d") == ["dark red", "red"]
        assert await complete("own", "") == []  # it is no prompt
        assert await complete("other", "") == []
        with pytest.raises(MCPError, match="no completion for /fail: ZeroDivisionError"):
            await complete("fail", "")
