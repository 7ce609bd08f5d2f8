"""A boss at work: its rounds, its memory byte for byte, bosses within bosses, and every way in which it ends."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from goose_like_toolkits.boss.aiflows.flow_memory import FlowMemory
from goose_like_toolkits.boss.flow.boss import Boss, BossRun
from goose_like_toolkits.boss.flow.executor import FlowPart
from goose_like_toolkits.boss.flow.outcome import Outcome
from goose_like_toolkits.boss.flow.setup import open_boss
from goose_like_toolkits.boss.memory.files import MAX_BYTES
from goose_like_toolkits.boss.spec import BossSpec

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Limits, Profile, ToolkitChoice
from goose_like.core.errors import ContextLengthError, ProfileError, UsageError
from goose_like.core.events import Answer, Reminded
from goose_like.core.history import History
from goose_like.core.message import Message, Thinking, ToolResult
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Delta, Model, ModelPair, Request
from goose_like.sessions.jsonl import parse_line
from goose_like.sessions.session import Session
from goose_like.workspace import sandbox
from tests.fakes import PAUSE, FakeProvider, call, calls, is_well_formed
from tests.long_session import wires
from tests.providers.vendor_rules import valid_for_anthropic, valid_for_openai
from tests.toolkits.boss import boss_model
from tests.toolkits.boss.boss_model import Deciding

PROFILE = Profile(name="mine", toolkits=(), sandbox="full", approval="yolo")
FILES = {"plan": "plan.md", "logs": "logs.md"}


class Acting(FakeProvider):
    """Plays its script; what is a function in it is called with the request, and what it gives is played."""

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        if callable(step := self.script[0]):
            self.script[0] = step(request)
        async for delta in super().stream(request):
            yield delta


class Place:
    """A boss that works, and what came of it."""

    def __init__(self, run: BossRun, session: Session, recorder: Recorder, provider: FakeProvider) -> None:
        self.run, self.session, self.recorder, self.provider = run, session, recorder, provider

    @property
    def results(self) -> list[ToolResult]:
        return [result for message in self.run.history.messages for result in message.tool_results]

    @property
    def reminded(self) -> list[str]:
        return [event.text for event in self.recorder.events if isinstance(event, Reminded)]

    @property
    def memories(self) -> list[str]:
        """What stood at the end of each request with tools."""
        return [request.messages[-1].text for request in self.provider.requests if request.tools]


class Echo:
    """A flow that gives back what it is given, beside what it is made with."""

    def __init__(self, **more: object) -> None:
        self.more = more

    def run(self, input_data: dict[str, Any]) -> dict[str, Any]:
        return {"result": f"got {input_data}", "summary": f"echoed {len(input_data)}", **self.more}


class Silent:
    """A flow that gives the same words each time, and no summary."""

    def __init__(self, words: str = "seen") -> None:
        self.words = words

    def run(self, input_data: dict[str, Any]) -> str:
        return self.words


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def act(name: str, **arguments: Any) -> Message:
    return calls(call(name, json.dumps(arguments), id=""))


def finish(result: str = "all done") -> Message:
    return act("finish", result=result, summary=f"said {result}")


def boss(*branches: str, **more: Any) -> dict[str, Any]:
    """A boss without a planner, with these actions."""
    return {"memory_files": FILES, "planner": None, "branches": {name: {} for name in branches}, **more}


def inner(*branches: str, **more: Any) -> dict[str, Any]:
    files = {"plan": "inner_plan.md", "logs": "inner_logs.md"}
    return {"boss": boss(*branches, name="inner", memory_files=files, **more)}


@asynccontextmanager
async def at_work(
    spec: Mapping[str, Any],
    played: FakeProvider | list[Any],
    *,
    session: Session | None = None,
    answer: Answer = Answer(),
    profile: Profile = PROFILE,
    limits: Limits | None = None,
    **how: Any,
) -> AsyncIterator[Place]:
    provider = played if isinstance(played, FakeProvider) else Acting(played)
    recorder, session = Recorder(answer), session or Session.create("here")
    model = Model(provider, "x", "scripted:x")
    made = Boss(BossSpec.model_validate(spec), **how)
    try:
        opened = open_boss(
            made,
            PROFILE if profile is None else profile,
            recorder,
            session=session,
            limits=limits,
            models=ModelPair(model, model),
        )
        async with opened as run:
            yield Place(run, session, recorder, provider)
    finally:
        session.close()


async def worked(
    spec: Mapping[str, Any], played: FakeProvider | list[Any], goal: str = "the goal", **how: Any
) -> tuple[Place, Outcome]:
    """A boss that has worked, and its outcome."""
    async with at_work(spec, played, **how) as place:
        outcome = await place.run.work(goal)
    return place, outcome


def resumed() -> Session:
    return Session.resume("here", keep_open_turn=True)


def below(place: Place, *ids: str) -> Path:
    """The events of the session that a call left."""
    folder = place.session.folder
    for id in ids:
        folder = folder / "subagents" / id
    return folder / "events.jsonl"


def replayed(file: Path) -> History:
    return History.replay(map(parse_line, file.read_bytes().splitlines()))


def cut(file: Path, kind: str, name: str = "") -> None:
    """Leaves of a file of events what stood before the last one of that kind, as if the process had been killed."""
    lines = file.read_text().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if f'"type":"{kind}"' in line and name in line)
    file.write_text("".join(lines[:last]))


# --- three levels

LOGS = {
    "jarvis": """# Give the mean and the median of 1, 2, 3, 10.
