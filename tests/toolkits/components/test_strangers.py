"""What components may do to the session, whatever they say and whenever they are stopped."""

import asyncio
import json

import pytest

from goose_like.core.errors import GooseLikeError, ProfileError
from tests.toolkits.components.component_session import company, used

DISK = {"group_id": "org.concopilot.basic.resource.category", "artifact_id": "disk", "version": "0.0.0"}
WHOLE = """
group_id: org.example
artifact_id: whole
version: "1.0.0"
type: plugin
as_plugin: false
setup: {package: whole}
token: hunter2
"""


@pytest.fixture
async def made(tmp_path):
    async with company(tmp_path, "stranger", "greeter") as made:
        yield made


@pytest.mark.parametrize(
    "line",
    [
        "7",
        "[1]",
        "\xff",
        "no JSON",
        '{"id": {}, "result": 1}',
        '{"id": 3, "error": "no mapping"}',
        '{"id": 3, "error": {"type": "T"}}',
        '{"id": 3, "error": {"type": "T", "message": "m", "frames": 7}}',
        '{"method": "tell", "params": 7, "id": 1}',
        "[" * 20_000,
    ],
)
async def test_what_makes_no_sense_is_the_end_of_the_process(made, line):
    said = await made.failed("stranger_say", line=line)
    assert "sent a wrong message" in said
    assert '"times": 1' in await made.ok("greeter_greet", who="Ada")


@pytest.mark.parametrize(
    "result",
    [5, {"response": 1, "assets": {"put": [{"id": "x", "asset": 7}]}}, {"response": 1, "assets": {"removed": [None]}}],
)
async def test_an_answer_of_another_form_is_told(made, result):
    said = await made.failed("stranger_say", line=json.dumps({"id": 3, "result": result}))
    assert "can't be read" in said or "no answer" in said
    assert await made.ok("list_assets") == "there are no assets yet"


async def test_one_that_leaves_the_line_is_ended(made):
    assert "it closed its connection" in await made.failed("stranger_leave")


async def test_what_no_json_can_hold_is_told_and_its_state_stays(made):
    await made.ok("greeter_greet", who="Ada")
    assert "digits" in await made.failed("stranger_number")
    assert (await made.value("greeter_greet", who="Ada"))["times"] == 2


async def test_a_long_error_is_shortened(made):
    assert len(await made.failed("stranger_ask", method="x" * 100_000)) < 30_000


async def test_a_prompt_is_of_no_hidden_folder(tmp_path):
    hidden = tmp_path / "project" / ".secrets"
    hidden.mkdir(parents=True)
    (hidden / "key.txt").write_text("hunter2")
    folder = tmp_path / "project" / "mine" / ".config"
    folder.mkdir(parents=True)
    about = "info: {title: mine, description: Mine., prompt_file_path: ../../.secrets/key.txt}\n"
    (folder / "config.yaml").write_text(f"{WHOLE.replace('as_plugin: false', 'as_plugin: true')}{about}")
    async with company(tmp_path, {"path": "mine"}) as made:
        with pytest.raises(GooseLikeError, match="outside of"):
            made.kit.prompt()


async def test_what_only_the_process_has_is_told_as_such(tmp_path):
    async with company(tmp_path, "picture") as made:
        reference = await made.ok("picture_object")
        assert "in the components' process" in await made.failed("get_asset", asset_id=reference)
        drawn = await made.value("picture_draw", width=1, height=1, shade=128)
        assert "128" in await made.ok("get_asset", asset_id=drawn["asset_id"], path="")


# --- several at once, and stopped ones


async def test_assets_of_calls_at_once_stay(tmp_path):
    async with company(tmp_path, "picture") as made:
        reference, *_ = await asyncio.gather(
            made.ok("picture_object"),
            made.ok("picture_draw", width=1, height=1, shade=0),
            made.ok("picture_draw", width=1, height=1, shade=0),
        )
        assert await made.ok("picture_look", what=reference) == "Canvas"


async def test_a_question_is_given_up_with_its_call(made):
    asked, given_up = asyncio.Event(), asyncio.Event()

    async def waiting(question):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    await made.ok("greeter_greet", who="Ada")
    made.recorder.ask = waiting
    running = asyncio.create_task(made.outcome("stranger_ask", method="ask", params={"text": "really?"}))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert given_up.is_set()
    assert (await made.value("greeter_greet", who="Ada"))["times"] == 2


async def test_one_that_is_stopped_twice_leaves_the_next_call_alone(tmp_path):
    async with company(tmp_path, "hanger", "greeter") as made:
        await made.ok("greeter_greet", who="Ada")
        running = asyncio.create_task(made.outcome("hanger_hang"))
        await asyncio.sleep(0.3)
        for _ in range(3):
            running.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await made.value("greeter_greet", who="Ada"))["times"] == 2


async def test_a_resource_whose_call_was_stopped_is_opened_once(tmp_path):
    pool = used("pool", config={"slow_s": 60})
    async with company(tmp_path, pool, "fetch") as made:
        log = made.root / "pool.log"
        running = asyncio.create_task(made.outcome("fetch_get", url="http://127.0.0.1:9"))
        async with asyncio.timeout(60):
            while not log.exists() or log.read_text() != "open http\n":  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert "URLError" in await made.failed("fetch_get", url="http://127.0.0.1:9")
    assert log.read_text() == "open http\ninterrupted http\nclose http\n"


async def test_what_was_lost_is_told_even_when_the_next_call_fails(tmp_path):
    async with company(tmp_path, "crasher", "greeter") as made:
        await made.ok("greeter_greet", who="Ada")
        await made.failed("crasher_crash", how="exit")
        await made.failed("crasher_crash", how="raise")
        await made.failed("crasher_crash", how="exit")
        said = await made.ok("greeter_greet", who="Ada")
        assert "gone: greeter, crasher" in said
        assert "gone" not in await made.ok("greeter_greet", who="Ada")


async def test_the_end_of_a_session_ends_what_runs_and_finalises(tmp_path):
    async with company(tmp_path, "hanger", "pool", "fetch") as made:
        await made.failed("fetch_get", url="http://127.0.0.1:9")
        running = asyncio.create_task(made.outcome("hanger_hang"))
        waiting = asyncio.create_task(made.outcome("hanger_hang"))
        await asyncio.sleep(0.3)
        await made.kit.close()
        assert (await running).is_error
        assert "session is at its end" in (await waiting).output
        assert (made.root / "pool.log").read_text() == "open http\nclose http\n"


async def test_each_command_has_a_name_of_its_own(tmp_path):
    instances = [used("greeter", instance_id=name) for name in ("a b", "a_b")]
    with pytest.raises(ProfileError, match=r"both have the tool 'greeter_a_b_greet'.*config: \{name: \.\.\.\}"):
        async with company(tmp_path, *instances):
            pass
    long = [used("greeter", instance_id=name, config={"name": f"{name}{'n' * 90}"}) for name in ("a", "b")]
    async with company(tmp_path, *long) as made:
        assert len([name for name in made.tools if name[1:].startswith("nnn")]) == 2
        assert max(map(len, made.tools)) == 64
