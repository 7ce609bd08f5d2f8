"""The stuck check: the fast model judges silent commands, and no command waits for the answer."""

import asyncio

import pytest
from goose_like_toolkits.developer.stuck_check import Silence, StuckCheck

from goose_like.agent.view import ExchangeView
from goose_like.core.errors import CredentialError, ProfileError
from goose_like.core.events import UsageRecorded
from goose_like.core.history import History
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Model, ModelPair
from goose_like.sessions.output_limit import LimitedOutput
from goose_like.sessions.session import Session
from tests.fakes import PAUSE, FakeProvider
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer, wait_until
from tests.toolkits.developer.test_shell import is_held

HANGS = "exec 9>held; echo Password:; sleep 100"
WAITS = "echo begun; until [ -e go ]; do sleep 0.01; done; rm go; echo done"


async def ends_after(made: DeveloperHarness, questions: int) -> str:
    """Run a command that ends after this many questions to the fast model."""
    running = asyncio.create_task(made.shell(WAITS))
    await wait_until(lambda: len(made.fast_model.requests) >= questions)
    (made.root / "go").touch()
    return await running


@pytest.mark.parametrize(
    ("said", "report"),
    [
        ("INPUT: asks for a password", "waits for input, which can't come (asks for a password)"),
        ("**Server** - listens on 80\nmore", "is one that never ends by itself (listens on 80)"),
        ("STUCK", "is stuck"),
    ],
)
async def test_a_command_that_is_stuck_is_stopped(tmp_path, said, report):
    async with open_developer(tmp_path, tools=["shell"], asks_when_silent=1, answers=[said]) as made:
        answer = await made.call_error("shell", command=HANGS)
        assert answer.startswith("Password:\n[stopped: it printed nothing for ")
        assert f" s, and a fast model thinks that it {report}; give what it waits for" in answer
        await wait_until(lambda: not is_held(made.root / "held"))
        assert await made.shell("echo alive") == "alive"


async def test_with_tools_for_processes_it_goes_on_as_one(tmp_path):
    async with open_developer(tmp_path, asks_when_silent=1, answers=["INPUT: asks for a password"]) as made:
        answer = await made.shell(HANGS)
        assert answer.startswith("Password:\n[printed nothing for ")
        assert "thinks that it waits for input" in answer
        assert "(asks for a password): still running as process p1, " in answer
        assert "p1: running" in await made.call_ok("process", action="list")


async def test_what_is_asked_is_counted_and_enters_no_history(tmp_path):
    async with open_developer(tmp_path, tools=["shell"], asks_when_silent=1, answers=["STUCK"]) as made:
        await made.call_error("shell", command=f"echo {'x' * 9_000}; {HANGS}")
        (request,) = made.fast_model.requests
        question = request.messages[0].text
        assert question.startswith("The command:\necho xxx")
        assert question.endswith("x\nPassword:\n")
        assert len(question) < 7_000
        (usage,) = (event for event in made.recorder.events if isinstance(event, UsageRecorded))
        assert (usage.model, usage.purpose) == ("scripted:fast", "stuck command")
        assert made.session.history.messages == []


@pytest.mark.parametrize("said", ["WORKS: it builds", "hm, INPUT or STUCK?", "WORKSHOP", "INPUTS"])
async def test_a_command_that_works_is_asked_about_again_and_left_alone(tmp_path, said):
    async with open_developer(tmp_path, asks_when_silent=0.02, answers=[said] * 30) as made:
        assert await ends_after(made, questions=3) == "begun\ndone"


async def test_each_time_the_silence_is_twice_as_long():
    silence = Silence(0.02)
    for duration_s in (0.02, 0.04, 0.08, 0.16):
        await silence.wait_for_check()
        assert silence.duration_s >= duration_s
    silence.reset()
    await silence.wait_for_check()
    assert silence.duration_s >= 0.02


async def test_a_command_that_ends_first_takes_the_question_back(tmp_path):
    async with open_developer(tmp_path, asks_when_silent=0.02, answers=[[PAUSE]]) as made:
        assert await ends_after(made, questions=1) == "begun\ndone"
        await wait_until(lambda: made.fast_model.streams_closed == 1)


async def test_cancelling_the_command_takes_the_question_back(tmp_path):
    async with open_developer(tmp_path, asks_when_silent=0.02, answers=[[PAUSE]]) as made:
        running = asyncio.create_task(made.shell(HANGS))
        await wait_until(lambda: made.fast_model.requests)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await wait_until(lambda: made.fast_model.streams_closed == 1)


async def test_a_model_that_fails_harms_no_command_and_is_told_once(tmp_path):
    failures = [CredentialError("the key was refused")] * 2
    async with open_developer(tmp_path, asks_when_silent=0.02, answers=failures) as made:
        assert await ends_after(made, questions=1) == "begun\ndone"
        assert await ends_after(made, questions=2) == "begun\ndone"
        assert made.logged == ["silent commands are not checked: the key was refused"]


@pytest.mark.parametrize(
    "config", [{"asks_when_silent": False}, {"asks_when_silent": 0.01, "label": "scripted:strong"}]
)
async def test_who_is_not_to_be_asked_is_not_asked(tmp_path, config):
    async with open_developer(tmp_path, **config) as made:
        assert await made.shell("sleep 0.2") == "[no output]"
        assert made.fast_model.requests == []


class Late(FakeProvider):
    """A provider that answers only on a signal."""

    def __init__(self, script):
        super().__init__(script)
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    async def stream(self, request):
        self.asked.set()
        await self.may.wait()
        async for delta in super().stream(request):
            yield delta


async def test_an_answer_that_output_overtook_does_not_count(tmp_path):
    fast, recorder, output = Late(["INPUT: early", "SERVER: late"]), Recorder(), LimitedOutput(tmp_path / "out", 1_000)
    models = ModelPair(Model(FakeProvider(), "strong", "strong"), Model(fast, "fast", "fast"))
    watch = StuckCheck(ExchangeView(Session(tmp_path, "n", History()), models, recorder), recorder, 0.02)

    async def serve() -> str:
        try:
            async with asyncio.timeout(60) as limit:
                with watch.watch("serve", output, limit) as silence:
                    await fast.asked.wait()
                    output.write(b"listening\n")
                    silence.reset()
                    fast.may.set()
                    await asyncio.Event().wait()
        except TimeoutError:
            return silence.verdict

    assert (await serve()).endswith("is one that never ends by itself (late)")
    tails = [request.messages[0].text.rpartition("output:\n")[2] for request in fast.requests]
    assert tails == ["(none so far)", "listening\n"]


@pytest.mark.parametrize("value", [True, 0, -1, "20", None, float("nan"), [20]])
async def test_what_a_profile_may_not_say(tmp_path, value):
    with pytest.raises(ProfileError, match="`asks_when_silent` is false, or the seconds") as raised:
        async with open_developer(tmp_path, asks_when_silent=value):
            pass
    assert raised.value.path == ("config", "asks_when_silent")