- 1 · update_plan: 0 of 2 steps done
- 2 · coder: wrote mean and median
- 3 · update_plan: 1 of 2 steps done
- 4 · run_code (print("jarvis", file=open("marks.txt", "a"))): mean 4.0, median 2.5
- 5 · update_plan: 2 of 2 steps done
- 6 · finish: gave both
""",
    "coder": """# Have mean and median in the library.
- 1 · extend_library: wrote mean
- 2 · run_code (print("coder-mean", file=open("marks.txt", "a"))): 3.0
- 3 · re_plan: a new plan, as median takes mean
- 4 · extend_library: wrote median
- 5 · run_code (print("coder-median", file=open("marks.txt", "a"))): 3.0
- 6 · update_plan: 3 of 3 steps done
- 7 · finish: wrote mean and median
""",
    "extend": """# Write mean
- 1 · write_code: a draft of mean passes its tests
- 2 · save_code: mean is in the library
- 3 · update_plan: 2 of 2 steps done
- 4 · finish: wrote mean

# Write median
- 1 · write_code: a draft of median passes its tests
- 2 · save_code: median is in the library
- 3 · update_plan: 2 of 2 steps done
- 4 · finish: wrote median
""",
}
PLANS = {
    "jarvis": "- [x] Begin\n- [x] Check\n",
    "coder": "- [x] mean\n- [x] median, which takes mean\n- [x] Check both\n",
    "extend": "- [x] Begin\n- [x] Check\n",
}
LIBRARY = '''def mean(values):
    """Their sum through their number."""
    return sum(values) / len(values)


def median(values):
    """The middle one, or the mean of both."""
    half = len(values) // 2
    ordered = sorted(values)
    return mean(ordered[half:][:1] + ordered[~half:][:1])
'''


async def test_three_levels_leave_these_files(root):
    mode = "full" if sandbox.find_sandbox_problem() else "workspace"
    profile = PROFILE.model_copy(update={"sandbox": mode})
    place, outcome = await worked(boss_model.config(), Deciding(), boss_model.GOAL, profile=profile)
    assert outcome == Outcome(result=boss_model.RESULT, summary="gave both", status="finished")
    assert {path.name: path.read_text() for path in root.iterdir()} == {
        **{f"{name}_logs.md": text for name, text in LOGS.items()},
        **{f"{name}_plan.md": text for name, text in PLANS.items()},
        "library.py": LIBRARY,
        "marks.txt": "coder-mean\ncoder-median\njarvis\n",
    }
    code = "from library import mean, median; print(mean([1, 2]), median([3, 1, 2]))"
    ran = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], cwd=root, capture_output=True)
    assert ran.stdout == b"1.5 2.0\n"
    steps = list(trace(event.model_dump(mode="json") for event in place.recorder.events))
    begun, done = ["log", ">asked", "plan", "tasks", "plan", "sent", "asked"], ["log", "sent", "asked"]
    assert steps[: len(begun)] == begun, "MemoryWriting, Planner, MemoryReading; then the first round"
    at = steps.index("coder")
    assert steps[at - 5 : at] == ["update_plan", "tasks", *done], "what was done is written and read before a round"
    assert steps[at + 1 : at + 1 + len(begun)] == [f">{step}" for step in begun]
    extended = ["write_code", "draft", *done, "save_code", *done, "update_plan", "tasks", *done, "finish", "log"]
    first = steps.index(">>write_code")
    assert steps[first : first + len(extended)] == [f">>{step}" for step in extended]
    assert steps[first + len(extended) :][:4] == [">log", ">sent", ">asked", ">run_code"]
    assert steps[-2:] == ["finish", "log"]


def trace(events: Iterable[Mapping[str, Any]], depth: str = "") -> Iterator[str]:
    """What was read, written, planned, sent and done, in its order; deeper bosses are indented by `>`."""
    kinds = {"plan_updated": "tasks", "compacted": "sent", "message_completed": "asked"}
    for event in events:
        kind = event["type"]
        if kind == "subagent":
            yield from trace([event["event"]], depth + ">")
        elif kind == "tool_started":
            yield depth + event["call"]["name"]
        elif kind == "state_saved":
            yield depth + event["toolkit"].removeprefix("boss.")
        elif kind in kinds:
            yield depth + kinds[kind]


# --- rounds


async def test_what_is_no_action_goes_back_to_the_controller(root):
    place, outcome = await worked(boss("run_code"), [act("run_cod", code="1"), act("run_code"), finish()])
    assert outcome == Outcome(result="all done", summary="said all done", status="finished")
    assert ["did you mean 'run_code'" in place.results[0].output, "'code' is missing" in place.results[1].output] == [
        True,
        True,
    ]
    log = (root / "logs.md").read_text().splitlines()
    assert log[0] == "# the goal"
    assert log[1].startswith("- 1 · run_cod (1): failed: no tool 'run_cod'; did you mean 'run_code'?")
    assert log[2].startswith("- 2 · run_code: failed: wrong arguments for run_code")
    assert log[3:] == ["- 3 · finish: said all done"]


async def test_words_alone_are_asked_back_and_given_up(root):
    place, outcome = await worked(boss("run_code"), ["Well."] * 9)
    assert (outcome.status, place.run.history.last_turn.reason) == ("failed", "stop")
    assert outcome.result == "not finished (failed: it named no action)\nsaid last: Well.\nno action was taken"
    assert len(place.provider.requests) == 4
    assert place.reminded == [place.reminded[0]] * 3
    assert "Call one: run_code, finish or a tool" in place.reminded[0]
    place, outcome = await worked(boss("run_code"), ["Well.", "Hm.", finish()], session=Session.create("other"))
    assert outcome.status == "finished"


async def test_words_of_a_former_turn_do_not_count_when_it_goes_on(root):
    async with at_work(boss("run_code"), ["Well."] * 4) as place:
        assert (await place.run.work("the goal")).status == "failed"
        place.provider.script[:] = ["Well.", finish()]
        assert (await place.run.resume()).status == "finished"


async def test_what_utf8_cannot_hold_costs_the_log_nothing(root):
    spec = {"memory_files": FILES, "planner": None, "branches": {"echo": {"parameters": ["n"]}}}
    script = [act("echo", n="half \ud83d, \x1b[31mred\x00"), finish("done \udfff")]
    place, outcome = await worked(spec, script, flows={"echo": Silent()})
    assert (outcome.status, outcome.summary) == ("finished", "said done \ufffd")
    lines = (root / "logs.md").read_text().splitlines()
    assert lines == ["# the goal", "- 1 · echo (half , [31mred): seen", "- 2 · finish: said done \ufffd"]
    assert "- 1 · echo" in place.memories[1]


async def test_a_request_that_is_too_long_is_sent_with_the_newest_round_alone_and_all_of_the_memory(root):
    (root / "notes.md").write_text("Remember this.\n")
    spec = boss() | {"branches": {"echo": {"parameters": ["n"]}}, "memory_files": {**FILES, "notes": "notes.md"}}
    big = [act("echo", n=letter * 9_000) for letter in "abc"]
    script = [*big, ContextLengthError("too long"), finish()]
    place, outcome = await worked(spec, script, flows={"echo": Silent("z" * 9_000)})
    assert outcome.status == "finished"
    refused, again = place.provider.requests[-2:]
    assert again.messages[-1] == refused.messages[-1]
    assert "Remember this." in again.messages[-1].text
    assert [message.role for message in again.messages] == ["user", "assistant", "tool", "user"]
    assert "z" * 1_500 in again.messages[2].tool_results[0].output
    assert len(again.messages[2].tool_results[0].output) < 1_600


async def test_both_vendors_take_all_that_is_sent(root):
    """Whatever the rounds before were: words alone, thinking, calls side by side, wrong ones, one that was cut off."""

    def thought(message: Message) -> Message:
        return message.model_copy(update={"parts": (Thinking(text="hm", signature="s"), *message.parts)})

    both = calls(call("echo", '{"n": 1}', id="a"), call("echo", '{"n": 2}', id="b"), text="both")
    spec = boss() | {"branches": {"echo": {"parameters": ["n"]}}}
    flows = {"echo": Echo(result="z" * 4_000)}
    script = ["Well.", thought(act("echo", n=1)), thought(both), both, act("none"), calls(call("echo", "{n", id="c"))]
    async with at_work(spec, [*script, [PAUSE]], flows=flows) as place:
        work = asyncio.create_task(place.run.work("the goal"))
        await until(lambda: place.provider.opened == len(script) + 1)
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
    async with at_work(spec, [thought(both), "Hm.", both, finish()], flows=flows, session=resumed()) as on:
        assert (await on.run.resume()).status == "finished"
    requests = [*place.provider.requests, *on.provider.requests]
    for bodies, is_valid in zip(wires(requests), (valid_for_openai, valid_for_anthropic), strict=True):
        assert all(is_valid(json.loads(body)) for body in bodies)


async def test_the_last_round_is_an_answer(root):
    spec = boss(max_round=3) | {"branches": {"echo": {"parameters": ["n"]}}}
    script = [act("echo", n=n) for n in range(9)]
    place, outcome = await worked(spec, script, flows={"echo": Echo()})
    assert outcome.status == "max_round"
    assert outcome.result == (
        "not finished (max round: round 3 was the last)\nthe newest of 3 actions:\n"
        "- 1 · echo: echoed 1\n- 2 · echo: echoed 1\n- 3 · echo: echoed 1"
    )
    assert outcome.summary == "not finished (max round: round 3 was the last) after 3 actions"
    assert ["It is the last one" in memory for memory in place.memories] == [False, False, True]
    assert (root / "logs.md").read_text().count("\n- ") == 3


async def test_rounds_count_over_all_resumes(root):
    spec = boss(max_round=4) | {"branches": {"echo": {"parameters": ["n"]}}}
    for rounds in (1, 2, 1):
        kept = Session.create("here") if rounds == 1 and not (root / "logs.md").exists() else resumed()
        script = [*(act("echo", n=n) for n in range(rounds)), [PAUSE]]
        async with at_work(spec, script, session=kept, flows={"echo": Echo()}) as place:
            work = asyncio.create_task(place.run.resume() if place.run.history.turns else place.run.work("the goal"))
            await until(lambda: work.done() or place.provider.opened > rounds)  # noqa: B023
            work.cancel()
            with suppress(asyncio.CancelledError):
                assert (await work).status == "max_round"
    assert place.run.history.last_turn.reason == "step_limit"
    assert (root / "logs.md").read_text() == "# the goal\n" + "".join(f"- {n} · echo: echoed 1\n" for n in (1, 2, 3, 4))
    with pytest.raises(UsageError, match="all 4 rounds are used up; continue with more of them"):
        await worked(spec, [], session=resumed(), flows={"echo": Echo()})
    async with at_work(spec | {"max_round": 5}, [finish()], session=resumed(), flows={"echo": Echo()}) as place:
        assert (await place.run.resume()).status == "finished"


async def until(is_so: Callable[[], object]) -> None:
    """Waits for a condition; the test's own time limit is the end of it."""
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


