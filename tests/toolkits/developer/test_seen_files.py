"""Files that the model has seen: kept in the session, and reported when they differ."""

from pathlib import Path

import pytest

from goose_like.core.events import StateSaved
from goose_like.core.history import History
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer, patch

CHANGED = "no longer as you saw it"


@pytest.fixture
async def here(tmp_path):
    async with open_developer(tmp_path) as made:
        yield made


def replay(made: DeveloperHarness) -> History:
    """Return the history of a session that has the saved state of another one."""
    history = History()
    for event in made.recorder.events:
        if isinstance(event, StateSaved):
            history.apply(event)
    return history


async def test_a_resumed_session_knows_what_was_read_and_written(tmp_path: Path):
    async with open_developer(tmp_path) as first:
        (first.root / "read.txt").write_text("one\n")
        (first.root / "printed.txt").write_text("two\n")
        await first.call_ok("read_file", path="read.txt")
        await first.shell("cat printed.txt")
        await first.call_ok("write_file", path="written.txt", content="three\n")
        history = replay(first)
    async with open_developer(tmp_path, history=history) as second:
        assert (await second.toolkit.context_updates())[CHANGED] == ""
        for name in ("read.txt", "printed.txt", "written.txt"):
            assert "saved" in await second.call_ok("write_file", path=name, content="new\n")


async def test_a_resumed_session_is_told_what_differs(tmp_path: Path):
    async with open_developer(tmp_path) as first:
        for name in ("a", "b", "c"):
            await first.call_ok("write_file", path=name, content=f"{name}\n")
        (first.root / "d").write_text("d\n")
        await first.call_ok("patch_file", path="d", patches=[patch("d", "e")])
        history = replay(first)
        (first.root / "a").write_text("restored\n")
        (first.root / "b").unlink()
        (first.root / "d").write_text("other\n")
    async with open_developer(tmp_path, history=history) as second:
        told = (await second.toolkit.context_updates())[CHANGED]
        assert "a (" in told
        assert "b (gone)" in told
        assert "c" not in told.replace("changed", "")
        assert "d (" not in told, "only a part of it was ever seen"
        assert "it has changed since you read it" in await second.call_error("write_file", path="a", content="x\n")
        assert (await second.toolkit.context_updates())[CHANGED] == "", "it is told once"


async def test_an_encoding_that_was_named_is_kept(tmp_path: Path):
    async with open_developer(tmp_path) as first:
        (first.root / "a").write_bytes("Я\n".encode("cp1251"))
        assert await first.call_ok("read_file", path="a", encoding="windows-1251") == "[a: 1 line, cp1251]\n1\tЯ"
        history = replay(first)
    async with open_developer(tmp_path, history=history) as second:
        await second.call_ok("patch_file", path="a", patches=[patch("Я", "Ж")])
        assert (second.root / "a").read_bytes() == "Ж\n".encode("cp1251")


async def test_each_change_is_one_small_event(here: DeveloperHarness):
    (here.root / "a").write_text("x" * 10_000)
    for _ in range(3):
        await here.call_ok("read_file", path="a")
    (saved,) = [event for event in here.recorder.events if isinstance(event, StateSaved)]
    assert saved.toolkit == "developer.file a"
    assert len(saved.model_dump_json()) < 150


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("sed -i s/one/two/ a", "a (changed by your command)"),
        ("rm a", "a (removed by your command)"),
        ("sed -i s/one/one/ a; touch a", ""),
        ("true", ""),
    ],
)
async def test_changes_by_an_own_command_are_called_so(here: DeveloperHarness, command, told):
    (here.root / "a").write_text("one\n")
    await here.call_ok("read_file", path="a")
    await here.toolkit.context_updates()
    await here.shell(command)
    assert (await here.toolkit.context_updates())[CHANGED] == told


async def test_changes_by_others_are_told_with_their_time(here: DeveloperHarness):
    (here.root / "a").write_text("one\n")
    await here.call_ok("read_file", path="a")
    await here.toolkit.context_updates()
    await here.shell("sed -i s/one/two/ a")
    (here.root / "a").write_text("by a person\n")
    told = (await here.toolkit.context_updates())[CHANGED]
    assert told.startswith("a (")
    assert "command" not in told


async def test_changes_by_a_process_that_was_started_are_own_ones(here: DeveloperHarness):
    (here.root / "a").write_text("one\n")
    await here.call_ok("read_file", path="a")
    await here.toolkit.context_updates()
    await here.call_ok("process", action="start", command="echo two > a")
    assert (await here.toolkit.context_updates())[CHANGED] == "a (changed by your command)"
