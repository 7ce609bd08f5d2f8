"""Tests of the scheduler of turns: what a front-end without a terminal sends, steers, stops and switches."""

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.slash_context import SwitchSession
from goose_like.agent.toolkit_hooks import ToolkitHooks
from goose_like.agent.turn_request import TurnRequest
from goose_like.config.profile import ModelChoice, Profile, ToolkitChoice
from goose_like.config.yaml_reader import format_document
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.events import Logged, ModeRestricted, TurnFinished
from goose_like.core.notifier import Notifier, Recorder
from goose_like.launch import scheduler as scheduler_module
from goose_like.launch.command_line import ProfileOptions
from goose_like.launch.scheduler import StartStoppedError, TurnScheduler, open_conversation
from goose_like.launch.start import SessionRequest, open_session
from goose_like.sessions.index import read_label
from goose_like.sessions.session import Session
from tests.sessions.session_files import make_header

BLOCK = {"calls": [{"tool": "shell", "arguments": {"command": "sleep 60"}}]}


class CallWatcher(Recorder):
    """A recorder that tells when a call has started."""

    def __init__(self):
        super().__init__()
        self.has_call = asyncio.Event()

    def notify(self, event):
        super().notify(event)
        if event.type == "tool_started":
            self.has_call.set()


class FrontEnd:
    """A front-end without a terminal: it keeps what the person would see."""

    def __init__(self):
        self.notifier = CallWatcher()
        self.shown = []
        self.returned = []
        self.scheduler = TurnScheduler(
            self.notifier, show=self.shown.append, ask=self.ask, return_messages=self.returned.extend
        )

    async def ask(self, label):
        return "y\n"

    def list_requests(self):
        """List what the user said, in order."""
        history = self.scheduler.exchange.history
        return [history.messages[index].text for index in history.user_message_indexes]


@pytest.fixture
def script(tmp_path, home):
    """Returns a profile whose model answers from a script."""

    def script(*steps, name="one", **settings):
        file = tmp_path / f"{name}.yaml"
        file.write_text(format_document(list(steps)))
        choice = ModelChoice(model=f"scripted:{file}")
        toolkits = (ToolkitChoice(name="developer"),)
        return Profile(name=name, processor=choice, accelerator=choice, toolkits=toolkits, sandbox="full", **settings)

    return script


@asynccontextmanager
async def open_front_end(profile, folder):
    front = FrontEnd()
    async with front.scheduler as scheduler:
        await scheduler.open(SwitchSession(profile, Session.temporary(), folder))
        yield front


async def wait_for_call(front):
    await front.notifier.has_call.wait()


async def test_messages_of_a_turn_go_to_its_next_step_or_start_the_next_turn(script, tmp_path):
    call = {"calls": [{"tool": "shell", "arguments": {"command": "sleep 0.3"}}]}
    async with open_front_end(script(call, "one", "two"), tmp_path) as front:
        front.scheduler.send("first")
        await wait_for_call(front)
        assert (front.scheduler.is_working, front.scheduler.is_in_turn) == (True, True)
        front.scheduler.send("second")
        end = await front.scheduler.finish()
        assert end.reason == "stop"
        assert front.scheduler.exit_code == 0
        assert front.list_requests() == ["first", "second"]
        assert front.scheduler.exchange.history.turn_count == 1


async def test_steering_cuts_the_step_short(script, tmp_path):
    async with open_front_end(script(BLOCK, "done"), tmp_path) as front:
        assert not front.scheduler.steer("nothing runs")
        front.scheduler.send("first")
        await wait_for_call(front)
        assert front.scheduler.steer("leave that")
        end = await asyncio.wait_for(front.scheduler.finish(), 60)
        assert end.reason == "stop"
        assert front.list_requests() == ["first", "leave that"]