async def test_an_action_named_like_a_toolkits_tool_is_the_boss_own(root):
    spec = boss("update_plan") | {"planner": {}}
    spec["branches"]["hands"] = {"toolkits": ["developer"]}
    place, outcome = await worked(spec, ["- [ ] one", act("update_plan", done=[1]), finish()])
    assert outcome.status == "finished"
    tools = [tool.name for tool in place.provider.requests[1].tools]
    assert tools.count("update_plan") == 1
    assert "shell" in tools
    assert (root / "plan.md").read_text() == "- [x] one\n"


async def test_a_branch_named_like_a_tool_of_its_toolkit_leaves_it_there(root):
    spec = boss() | {"branches": {"shell": {"toolkits": ["developer"]}}}
    place, _ = await worked(spec, [finish()])
    assert "shell" in [tool.name for tool in place.provider.requests[0].tools]


async def test_a_person_is_asked_and_nobody_is(root):
    script = [act("ask_user", question="Which?"), finish()]
    place, _ = await worked(boss("ask_user"), script, answer=Answer(choice="allow", by="person", text="the red one"))
    assert place.results[0].output == "the person says: the red one"
    place, _ = await worked(boss("ask_user"), script, session=Session.create("other"))
    assert place.results[0].output.startswith("nobody is there to answer; decide yourself")
    assert (root / "logs.md").read_text().split("\n\n") == [
        "# the goal\n- 1 · ask_user (Which?): the person says: the red one\n- 2 · finish: said all done",
        "# the goal\n- 1 · ask_user (Which?): failed: nobody is there to answer; decide yourself, and name your "
        "assumptions in `finish`\n- 2 · finish: said all done\n",
    ]


