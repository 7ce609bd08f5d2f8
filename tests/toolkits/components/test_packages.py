"""The components that PyPI's `concopilot` contains, in a session."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from goose_like.core.events import Answer, ToolProgress
from tests.fakes import call, calls
from tests.toolkits.components.exchange_with_components import Hired, hired, installed, named

BASIC = "org.concopilot.basic"
FILES = named("disk-storage", f"{BASIC}.storage", "0.0.1")
FOREMAN = named("foreman", "org.example.packaged")
ALLOWED = Answer(choice="allow", by="person", text="Write it down")


@pytest.fixture
def at_work(tmp_path, monkeypatch) -> Callable[..., AbstractAsyncContextManager[Hired]]:
    """Return a function that opens a session with the fixtures in the local repository."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    installed("packaged", "workshop/prompter", "workshop/postman")

    def open_session(*use: dict[str, Any], **how: Any) -> AbstractAsyncContextManager[Hired]:
        return hired(tmp_path, *use, answer=ALLOWED, **how)

    return open_session


async def test_storage_on_a_disk_as_a_plugin(at_work):
    async with at_work(FILES) as made:
        assert '"status"' in await made.ok("files_write", file_path="notes/today.txt", content="milk")
        assert json.loads(await made.ok("files_read", file_path="notes/today.txt"))["content"] == "milk"
        assert (made.root / "notes" / "today.txt").read_text() == "milk"
        assert "written" in await made.ok("list_assets")
        reference = "asset://written/content/0"
        await made.ok("files_write", file_path="other.txt", content=reference)
        assert (made.root / "other.txt").read_text() == "notes/today.txt"
        await made.ok("files_delete", file_path="notes/today.txt")
        assert not (made.root / "notes").exists()


@pytest.mark.parametrize("path", ["../secret.txt", "{outside}/secret.txt", "inside/../../secret.txt", "link.txt"])
async def test_no_way_leads_out_of_the_running_directory(at_work, tmp_path, path):
    (tmp_path / "secret.txt").write_text("hidden from them")
    async with at_work(FILES, FOREMAN, mode="full") as made:
        (made.root / "inside").mkdir()
        (made.root / "link.txt").symlink_to(tmp_path / "secret.txt")
        (made.root / "link.txt.info").write_text("text")
        named_so = path.format(outside=tmp_path)
        assert "hidden" not in await made.failed("foreman_read", path=named_so)
        assert "hidden" not in await made.failed("files_read", file_path=named_so)
        await made.failed("files_write", file_path=named_so, content="x")
        await made.does(("files_delete", {"file_path": named_so}))  # of a link, the link goes
    assert (tmp_path / "secret.txt").read_text() == "hidden from them"
    assert sorted(entry.name for entry in tmp_path.iterdir() if "secret" in entry.name) == ["secret.txt"]


@pytest.mark.parametrize("manager", ["basic-str-msg-manager", "basic-json-msg-manager"])
async def test_a_copilot_of_them_works_within_a_session(at_work, manager):
    wanted = {"file_path": "list.txt", "content": "eggs"}
    if "json" in manager:
        content = {"command": "write", "param": wanted}
        said = json.dumps({"receiver": {"role": "plugin", "name": "files"}, "content": content})
        answers: list[Any] = [f"```json\n{said}\n```"]
    else:
        answers = [calls(call("files_write", json.dumps(wanted), "x1"))]
    async with at_work(FOREMAN) as made:
        (result,) = await made.does(("foreman_work", {"manager": manager}), meanwhile=answers)
        assert not result.is_error, result.output
        ((sender, thread, content),) = json.loads(result.output)
        assert (sender, thread, content["command"]) == ("files", "t1", "write")
        assert (made.root / "list.txt").read_text() == "eggs"
        assert "Write it down" in made.played.requests[1].messages[-1].text
        shown = "".join(event.text for event in made.recorder.events if isinstance(event, ToolProgress))
        assert "<<\nWhat to do?\n>>" in shown


async def test_letters_go_both_ways(at_work):
    async with at_work(FOREMAN) as made:
        seen = json.loads(await made.ok("foreman_letters"))
        assert seen == ["False", "True", "to the agent", "to the user", "True"]


async def test_corrections_of_the_framework(at_work):
    """Values are kept without pickles, and a response that is no mapping is not lost."""
    postman = named("postman", "org.example.workshop")
    async with at_work(FOREMAN, postman) as made:
        assert json.loads(await made.ok("foreman_keep", value={"a": [1]})) == {"a": [1]}
        (told,) = made.root.rglob("value.info")
        assert told.read_text() == "pickle"
        reply = json.loads(await made.ok("postman_send"))
        assert reply["content"].get("response") == "text"


async def test_two_instances_of_a_storage_with_0_among_them(at_work):
    first = {**FILES, "instance_id": 0, "config": {"name": "first", "root_directory": "one"}}
    second = {**FILES, "instance_id": "b", "config": {"name": "second", "root_directory": "two"}}
    async with at_work(first, second) as made:
        for name in ("first", "second"):
            await made.ok(f"{name}_write", file_path="a.txt", content=name)
        placed = made.root / ".runtime" / "org" / "concopilot" / "basic" / "storage" / "disk-storage" / "0.0.1"
        assert sorted(folder.name for folder in placed.iterdir()) == ["0", "b"]
        assert [(made.root / name / "a.txt").read_text() for name in ("one", "two")] == ["first", "second"]