async def test_a_stop_gives_the_waiting_messages_back(script, tmp_path):
    async with open_front_end(script(BLOCK, "done"), tmp_path) as front:
        assert not front.scheduler.stop()
        front.scheduler.send("first")
        await wait_for_call(front)
        front.scheduler.send("second")
        assert front.scheduler.stop()
        assert not front.scheduler.stop()
        end = await asyncio.wait_for(front.scheduler.finish(), 60)
        assert end.reason == "cancelled"
        assert front.returned == ["second"]
        assert front.scheduler.exchange.history.last_turn.reason == "cancelled"
        front.scheduler.send("third")
        assert (await front.scheduler.finish()).reason == "stop"


async def test_a_command_sends_its_request_after_its_end(script, tmp_path):
    async with open_front_end(script("reviewed"), tmp_path) as front:
        commands = {"review": SlashCommand("review", "Review.", lambda context, words: TurnRequest(f"review {words}"))}
        front.scheduler.start(front.scheduler.run_command(commands["review"], "a.py"))
        await front.scheduler.finish()
        assert front.list_requests() == ["review a.py"]
        assert front.scheduler.last_request.line == "/review a.py"


async def test_a_failing_command_is_shown(script, tmp_path):
    def fail(context, words):
        raise GooseLikeError("no such thing")

    async with open_front_end(script("never"), tmp_path) as front:
        front.scheduler.start(front.scheduler.run_command(SlashCommand("x", "Fail.", fail), ""))
        assert await front.scheduler.finish() is None
        assert front.shown == ["/x: no such thing"]


async def test_a_switch_of_the_model_keeps_the_exchange_and_of_the_session_makes_a_new_one(script, tmp_path):
    first = script("one")
    async with open_front_end(first, tmp_path) as front:
        scheduler = front.scheduler
        workspace = scheduler.exchange.workspace
        other = script("from the other", name="two").model_copy(update={"name": "one"})
        await scheduler.switch(SwitchSession(other, scheduler.current.session, tmp_path))
        assert scheduler.exchange.workspace is workspace
        scheduler.send("hello")
        await front.scheduler.finish()
        assert scheduler.exchange.history.messages[-1].text == "from the other"
        session = Session.temporary()
        await scheduler.switch(SwitchSession(first, session, tmp_path))
        assert scheduler.exchange.workspace is not workspace
        assert scheduler.exchange.session is session
        scheduler.send("hello again")
        await front.scheduler.finish()
        assert front.list_requests() == ["hello again"]


async def test_a_failed_switch_goes_on_as_before_and_gives_messages_back(script, tmp_path):
    async with open_front_end(script("one"), tmp_path) as front:
        scheduler = front.scheduler
        before = scheduler.current
        broken = before.profile.model_copy(update={"toolkits": (ToolkitChoice(name="no_such_toolkit"),)})
        scheduler.exchange.inbox.put("waits")
        await scheduler.switch(SwitchSession(broken, before.session, tmp_path))
        assert scheduler.current.profile.toolkits == before.profile.toolkits
        assert front.returned == ["waits"]
        assert "no_such_toolkit" in front.shown[0]
        scheduler.send("hello")
        assert (await front.scheduler.finish()).reason == "stop"


async def test_a_start_that_fails_when_it_is_stopped_leaves_nothing_of_the_stop(monkeypatch):
    @asynccontextmanager
    async def fails_instead(*_, **__):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise GooseLikeError("a toolkit's own words") from None
        yield

    monkeypatch.setattr(scheduler_module, "build_exchange", fails_instead)
    session = Session.temporary()
    front = FrontEnd()
    for _ in range(2):
        asyncio.get_running_loop().call_soon(front.scheduler.stop)
        with pytest.raises(GooseLikeError, match="a toolkit's own words"):
            await front.scheduler.open(SwitchSession(Profile(toolkits=()), session, Path.cwd()))
    assert asyncio.current_task().cancelling() == 0
    session.close()