async def test_a_flow_ends_it_early(root):
    spec = boss() | {"branches": {"leap": {}}}
    _, outcome = await worked(spec, [act("leap")], flows={"leap": Echo(EARLY_EXIT=True, result="so be it")})
    assert outcome == Outcome(result="so be it", summary="echoed 0", status="finished")
    assert (root / "logs.md").read_text() == "# the goal\n- 1 · leap: echoed 0\n"


# --- memory, and who else writes it


async def test_a_persons_edit_of_the_plan_is_told_and_stays(root):
    plan = root / "plan.md"

    def edit(_: Request) -> Message:
        plan.write_text(plan.read_text().replace("- [ ] two\n", "- [ ] two, but in blue\n- [ ] three\n"))
        return act("update_plan", done=[2])

    spec = boss("update_plan") | {"planner": {}}
    script = ["- [ ] one\n- [ ] two\n", act("update_plan", done=[1]), edit, act("update_plan", done=[2]), finish()]
    place, _ = await worked(spec, script)
    assert plan.read_text() == "- [x] one\n- [x] two, but in blue\n- [ ] three\n"
    assert place.results[1].output.startswith("somebody changed the plan meanwhile")
    [told] = place.reminded
    assert told.startswith("plan.md: changed by somebody else:\n")
    assert "-- [ ] two\n+- [ ] two, but in blue\n+- [ ] three" in told
    assert told in [message.text for message in place.provider.requests[3].messages]


