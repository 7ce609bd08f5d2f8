"""Memory files: read, append exactly once, replace only unchanged files, and notice edits."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from goose_like_toolkits.boss.memory.files import MemoryFiles, find_missing_part
from goose_like_toolkits.boss.memory.log import list_entries
from hypothesis import assume, given
from hypothesis import strategies as st

from goose_like.core.errors import DeniedError, GooseLikeError, ProfileError
from goose_like.core.events import MessageCompleted, TextShown, ToolFinished, TurnStarted
from goose_like.core.history import History
from goose_like.core.message import Message, ToolCall, ToolResult
from goose_like.core.notifier import Recorder
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace

Make = Callable[..., MemoryFiles]

FILES = {"plan": "plan.md", "logs": "notes/logs.md"}


async def append(memory: MemoryFiles, name: str, entry: str) -> None:
    await memory.append_once(name, entry, memory.get_size(name))


def read_edits(memory: MemoryFiles) -> dict[str, str]:
    memory.read()
    return memory.take_edits()


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session.temporary()
    yield session
    session.close()


@pytest.fixture
async def workspace(tmp_path: Path, session: Session) -> AsyncIterator[Workspace]:
    root = tmp_path / "work"
    root.mkdir()
    async with Workspace(
        root, mode="workspace", approval="ask", notifier=Recorder(), session_folder=session.folder
    ) as made:
        yield made


@pytest.fixture
def linked_home(home: Path) -> None:
    (home.parent / "elsewhere").mkdir()
    home.symlink_to("elsewhere")


@pytest.fixture
def memory(workspace: Workspace, session: Session) -> MemoryFiles:
    return MemoryFiles(FILES, workspace, session)


async def test_missing_files_are_empty_and_created(memory: MemoryFiles, workspace: Workspace) -> None:
    assert memory.read() == {"plan": "", "logs": ""}
    await append(memory, "logs", "# a goal")
    await append(memory, "logs", "- 1 · é\n")
    assert await memory.replace("plan", "- a\r\n", "")
    assert (workspace.root / "notes/logs.md").read_bytes() == "# a goal\n- 1 · é\n".encode()
    assert memory.get_size("logs") == 19
    assert memory.read() == {"plan": "- a\r\n", "logs": "# a goal\n- 1 · é\n"}
    assert memory.take_edits() == {}


async def test_edits_of_a_person_are_reported_once(memory: MemoryFiles, workspace: Workspace) -> None:
    (plan, logs) = (workspace.root / path for path in FILES.values())
    plan.write_text("- a\n- b\n")
    assert read_edits(memory) == {}
    plan.write_text("- a\n- c\n")
    edits = read_edits(memory)
    assert list(edits) == ["plan"]
    assert "-- b\n+- c" in edits["plan"]
    assert read_edits(memory) == {}
    await append(memory, "logs", "one")
    logs.write_text("one\nby hand")
    await append(memory, "logs", "two")
    assert logs.read_text() == "one\nby hand\ntwo\n"
    edit = read_edits(memory)["logs"]
    assert "+by hand" in edit
    assert "+two" not in edit
    plan.write_text("x\n" * 9_000)
    assert len(read_edits(memory)["plan"]) < 4_100


async def test_replace_notices_other_writers(memory: MemoryFiles, workspace: Workspace) -> None:
    plan = workspace.root / "plan.md"
    plan.write_text("- a\n")
    was = memory.read()["plan"]
    plan.write_text("- by hand\n")
    assert not await memory.replace("plan", "- [x] a\n", was)
    assert plan.read_text() == "- by hand\n"
    assert "+- by hand" in read_edits(memory)["plan"]
    assert await memory.replace("plan", "- b\n", "- by hand\n")
    assert await memory.replace("plan", "- b\n", "- by hand\n")  # it was done before
    plan.chmod(0o640)
    assert await memory.replace("plan", "- c\n", "- b\n")
    assert plan.stat().st_mode & 0o777 == 0o640


def by_hand(path: Path | None) -> None:
    assert path is not None
    path.write_text("by hand\n")


async def test_write_during_a_write_counts(memory: MemoryFiles, workspace: Workspace) -> None:
    async def meanwhile(path: Path | None, *_: object) -> None:
        by_hand(path)

    (memory.read(), (workspace.root / "notes").mkdir())
    workspace.add_change_listener(meanwhile)
    assert not await memory.replace("plan", "- a\n", "")
    await memory.append_once("logs", "- 1\n", 0)
    assert memory.read() == {"plan": "by hand\n", "logs": "by hand\n- 1\n"}


async def test_two_bosses_share_a_file(memory: MemoryFiles, workspace: Workspace, session: Session) -> None:
    nested = MemoryFiles({"log": "notes/logs.md"}, workspace, session, parent=memory)
    (memory.read(), nested.read())

    async def add(boss: MemoryFiles, name: str, number: int) -> bool:
        was = boss.read()[name]
        return await boss.replace(name, f"{was}{number}\n", was)

    done = await asyncio.gather(*(add(*((memory, "logs") if n % 2 else (nested, "log")), n) for n in range(20)))
    numbers = (workspace.root / "notes/logs.md").read_text().split()
    assert numbers == [str(n) for n, is_done in enumerate(done) if is_done]
    assert (read_edits(memory), read_edits(nested)) == ({}, {})
    (workspace.root / "notes/logs.md").write_text("by hand\n")
    await append(nested, "log", "more")
    edit = read_edits(memory)["logs"]
    assert "+by hand" in edit
    assert "+more" not in edit
    assert read_edits(nested) == {}, "the first reader is told"


async def test_session_folder_is_reachable_but_not_through_a_link(workspace: Workspace, session: Session) -> None:
    memory = MemoryFiles({"logs": str(session.folder / "memory/logs.md")}, workspace, session)
    await append(memory, "logs", "one")
    assert (session.folder / "memory/logs.md").read_text() == "one\n"
    linked = MemoryFiles({"logs": "link.md"}, workspace, session)
    (workspace.root / "link.md").symlink_to(session.file)
    before = session.file.read_bytes()
    with suppress(GooseLikeError):  # or it goes into the private folder, where that is what commands call /tmp
        await append(linked, "logs", "two")
    assert session.file.read_bytes() == before


async def test_file_in_the_private_tmp_is_refused(workspace: Workspace, session: Session) -> None:
    for path in ("/tmp/logs.md", "/var/tmp/logs.md"):
        with pytest.raises(ProfileError, match=f"the memory file 'logs': {path} would lie in the sandbox's own /tmp"):
            MemoryFiles({"logs": path}, workspace, session)
    (workspace.root / "link").symlink_to("/tmp")
    with pytest.raises(ProfileError):
        MemoryFiles({"logs": "link/logs.md"}, workspace, session)
    async with Workspace(workspace.root, mode="full", approval="auto", notifier=Recorder()) as open_one:
        assert MemoryFiles({"logs": "/tmp/logs.md"}, open_one, session).paths["logs"] == Path("/tmp/logs.md")


async def test_denied_file_is_named(tmp_path: Path, session: Session) -> None:
    async with Workspace(tmp_path, mode="read-only", approval="auto", notifier=Recorder()) as closed:
        with pytest.raises(DeniedError) as error:
            await append(MemoryFiles(FILES, closed, session), "plan", "one")
    assert str(error.value) == (
        f"the memory file 'plan': not allowed: change {tmp_path}/plan.md: this session forbids it; "
        "allow it, or give another path for 'plan'"
    )


async def test_sub_boss_reaches_files_of_its_caller_through_a_linked_home(
    workspace: Workspace, linked_home: None
) -> None:
    session = Session.create()
    nested = session.open_subagent_session("c1")
    path = str(session.folder / "library.py")
    memory = MemoryFiles({"code_library": path}, workspace, session)
    files = {"code_library": path, "logs": str(nested.folder / "logs.md")}
    below = MemoryFiles(files, workspace, nested, parent=memory)
    assert await memory.replace("code_library", "x = 1\n", "")
    await append(below, "logs", "one")
    assert below.read() == {"code_library": "x = 1\n", "logs": "one\n"}
    assert (nested.folder / "logs.md").read_text() == "one\n"
    nested.close()
    session.close()


async def test_file_outside_needs_permission_for_its_content(workspace: Workspace, session: Session) -> None:
    recorder = Recorder()
    async with Workspace(workspace.root, mode="workspace", approval="auto", notifier=recorder) as asking:
        with pytest.raises(DeniedError, match="outside the workspace"):
            await append(MemoryFiles({"logs": "/usr/goose-like-logs.md"}, asking, session), "logs", "one")
    assert [(question.kind, question.subject) for question in recorder.questions] == [
        ("outside", "/usr/goose-like-logs.md")
    ]
    assert "+one" in recorder.questions[0].detail


async def test_links_are_followed_and_protected_files_refused(
    memory: MemoryFiles, workspace: Workspace, session: Session
) -> None:
    (workspace.root / "plan.md").symlink_to("elsewhere.md")
    assert await memory.replace("plan", "- a\n", "")
    assert (workspace.root / "elsewhere.md").read_text() == "- a\n"
    assert (workspace.root / "plan.md").is_symlink()
    (workspace.root / ".git").mkdir()
    with pytest.raises(DeniedError, match="protected"):
        await append(MemoryFiles({"x": ".git/config"}, workspace, session), "x", "[core]")
    with pytest.raises(DeniedError, match="outside the workspace"):
        await append(MemoryFiles({"x": "/opt/x.md"}, workspace, session), "x", "a")


async def test_undo_hears_of_writes_and_read_only_refuses_them(tmp_path: Path, session: Session) -> None:
    for mode, approval in (("workspace", "plan"), ("read-only", "auto"), ("workspace", "ask")):
        heard: list[Path | None] = []

        async def listen(path: Path | None, *_: object, heard: list[Path | None] = heard) -> None:
            heard.append(path)

        async with Workspace(tmp_path, mode=mode, approval=approval, notifier=Recorder()) as workspace:  # type: ignore[arg-type]
            workspace.add_change_listener(listen)
            memory = MemoryFiles({"logs": "logs.md"}, workspace, session)
            if approval == "ask":
                await append(memory, "logs", "one")
                assert heard == [tmp_path / "logs.md"]
            else:
                with pytest.raises(DeniedError):
                    await append(memory, "logs", "one")
                assert heard == []
                assert not (tmp_path / "logs.md").exists()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.mkdir(), "a folder"),
        (lambda path: path.write_bytes(b"a\nb\xff\n"), "line 2, is no UTF-8"),
        (lambda path: os.mkfifo(path), "pipe"),
        (lambda path: path.write_bytes(b"x" * 4_000_001), "4,000,001 bytes, more than 4,000,000"),
    ],
)
async def test_unreadable_file_is_reported_with_advice(
    memory: MemoryFiles, workspace: Workspace, make: Callable[[Path], object], why: str
) -> None:
    make(workspace.root / "plan.md")
    with pytest.raises(GooseLikeError, match=f"the memory file 'plan': .*{why}.*; repair or move it"):
        memory.read()


async def test_unwritable_file_is_reported(memory: MemoryFiles, workspace: Workspace) -> None:
    (workspace.root / "notes").write_text("no folder")
    with pytest.raises(GooseLikeError, match=r"notes"):
        await append(memory, "logs", "x")
    with pytest.raises(GooseLikeError, match="'plan': it would have 4,000,001 bytes"):
        await memory.replace("plan", "x" * 4_000_001, "")


async def test_interrupted_entry_is_completed(memory: MemoryFiles, workspace: Workspace) -> None:
    await append(memory, "logs", "- 1 · run: ok")
    at = memory.get_size("logs")
    entry = "- 2 · saved: café\n"
    path = workspace.root / "notes/logs.md"
    before = path.read_bytes()
    for cut in range(len(entry.encode()) + 1):
        path.write_bytes(before + entry.encode()[:cut])
        await memory.append_once("logs", entry, at)
        await memory.append_once("logs", entry, at)
        assert path.read_bytes() == before + entry.encode(), cut


def test_interrupted_action_is_no_entry_of_the_log() -> None:
    calls = [ToolCall(id=id, name="run_code", arguments="{}") for id in ("a", "b")]
    saved_events = (
        TurnStarted(message=Message.user("go")),
        MessageCompleted(message=Message.assistant("", calls)),
        ToolFinished(result=ToolResult(call_id="a", output="done")),
        TextShown(text="half done\n", call_id="b"),
    )
    assert [entry.call.id for entry in list_entries(History.replay(saved_events))] == ["a"]


ENTRIES = st.text(min_size=1, max_size=30).map(lambda text: text.removesuffix("\n").encode(errors="replace") + b"\n")


@given(st.binary(max_size=40), ENTRIES, st.data())
def test_every_cut_of_an_entry_is_completed(before: bytes, entry: bytes, data: st.DataObject) -> None:
    whole = before + find_missing_part(before, entry, len(before))
    assert whole in (before + entry, before + b"\n" + entry)
    cut = data.draw(st.integers(len(before), len(whole)))
    assert whole[:cut] + find_missing_part(whole[:cut], entry, len(before)) == whole
    after = whole + data.draw(st.binary(max_size=20))
    assert find_missing_part(after, entry, len(before)) == b""


@given(st.lists(st.sampled_from([b"a\n", b"- x\n", b"\n"])).map(b"".join), st.integers(0, 40), st.booleans())
def test_entry_is_found_or_added_after_an_edit(held: bytes, at: int, is_there: bool) -> None:
    entry = b"- 7 \xc2\xb7 done\n"
    file = held + entry + b"and more\n" if is_there else held
    assume(at not in (len(file), len(file) - 1))  # nothing came since, or half of what came is there
    rest = find_missing_part(file, entry, at)
    assert (file + rest).count(entry) == 1
    assert (file + rest).startswith(file)