async def test_a_session_that_is_stopped_when_it_starts_again_goes_on_as_before(monkeypatch):
    """The second of three starts is stopped. The scheduler returns to the profile before, in the stricter mode."""
    starts = []

    class StartedExchange:
        def __init__(self):
            self.hooks = ToolkitHooks(Notifier())
            self.inbox = scheduler_module.Exchange.__dataclass_fields__["inbox"].default_factory()

    @asynccontextmanager
    async def starts_slowly_once(profile, *_, **__):
        starts.append((profile.name, profile.approval))
        if len(starts) == 2:
            await asyncio.sleep(60)
        yield StartedExchange()

    monkeypatch.setattr(scheduler_module, "build_exchange", starts_slowly_once)
    session = Session.temporary()
    session.history.apply(make_header("x").model_copy(update={"sandbox": "workspace", "approval": "auto"}))
    front = FrontEnd()
    async with front.scheduler as scheduler:
        await scheduler.open(SwitchSession(Profile(name="first", toolkits=()), session, Path.cwd()))
        session.history.apply(ModeRestricted(sandbox="", approval="plan"))
        asyncio.get_running_loop().call_later(0.1, scheduler.stop)
        await scheduler.switch(SwitchSession(Profile(name="other", toolkits=()), session, Path.cwd()))
    assert starts == [("first", "auto"), ("other", "auto"), ("first", "plan")]
    assert front.shown == ["the start was stopped"]
    assert asyncio.current_task().cancelling() == 0


async def test_a_first_start_that_is_stopped_says_so(monkeypatch):
    @asynccontextmanager
    async def starts_slowly(*_, **__):
        await asyncio.sleep(60)
        yield

    monkeypatch.setattr(scheduler_module, "build_exchange", starts_slowly)
    session = Session.temporary()
    front = FrontEnd()
    asyncio.get_running_loop().call_soon(front.scheduler.stop)
    with pytest.raises(StartStoppedError):
        await front.scheduler.open(SwitchSession(Profile(toolkits=()), session, Path.cwd()))
    session.close()


async def test_sessions_in_two_folders_of_one_process(script, tmp_path, home):
    """Nobody changes the current folder; each session works and is resumed in its own."""
    profile = script("ok", "ok", "ok")
    model = profile.processor.model
    here = os.getcwd()
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    options = ProfileOptions(model=model, sandbox="full")
    for is_resumed in (False, True):
        async with (
            open_session(SessionRequest(options, is_resumed=is_resumed), Recorder(), folders[0]) as first,
            open_session(SessionRequest(options, is_resumed=is_resumed), Recorder(), folders[1]) as second,
        ):
            assert first.session.name != second.session.name
            for opened in (first, second):
                front = FrontEnd()
                async with front.scheduler as scheduler:
                    await scheduler.open(SwitchSession(opened.profile, opened.session, opened.folder))
                    scheduler.send(f"here is {opened.folder.name}")
                    assert isinstance(await front.scheduler.finish(), TurnFinished)
                    assert scheduler.exchange.workspace.root == opened.folder
                    assert set(front.list_requests()) == {f"here is {opened.folder.name}"}
                    assert len(front.list_requests()) == 1 + is_resumed
    assert os.getcwd() == here


async def test_trust_is_asked_through_the_notifier(script, tmp_path, home):
    profile = script("ok")
    file = tmp_path / "project/.goose-like/profiles.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("mine:\n  toolkits: []\n")
    options = ProfileOptions(model=profile.processor.model)
    nobody = Recorder()
    async with open_session(SessionRequest(options), nobody, tmp_path / "project") as opened:
        assert opened.choice.project.files == {}
    assert [question.kind for question in nobody.questions] == ["trust"]
    (note,) = [event.text for event in nobody.events if isinstance(event, Logged)]
    assert note.startswith("skipped untrusted files: ")
    assert str(file) in note


async def test_lines_are_commands_or_messages(script, tmp_path):
    async with open_front_end(script("one", "two"), tmp_path) as front:
        scheduler = front.scheduler
        await scheduler.submit("hello")
        await scheduler.finish()
        with pytest.raises(UsageError, match="no command /nothing"):
            await scheduler.submit("/nothing at all")
        await scheduler.submit("/toolkits")
        assert await scheduler.finish() is None
        assert front.shown[0] == "developer"
        await scheduler.submit("/mode plan")
        await scheduler.finish()
        assert scheduler.current.profile.approval == "plan"
        await scheduler.submit("again")
        await scheduler.finish()
        assert front.list_requests() == ["hello", "again"]