async def test_memory_that_cannot_be_read_is_told_and_written_later(root):
    plan, logs = root / "plan.md", root / "logs.md"

    def spoil(_: Request) -> Message:
        plan.write_bytes(b"- [ ] \xff\n")
        logs.rename(root / "away.md")
        logs.mkdir()
        return act("echo", n=1)

    def mend(_: Request) -> Message:
        plan.write_text("- [ ] one\n")
        logs.rmdir()
        (root / "away.md").rename(logs)
        return act("echo", n=3)

    spec = boss() | {"branches": {"echo": {"parameters": ["n"]}}}
    script = [act("echo", n=0), spoil, act("echo", n=2), mend, act("echo", n=4), finish()]
    place, outcome = await worked(spec, script, flows={"echo": Echo()})
    assert outcome.status == "finished"
    assert "memory: has a problem: the memory file 'logs'" in place.reminded[0]
    assert logs.read_text() == "# the goal\n" + "".join(f"- {n} · echo: echoed 1\n" for n in range(1, 6)) + (
        "- 6 · finish: said all done\n"
    )


async def test_a_log_that_cannot_be_written_hides_nothing_else(root):
    def spoil(_: Request) -> Message:
        (root / "logs.md").rename(root / "away.md")
        (root / "logs.md").mkdir()
        return act("echo", n=1)

    def mend(_: Request) -> Message:
        (root / "logs.md").rmdir()
        (root / "logs.md").write_bytes(b"x" * (MAX_BYTES - 9) + b"\n")
        (root / "plan.md").write_text("- [ ] seen\n")
        return act("echo", n=2)

    spec = boss() | {"branches": {"echo": {"parameters": ["n"]}}}
    place, _ = await worked(spec, [spoil, mend, finish()], flows={"echo": Echo()})
    assert "it would have 4,000," in place.reminded[-1]
    assert "- [ ] seen" in place.memories[2]


