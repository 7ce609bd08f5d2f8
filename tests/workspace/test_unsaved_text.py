"""Unsaved text of an editor: what is read, what is written through it, what undo keeps, and when nobody asks it."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from goose_like.config.profile import PathChoice, WorkspaceSettings
from goose_like.core.errors import DeniedError, GooseLikeError
from goose_like.core.events import Answer
from goose_like.core.history import History
from goose_like.core.notifier import Recorder
from goose_like.workspace.files import CurrentFile
from goose_like.workspace.undo.undo import Undo
from goose_like.workspace.workspace import Workspace
from tests.workspace.undo.undo_harness import UndoHarness
from tests.workspace.workspace_harness import needs_sandbox, run_script


class FakeEditor:
    """An editor that saves what it writes, perhaps formatted, unless it keeps that to itself."""

    def __init__(self):
        self.buffers: dict[Path, str] = {}
        self.asked: list[Path] = []
        self.format = str
        self.saves = True
        self.writes = True

    async def read(self, path):
        self.asked.append(path)
        return self.buffers.get(path)

    async def write(self, path, text):
        self.asked.append(path)
        if not self.writes:
            return False
        self.buffers[path] = self.format(text)
        if self.saves:
            path.write_text(self.format(text), newline="")
        return True


@pytest.fixture
def editor():
    return FakeEditor()


@asynccontextmanager
async def open_workspace(root, editor, mode="full", answer=Answer(), **options):
    recorder = Recorder(answer)
    async with Workspace(root, mode=mode, approval="auto", notifier=recorder, editor=editor, **options) as workspace:
        yield workspace, recorder


async def test_the_text_of_the_editor_is_read_in_the_form_of_the_file(root, editor):
    (root / "plain").write_bytes(b"one\n")
    (root / "dos").write_bytes(b"one\r\ntwo\r\n")
    (root / "same").write_bytes(b"one\r\n")
    editor.buffers = {root / "plain": "two\n", root / "dos": "1\ntwo\n", root / "same": "one\n"}
    async with open_workspace(root, editor) as (workspace, _):
        assert await workspace.read_current("plain") == CurrentFile(b"two\n", is_saved=False)
        assert await workspace.read_current("dos") == CurrentFile(b"1\r\ntwo\r\n", is_saved=False)
        assert await workspace.read_current("same") == CurrentFile(b"one\r\n", is_saved=True)
        assert workspace.read_bytes("plain") == b"one\n"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n1", b"a\0b", b"\xef\xbb\xbfwith a mark\n", b"gr\xfc\xdfe\n"])
async def test_the_editor_is_not_asked_about_files_that_are_no_plain_text(root, editor, data):
    (root / "f").write_bytes(data)
    async with open_workspace(root, editor) as (workspace, _):
        assert await workspace.read_current("f") == CurrentFile(data, is_saved=True)
        await workspace.write_bytes("f", data + b"\xff")
    assert (root / "f").read_bytes() == data + b"\xff"
    assert editor.asked == []


async def test_the_editor_is_not_asked_about_files_outside(root, editor, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("here\n")
    (root / "link").symlink_to(outside)
    async with open_workspace(root, editor) as (workspace, _):
        for path in (outside, root / "link"):
            assert (await workspace.read_current(path)).data == b"here\n"
        await workspace.write_bytes("link", b"there\n")
    assert outside.read_text() == "there\n"
    assert editor.asked == []


async def test_a_file_that_is_hidden_stays_hidden(root, editor):
    (root / ".gooseignore").write_text("secret\n")
    (root / "secret").write_text("x\n")
    editor.buffers = {root / "secret": "y\n"}
    async with open_workspace(root, editor, "workspace") as (workspace, _):
        for access in (workspace.read_current("secret"), workspace.write_bytes("secret", b"z")):
            with pytest.raises(GooseLikeError, match="hidden"):
                await access
    assert editor.asked == []


async def test_the_question_shows_the_change_of_the_unsaved_text(root, editor):
    (root / "f").write_text("old\n")
    editor.buffers = {root / "f": "typed\n"}
    async with open_workspace(root, editor, answer=Answer(choice="allow", by="person")) as (workspace, recorder):
        workspace.change_approval("ask")
        await workspace.write_bytes("f", b"new\n")
    (question,) = recorder.questions
    assert "-typed\n+new" in question.detail
    assert (root / "f").read_text() == editor.buffers[root / "f"] == "new\n"


async def test_text_that_is_typed_while_the_question_is_open_stays(root, editor):
    (root / "f").write_text("old\n")

    class Typing(Recorder):
        async def ask(self, question):
            editor.buffers[root / "f"] = "typed\n"
            return Answer(choice="allow", by="person")

    async with Workspace(root, mode="full", approval="ask", notifier=Typing(), editor=editor) as workspace:
        with pytest.raises(GooseLikeError, match="while the question was open"):
            await workspace.write_bytes("f", b"new\n")
    assert editor.buffers[root / "f"] == "typed\n"


@pytest.mark.parametrize(
    ("saves", "formatted", "held"), [(True, str, "new\n"), (True, str.upper, "NEW\n"), (False, str, "new\n")]
)
async def test_the_disk_has_what_the_editor_wrote(root, editor, saves, formatted, held):
    editor.saves = saves
    editor.format = formatted
    (root / "old").write_text("old\n")
    async with open_workspace(root, editor) as (workspace, _):
        for name in ("old", "fresh"):
            await workspace.write_bytes(name, b"new\n")
            assert (root / name).read_text() == held


async def test_unsaved_text_is_not_overwritten_on_the_disk(root, editor):
    (root / "f").write_text("old\n")
    editor.buffers = {root / "f": "typed\n"}
    editor.writes = False
    async with open_workspace(root, editor) as (workspace, _):
        with pytest.raises(GooseLikeError, match="has not saved"):
            await workspace.write_bytes("f", b"new\n")
        editor.buffers = {}
        await workspace.write_bytes("f", b"new\n")
    assert (root / "f").read_text() == "new\n"


@asynccontextmanager
async def open_undo(folder, root, editor):
    history = History()
    async with open_workspace(root, editor) as (workspace, recorder):
        undo = Undo(folder, workspace.folders, history, workspace.run_internal, recorder)
        workspace.add_change_listener(undo.on_change)
        workspace.unsaved.keep = undo.keep_unsaved
        try:
            yield UndoHarness(root, history, workspace, undo, recorder)
        finally:
            await undo.close()


@pytest.mark.parametrize("starts_with_a_command", [False, True])
async def test_undo_brings_unsaved_text_back(root, editor, tmp_path, starts_with_a_command):
    file = root / "f"
    file.write_text("old\n")
    editor.buffers = {file: "typed\n"}
    async with open_undo(tmp_path / "undo", root, editor) as harness:
        number = harness.begin()
        if starts_with_a_command:
            await run_script(harness.workspace, "true")
        await harness.workspace.write_bytes("f", b"new\n")
        editor.buffers[file] = "typed again\n"
        await harness.workspace.write_bytes("f", b"newer\n")
        harness.end()
        editor.buffers = {}
        plan = await harness.undo.plan_restore(number)
        assert [change.is_edited for change in plan.changes] == [False]
        assert await harness.undo.restore(plan) == []
        assert file.read_text() == "typed\n"
    async with open_undo(tmp_path / "undo", root, editor) as harness:  # the log is read again
        assert (await harness.undo.list_turn_changes()).keys() == {number}


@needs_sandbox
async def test_nobody_asks_while_a_command_runs_that_could_make_a_link(root, editor):
    """The editor opens a path outside the sandbox, so a command could exchange a folder for a link meanwhile."""
    (root / "f").write_text("old\n")
    editor.buffers = {root / "f": "typed\n"}
    async with open_workspace(root, editor, "workspace") as (workspace, recorder):
        async with Workspace(root, mode="workspace", approval="auto", notifier=recorder, parent=workspace) as child:
            process = await child.spawn(["sleep", "60"])
            assert (await workspace.read_current("f")).is_saved
            await workspace.write_bytes("new", b"x")
            assert editor.asked == []
            await process.stop(0)
            internal = asyncio.create_task(workspace.run_internal(["sleep", "0.1"]))
            await asyncio.sleep(0)
            assert (await workspace.read_current("f")).data == b"typed\n"  # a command of our own is waited for
            await internal
        await workspace.write_bytes("f", b"new\n")
    assert editor.asked == [root / "f"] * 3


@needs_sandbox
async def test_the_editor_follows_no_link_that_appeared_while_the_question_was_open(root, editor):
    (root / ".git/hooks").mkdir(parents=True)
    (root / "d").mkdir()

    class Late(Recorder):
        async def ask(self, question):
            (root / "go").touch()
            await process.wait()
            return Answer(choice="allow", by="person")

    async with Workspace(root, mode="workspace", approval="ask", notifier=Late(), editor=editor) as workspace:
        script = "until test -e go; do sleep 0.01; done; mv d e && ln -s .git/hooks d"
        process = await workspace.spawn(["bash", "-c", script], is_own=True)
        with pytest.raises(GooseLikeError, match="link"):
            await workspace.write_bytes("d/pre-commit", b"new\n")
    assert (root / "d").is_symlink()
    assert not (root / ".git/hooks/pre-commit").exists()
    assert editor.asked == []


@needs_sandbox
async def test_no_command_starts_before_the_editor_has_answered(root, editor):
    async with (
        open_workspace(root, editor, "workspace") as (workspace, recorder),
        Workspace(root, mode="workspace", approval="auto", notifier=recorder, parent=workspace) as child,
    ):
        await run_script(child, "true")  # the next command starts at once
        editor_write = editor.write
        commands = []

        async def write(path, text):
            commands.append(asyncio.create_task(run_script(child, "touch own")))
            commands.append(asyncio.create_task(child.run_internal(["touch", "internal"])))
            await asyncio.wait(commands, timeout=0.3)
            assert not any(command.done() for command in commands)
            return await editor_write(path, text)

        editor.write = write
        await workspace.write_bytes("f", b"new\n")
        assert editor.asked == [root / "f"]
        assert not (root / "own").exists()
        await asyncio.gather(*commands)
        assert (root / "own").exists()


@needs_sandbox
async def test_nobody_asks_in_a_turn_that_only_reads_while_an_earlier_command_runs(root, editor):
    (root / "f").write_text("old\n")
    editor.buffers = {root / "f": "typed\n"}
    async with open_workspace(root, editor, "workspace") as (workspace, _):
        process = await workspace.spawn(["sleep", "60"])
        async with workspace.limit_turn(is_read_only=True):
            assert (await workspace.read_current("f")).is_saved
            assert editor.asked == []
            await process.stop(0)
            assert (await workspace.read_current("f")).data == b"typed\n"


async def test_a_write_is_judged_again_before_the_editor_is_asked(root, editor):
    (root / "place").mkdir()
    settings = WorkspaceSettings(paths=PathChoice(deny_write=(str(root.parent / "denied"),)))

    async def move(*_):
        (root.parent / "denied").symlink_to(root / "place")

    async with open_workspace(root, editor, settings=settings) as (workspace, _):
        workspace.add_change_listener(move)
        with pytest.raises(DeniedError, match="deny_write"):
            await workspace.write_bytes("place/f", b"new\n")
    assert editor.asked == []
