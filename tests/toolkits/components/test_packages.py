"""The components that PyPI's `concopilot` contains, in a session: by the names we serve, and by that package itself."""

import json
import sysconfig
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from goose_like_toolkits.components.environments.environment import default_folder

from goose_like.core.events import Answer, ToolProgress
from tests.fakes import call, calls
from tests.toolkits.components.concopilot_real import real_python
from tests.toolkits.components.exchange_with_components import COMPONENTS, Hired, hired, installed, named

__all__ = ["real_python"]  # a fixture

BASIC = "org.concopilot.basic"
FILES = named("disk-storage", f"{BASIC}.storage", "0.0.1")
FOREMAN = named("foreman", "org.example.packaged")
ALLOWED = Answer(choice="allow", by="person", text="Write it down")


@pytest.fixture(params=["ours", "real"])
def which(request) -> str:
    return request.param


@pytest.fixture
def at_work(which, request, tmp_path, monkeypatch) -> Callable[..., AbstractAsyncContextManager[Hired]]:
    """Opens a session with the packages' configurations in the local repository. The real package is in a folder of
    `path`, where an environment's own would be found as well."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    installed("packaged", "workshop/prompter", "workshop/postman")
    path: list[str] = []
    if which == "real":
        python = request.getfixturevalue("real_python")
        (site,) = python.parent.parent.glob("lib/python3*/site-packages")
        path = [str(site), sysconfig.get_path("purelib")]

    def opened(*use: dict[str, Any], **how: Any) -> AbstractAsyncContextManager[Hired]:
        return hired(tmp_path, *use, answer=ALLOWED, path=path, **how)

    return opened


async def test_storage_on_a_disk_as_a_plugin(at_work, which):
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


async def test_what_differs_is_what_the_original_gets_wrong(at_work, which):
    """Values are kept without pickles, and a response that is no mapping is not lost."""
    postman = named("postman", "org.example.workshop")
    async with at_work(FOREMAN, postman) as made:
        assert json.loads(await made.ok("foreman_keep", value={"a": [1]})) == {"a": [1]}
        (told,) = made.root.rglob("value.info")
        assert told.read_text() == {"ours": "json", "real": "pickle"}[which]
        reply = json.loads(await made.ok("postman_send"))
        assert reply["content"].get("response") == {"ours": "text", "real": None}[which]


async def test_two_instances_of_a_storage_with_0_among_them(at_work):
    first = {**FILES, "instance_id": 0, "config": {"name": "first", "root_directory": "one"}}
    second = {**FILES, "instance_id": "b", "config": {"name": "second", "root_directory": "two"}}
    async with at_work(first, second) as made:
        for name in ("first", "second"):
            await made.ok(f"{name}_write", file_path="a.txt", content=name)
        placed = made.root / ".runtime" / "org" / "concopilot" / "basic" / "storage" / "disk-storage" / "0.0.1"
        assert sorted(folder.name for folder in placed.iterdir()) == ["0", "b"]
        assert [(made.root / name / "a.txt").read_text() for name in ("one", "two")] == ["first", "second"]


async def test_the_real_package_is_installed_where_a_profile_wants_it(real_python, tmp_path, monkeypatch):
    """By pip, with what it needs from around; a component need not ask for it."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    around = [str(site) for site in real_python.parent.parent.glob("lib/python3*/site-packages")]
    path = [*around, sysconfig.get_path("purelib")]
    use = {"path": str(COMPONENTS / "workshop" / "postman")}
    how = {"real": True, "pip_params": ["--no-deps"], "path": path, "answer": ALLOWED}
    async with hired(tmp_path, use, **how) as made:
        assert json.loads(await made.ok("postman_send"))["content"]["command"] == "echo"
        (asked,) = [each for each in made.recorder.questions if "pip install" in each.text]
        assert "pip install concopilot --no-deps" in asked.text
        assert any(default_folder(made.root).glob("lib/python3*/site-packages/concopilot/framework/__init__.py"))