async def test_what_a_flow_failed_to_write_is_given_to_it_again(root):
    class Writing:
        lines: ClassVar[list[str]] = []
        fails = iter([False, True, True, False, False])

        def run(self, input_data: dict[str, Any]) -> None:
            if next(self.fails, False):
                raise OSError("no room")
            self.lines.append(input_data["logs"])

    spec = boss() | {"branches": {"echo": {"parameters": ["n"]}}}
    script = [*(act("echo", n=n) for n in range(4)), finish()]
    memory = FlowMemory("", None, FlowPart(Writing()))
    place, _ = await worked(spec, script, flows={"echo": Echo()}, memory_flows=memory)
    assert Writing.lines == [*(f"- {n} · echo: echoed 1" for n in range(1, 5)), "- 5 · finish: said all done"]
    assert "no room" in place.reminded[0]


@pytest.mark.parametrize("name", ["plan", "logs"])
async def test_a_plan_and_a_log_are_one_boss_own(root, name):
    spec = boss() | {"branches": {"inner": inner()}}
    spec["branches"]["inner"]["boss"]["memory_files"] = {"plan": "a.md", "logs": "b.md", name: f"./{FILES[name]}"}
    with pytest.raises(ProfileError, match=f"'boss' and 'inner', which works for it, both have '{FILES[name]}'"):
        await worked(spec, [])


async def test_no_file_is_two_memories(root):
    with pytest.raises(ProfileError, match="'logs' and 'plan' of the boss 'boss' are both"):
        await worked(boss(memory_files={"plan": "a.md", "logs": "./a.md"}), [])


# --- bosses within bosses


async def test_tokens_are_shared_by_all_bosses(root):
    spec = boss() | {"branches": {"inner": inner("run_code")}}
    script = [act("inner", goal="count"), *(act("run_code", code=f"print({n})") for n in range(9))]
    place, outcome = await worked(spec, script, limits=Limits(tokens=60))
    assert (outcome.status, place.run.exit_code) == ("budget", 5)
    assert len(place.provider.requests) == 4, "15 tokens each, of which 45 were left to the inner one"
    assert place.results[0].output.startswith("[inner: budget]\nnot finished (budget: 45 of 45 tokens are used)")
    assert place.run.history.total_usage.total_tokens == 60
    assert (root / "logs.md").read_text().splitlines()[1:] == [
        "- 1 · inner: (budget) not finished (budget: 45 of 45 tokens are used) after 3 actions"
    ]