async def test_what_commands_draw_is_logged_as_text(script, tmp_path):
    notifier = Recorder()
    session = Session.temporary()
    async with TurnScheduler(notifier) as scheduler:
        await scheduler.open(SwitchSession(script("one"), session, tmp_path))
        await scheduler.submit("/context")
        await scheduler.finish()
    texts = [event.text for event in notifier.events if isinstance(event, Logged)]
    assert "system prompt" in "".join(texts)
    assert "object at" not in "".join(texts)


async def test_modes_and_models_change_between_turns(script, tmp_path):
    async with open_front_end(script("one", "two", approval="auto"), tmp_path) as front:
        scheduler = front.scheduler
        changed = await scheduler.set_mode(approval="ask")
        assert changed.approval == scheduler.exchange.workspace.approval == "ask"
        with pytest.raises(UsageError, match="no approval mode 'bogus'"):
            await scheduler.set_mode(approval="bogus")
        with pytest.raises(UsageError, match="no sandbox 'none'"):
            await scheduler.set_mode(sandbox="none")
        other = script("from the other", name="two").processor.model
        await scheduler.set_model(other)
        scheduler.send("hello")
        await scheduler.finish()
        assert scheduler.exchange.history.messages[-1].text == "from the other"
        with pytest.raises(GooseLikeError):
            await scheduler.set_model("no-such-model-anywhere")
        changed = await scheduler.set_effort("low")
        assert changed.processor.effort == "low"


async def test_a_turn_allows_only_stricter_modes(script, tmp_path):
    async with open_front_end(script(BLOCK, "done", approval="auto"), tmp_path) as front:
        scheduler = front.scheduler
        scheduler.send("first")
        await wait_for_call(front)
        with pytest.raises(UsageError, match="waits for the end of the turn"):
            await scheduler.set_mode(approval="yolo")
        with pytest.raises(UsageError, match="waits for the end of the turn"):
            await scheduler.set_model("scripted:x")
        with pytest.raises(UsageError, match="waits for the end of the turn"):
            await scheduler.set_effort("low")
        with pytest.raises(UsageError, match="a turn runs"):
            await scheduler.start_turn(TurnRequest("second"))
        await scheduler.set_mode(approval="ask")
        assert scheduler.exchange.workspace.approval == "ask"
        scheduler.stop()
        await asyncio.wait_for(scheduler.finish(), 60)
        assert scheduler.current.profile.approval == "ask"


async def test_nobody_confirms_a_looser_mode(script, tmp_path):
    session = Session.temporary()
    async with TurnScheduler(Recorder()) as scheduler:
        await scheduler.open(SwitchSession(script("one", approval="auto"), session, tmp_path))
        assert (await scheduler.set_mode(approval="yolo")).approval == "auto"
        assert scheduler.exchange.workspace.approval == "auto"


@pytest.mark.parametrize("options", [ProfileOptions(approval="bogus"), ProfileOptions(sandbox="nonsense")])
async def test_wrong_modes_of_a_program_are_refused(options, tmp_path, home):
    with pytest.raises(UsageError, match=r"no (approval mode|sandbox) '(bogus|nonsense)'"):
        async with open_session(SessionRequest(options), Recorder(), tmp_path):
            pass


async def test_a_missing_folder_is_refused(tmp_path, home):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "none", tmp_path / "file"):
        with pytest.raises(UsageError, match="there is no folder"):
            async with open_session(SessionRequest(ProfileOptions()), Recorder(), folder):
                pass