async def test_the_planners_tokens_count(root):
    spec = boss("run_code") | {"planner": {}}
    place, _ = await worked(spec, [Message.assistant("- [ ] one"), finish()])
    assert place.run.history.total_usage.total_tokens == 30
    assert len(place.provider.requests) == 2


async def test_a_planner_that_was_stopped_is_asked_once_more_and_not_twice(root):
    spec = boss("run_code") | {"planner": {}}
    async with at_work(spec, [[PAUSE]]) as place:
        work = asyncio.create_task(place.run.work("the goal"))
        await until(lambda: place.provider.opened == 1)
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
    async with at_work(spec, ["- [ ] one", finish()], session=resumed()) as on:
        assert (await on.run.resume()).status == "finished"
    assert on.provider.requests[0].messages == place.provider.requests[0].messages
    assert (root / "plan.md").read_text() == "- [ ] one\n"


async def test_a_person_leaves_an_inner_boss_and_its_caller_goes_on(root):
    spec = boss() | {"branches": {"inner": inner("run_code")}}
    script = [act("inner", goal="count"), act("run_code", code="print(1)"), [PAUSE], finish()]
    async with at_work(spec, script) as place:
        said = asyncio.create_task(note("use three"))
        assert not place.run.stop_innermost(said), "nobody works below"
        work = asyncio.create_task(place.run.work("the goal"))
        await until(lambda: place.provider.opened == 3)
        assert place.run.active_names == ("boss", "inner")
        assert place.run.stop_innermost(said)
        assert (await work).status == "finished"
    result = place.results[0].output
    assert result.startswith("[inner: interrupted]\nthe person ended it and says: use three\n")
    assert "- 1 · run_code (print(1)): 1" in result
    assert (root / "logs.md").read_text().splitlines()[1] == (
        "- 1 · inner: (interrupted) the person ended it and says: use three"
    )
    assert (root / "inner_logs.md").read_text() == "# count\n- 1 · run_code (print(1)): 1\n"
    assert replayed(below(place, place.results[0].call_id)).last_turn.reason == "cancelled"


async def note(words: str) -> str:
    return words


async def test_ending_all_closes_both_and_the_rest_is_done_later(root):
    spec = boss() | {"branches": {"inner": inner("run_code")}}
    async with at_work(spec, [act("inner", goal="count"), [PAUSE]]) as place:
        work = asyncio.create_task(place.run.work("the goal"))
        await until(lambda: place.provider.opened == 2)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    for file in (below(place), below(place, "call_1")):
        history = replayed(file)
        assert history.last_turn.reason == "cancelled"
        assert is_well_formed(history.messages)
    assert (root / "logs.md").read_text() == "# the goal\n", "what was cut off is no entry"
    async with at_work(spec, [finish()], session=resumed()) as place:
        assert (await place.run.resume()).status == "finished"
        assert place.provider.requests[0].messages[0].text == "the goal"
    assert (root / "logs.md").read_text() == "# the goal\n- 1 · finish: said all done\n"


@pytest.mark.parametrize(("rounds", "status"), [(2, "max_round"), (9, "finished")])
async def test_what_an_inner_boss_came_to_is_told_after_a_kill(root, rounds, status):
    """Its process was killed after it had ended, before its caller had the result."""
    spec = boss() | {"branches": {"inner": inner("run_code", max_round=rounds)}}
    inner_work = [act("run_code", code="print(1)"), act("run_code", code="print(2)"), finish("counted")]
    script = [act("inner", goal="count"), *inner_work[:rounds], finish()]
    place, _ = await worked(spec, script)
    before = {path.name: path.read_text() for path in root.iterdir()}
    expected = place.results[0]
    cut(below(place), "tool_finished", expected.call_id)
    (root / "logs.md").write_text("# the goal\n")
    async with at_work(spec, [finish()], session=resumed()) as place:
        assert (await place.run.resume()).status == "finished"
    assert place.results[0] == expected
    assert expected.output.startswith(f"[inner: {status.replace('_', ' ')}]")
    assert len(place.provider.requests) == 1, "the inner boss did nothing more"
    assert {path.name: path.read_text() for path in root.iterdir()} == before