async def test_a_named_session_is_resumed_where_it_worked(script, tmp_path, home):
    options = ProfileOptions(model=script("ok", "ok").processor.model, sandbox="full")
    place = tmp_path / "place"
    place.mkdir()
    for folder, is_resumed in ((place, False), (None, True)):
        request = SessionRequest(options, "mine", is_resumed=is_resumed)
        async with open_conversation(request, Recorder(), folder) as conversation:
            conversation.send("hello")
            await conversation.finish()
            assert conversation.exchange.workspace.root == place


async def test_changes_at_once_lose_no_stricter_mode(script, tmp_path):
    """Each change begins after the one before, whatever the front-end waits for."""
    shown = script("one", approval="auto", name="first")
    async with open_front_end(shown.model_copy(update={"sandbox": "workspace"}), tmp_path) as front:
        scheduler = front.scheduler
        other = script("two", name="second").processor.model
        await asyncio.gather(
            scheduler.set_mode(sandbox="read-only"), scheduler.set_mode(approval="ask"), scheduler.set_model(other)
        )
        workspace = scheduler.exchange.workspace
        assert (workspace.mode, workspace.approval) == ("read-only", "ask")
        assert scheduler.current.profile.processor.model == other
        assert front.shown == []


async def test_lines_during_a_switch_go_to_the_next_exchange(script, tmp_path):
    async with open_front_end(script("one", "two", approval="auto"), tmp_path) as front:
        scheduler = front.scheduler
        before = scheduler.exchange
        changing = asyncio.create_task(scheduler.set_mode(sandbox="read-only"))
        while not scheduler._is_switching:  # noqa: ASYNC110
            await asyncio.sleep(0)
        scheduler.send("sent")
        submitting = asyncio.create_task(scheduler.submit("submitted"))
        await changing
        await submitting
        end = await scheduler.finish()
        assert end.reason == "stop"
        assert scheduler.exchange is not before
        assert sorted(" ".join(front.list_requests()).split()) == ["sent", "submitted"]


async def test_several_callers_wait_for_the_same_turn(script, tmp_path):
    async with open_front_end(script("one", "two"), tmp_path) as front:
        scheduler = front.scheduler
        await scheduler.submit("hello")
        work = scheduler.work
        work.add_done_callback(lambda _: asyncio.ensure_future(scheduler.submit("again")))
        ends = await asyncio.wait_for(asyncio.gather(scheduler.finish(), scheduler.finish()), 60)
        assert [end.reason for end in ends] == ["stop", "stop"]
        await scheduler.finish()
        assert front.list_requests() == ["hello", "again"]
        assert scheduler.work is None


@pytest.mark.parametrize("call", ["submit", "set_model", "set_mode"])
async def test_the_mode_of_a_command_holds_for_the_next_call(script, tmp_path, call):
    """Nobody waited in `finish` between the two."""
    async with open_front_end(script("one", "two", approval="auto"), tmp_path) as front:
        scheduler = front.scheduler
        other = script("two", "three", name="second").processor.model
        await scheduler.submit("/mode plan")
        await asyncio.wait([scheduler.work])
        calls = {
            "submit": lambda: scheduler.submit("hello"),
            "set_model": lambda: scheduler.set_model(other),
            "set_mode": lambda: scheduler.set_mode(sandbox="read-only"),
        }
        await calls[call]()
        assert scheduler.exchange.workspace.approval == "plan"
        await scheduler.finish()
        assert scheduler.current.profile.approval == "plan"