async def test_what_used_up_the_budget_is_told_after_a_kill(root):
    spec = boss() | {"branches": {"inner": inner("run_code")}}
    script = [act("inner", goal="count"), *(act("run_code", code=f"print({n})") for n in range(9))]
    place, outcome = await worked(spec, script, limits=Limits(tokens=60))
    expected, log = place.results[0], (root / "logs.md").read_text()
    cut(below(place), "tool_finished", expected.call_id)
    (root / "logs.md").write_text("# the goal\n")
    async with at_work(spec, [], session=resumed(), limits=Limits(tokens=60)) as place:
        assert await place.run.resume() == outcome
    assert place.results[0] == expected
    assert (root / "logs.md").read_text() == log


async def test_tokens_that_were_spent_before_a_kill_count_once(root):
    spec = boss() | {"branches": {"inner": inner("run_code")}}
    script = [act("inner", goal="count"), *(act("run_code", code=f"print({n})") for n in range(3)), finish(), finish()]
    place, _ = await worked(spec, script, limits=Limits(tokens=100))
    call_id = place.results[0].call_id
    cut(below(place, call_id), "message_completed")
    cut(below(place), "usage_recorded")
    async with at_work(spec, [finish(), finish()], session=resumed(), limits=Limits(tokens=100)) as place:
        assert (await place.run.resume()).status == "finished"
    assert place.run.history.total_usage.total_tokens == 90


async def test_a_plan_that_was_marked_before_a_kill_is_marked_again(root):
    spec = boss("update_plan") | {"planner": {}}
    place, _ = await worked(spec, ["- [ ] one", act("update_plan", done=[1]), finish()])
    expected = (root / "logs.md").read_text()
    cut(below(place), "tool_finished", place.results[0].call_id)
    (root / "logs.md").write_text("# the goal\n")
    async with at_work(spec, [act("update_plan", done=[1]), finish()], session=resumed()) as place:
        assert (await place.run.resume()).status == "finished"
    assert place.results[0].output.startswith("interrupted")
    assert (root / "logs.md").read_text() == expected


# --- in other profiles


async def test_any_profile_can_hand_a_goal_to_a_boss(root):
    profile = PROFILE.model_copy(update={"toolkits": (ToolkitChoice(name="boss", config=boss("run_code")),)})
    script = [act("boss", goal="count"), act("run_code", code="print(1)"), finish("one"), "It is one."]
    provider, session, recorder = Acting(script), Session.create("here"), Recorder()
    model = Model(provider, "x", "scripted:x")
    async with build_exchange(profile, recorder, session=session, models=ModelPair(model, model)) as exchange:
        end = await exchange.reply("go")
        [result] = [result for message in exchange.history.messages for result in message.tool_results]
    session.close()
    assert end.reason == "stop"
    assert result.output == "[boss: finished]\none"
    assert (root / "logs.md").read_text() == "# count\n- 1 · run_code (print(1)): 1\n- 2 · finish: said one\n"


async def test_a_boss_delegates(root):
    spec = boss() | {"branches": {"hands": {"toolkits": ["delegate"]}}}
    script = [act("delegate", task="look"), "I looked.", finish()]
    place, outcome = await worked(spec, script)
    assert outcome.status == "finished"
    assert "I looked." in place.results[0].output
    assert place.run.history.total_usage.total_tokens == 30


async def test_a_controller_that_goes_round_in_circles_is_told(root):
    again = act("run_code", code="print(1)")
    async with at_work(boss("run_code"), [again, again, again, act("run_code", code="print(2)"), finish()]) as place:
        await place.run.work("count")
    said = [[message.text for message in request.messages] for request in place.provider.requests if request.tools]
    assert [any("last 3 steps made the same calls" in text for text in each) for each in said] == [
        *[False] * 3,
        *[True] * 2,  # the rounds that are still shown
    ]