async def test_a_folder_to_change_survives_a_resume(script, tmp_path, home):
    model = script("one", "two", "three").processor.model
    for name in ("app", "lib", "docs", "more"):
        (tmp_path / name).mkdir()
    options = ProfileOptions(model=model, sandbox="full", add_dirs=["../lib:rw", "../docs"])
    request = SessionRequest(options, name="talk")
    async with open_conversation(request, Recorder(), tmp_path / "app") as scheduler:
        assert scheduler.exchange.workspace.folders == (tmp_path / "app", tmp_path / "lib")
        await scheduler.submit("hello")
        await scheduler.finish()
        await scheduler.submit("/add-dir ../more:rw")
        await scheduler.finish()
        await scheduler.submit("/profile default")
        await scheduler.finish()
        assert scheduler.exchange.workspace.folders[1:] == (tmp_path / "lib", tmp_path / "more")
    request = SessionRequest(ProfileOptions(model=model, sandbox="full"), name="talk", is_resumed=True)
    recorder = Recorder()
    async with open_conversation(request, recorder, tmp_path / "app") as scheduler:
        assert scheduler.exchange.workspace.folders[1:] == (tmp_path / "lib", tmp_path / "more")
        assert str(tmp_path / "docs") not in scheduler.current.profile.paths.read
        await scheduler.submit("/add-dir ../none:rw")
        await scheduler.finish()
    assert recorder.events[-1] == Logged(text="/add-dir: ../none:rw: there is no such folder")


async def test_a_folder_of_a_profile_that_is_gone_is_named(script, tmp_path):
    profile = script("one", folders=("../none:rw",))
    async with open_front_end(profile, tmp_path) as front:
        logged = [event.text for event in front.notifier.events if isinstance(event, Logged)]
        assert logged == ["left out: ../none:rw: there is no such folder"]


@pytest.mark.parametrize("own", ["", "My own title"])
async def test_a_title_of_the_person_stays(script, tmp_path, home, own):
    async with open_named(script, tmp_path, {"text": "Mend it.", "delay_s": 0.2}) as (front, folder):
        if own:
            await front.scheduler.submit(f"/rename {own}")
        await front.scheduler._naming
        assert read_label(folder, "title") == (own or "Mend it")
        usages = [event for event in front.notifier.events if event.type == "usage_recorded"]
        assert [usage.purpose for usage in usages] == ["title"]


async def test_a_title_that_fails_is_silent(script, tmp_path, home, caplog):
    caplog.set_level("INFO")
    async with open_named(script, tmp_path, {"error": {"status": 400, "text": "too odd"}}) as (front, folder):
        await front.scheduler._naming
        assert read_label(folder, "title") == ""
        assert front.shown == []
        assert "has no title: " in caplog.text


@asynccontextmanager
async def open_named(script, tmp_path, title):
    """Open a session after its first turn, when a fast model writes the title. Give the front-end and the folder."""
    fast = script(title, name="fast")
    profile = script("one").model_copy(update={"accelerator": fast.processor})
    session = Session.create()
    front = FrontEnd()
    async with front.scheduler as scheduler:
        await scheduler.open(SwitchSession(profile, session, tmp_path))
        await scheduler.submit("hello")
        await scheduler.finish()
        yield front, session.folder
    session.close()


async def test_an_appended_prompt_survives_a_resume(script, tmp_path, home):
    profile = script("one", "two", "three")
    (tmp_path / "more.txt").write_text("Be terse.\n")
    options = ProfileOptions(model=profile.processor.model, sandbox="full", appended_prompt="@more.txt")
    async with open_conversation(SessionRequest(options, name="talk"), Recorder(), tmp_path) as scheduler:
        assert scheduler.exchange.system.endswith("\n\nBe terse.")
        await scheduler.submit("hello")
        await scheduler.finish()
        await scheduler.submit("/profile default")
        await scheduler.finish()
        assert scheduler.exchange.system.endswith("\n\nBe terse.")
    for text, end in [(None, "Be terse."), ("Be kind.", "Be terse.\n\nBe kind."), ("Be kind.", "Be kind.")]:
        options = ProfileOptions(model=profile.processor.model, sandbox="full", appended_prompt=text)
        request = SessionRequest(options, name="talk", is_resumed=True)
        async with open_conversation(request, Recorder(), tmp_path) as scheduler:
            assert scheduler.exchange.system.endswith(f"\n\n{end}")
            assert scheduler.exchange.system.count("Be kind.") == (text is not None)
    options = ProfileOptions(appended_prompt="@none.txt")
    with pytest.raises(UsageError, match=r"--append-system-prompt @none.txt: No such file"):
        async with open_conversation(SessionRequest(options), Recorder(), tmp_path):
            pass
