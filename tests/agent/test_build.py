"""Tests of building an exchange: order of dependency, errors with their line, and closing."""

import asyncio
import inspect
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from goose_like.agent.budget import Budget
from goose_like.agent.build import build_exchange, change_profile
from goose_like.agent.compaction.moderators import Truncate
from goose_like.agent.profile_choice import ProfileChoice
from goose_like.config.profile import Limits, Profile
from goose_like.config.profile_loader import load_profile
from goose_like.core.errors import CredentialError, GooseLikeError, ModelUnavailableError, ProfileError
from goose_like.core.events import Logged, SessionStarted, Status
from goose_like.core.notifier import Recorder
from goose_like.providers import registry as models
from goose_like.providers.registry import NO_MODEL
from goose_like.sessions.session import Session
from goose_like.toolkit import Toolkit, tool
from tests.fakes import FakeProvider, call, calls

trace: list[str] = []
played: list[FakeProvider] = []


class Model(FakeProvider):
    """Plays the script of the test."""

    steps: list = []

    def __init__(self, choice) -> None:
        super().__init__(type(self).steps)
        played.append(self)


class Absent(Model):
    @staticmethod
    def find_setup_error(choice):
        return ModelUnavailableError("install absent")


class Traced(Toolkit):
    def __init__(self, notifier, requires, **kwargs):
        super().__init__(notifier, requires, **kwargs)
        trace.append(f"+{type(self).__name__}")

    async def close(self):
        trace.append(f"-{type(self).__name__}")


class One(Traced):
    def prompt(self):
        return "Prompt of one."

    @tool
    def first(self) -> str:
        """The first."""
        return "first"

    @tool
    def second(self) -> str:
        """The second."""
        return "second"


class Two(Traced):
    def system(self):
        return "Prompt of two."


class Three(Traced):
    pass


class Reader(One):
    is_read_only = True


class Needy(Toolkit):
    def __init__(self, notifier, requires, **kwargs):
        super().__init__(notifier, requires, **kwargs)
        self.other = requires.get("other")


class Same(Traced):
    @tool
    def first(self):
        """Another first."""


class Broken(Traced):
    def __init__(self, notifier, requires, **kwargs):
        raise KeyError("settings")


class Silent(Traced):
    def prompt(self):
        return self.words


class Closed(Traced):
    def __init__(self, notifier, requires):
        super().__init__(notifier, requires)


class Odd(Traced):
    @tool
    def odd(self, lock: "asyncio.Lock"):
        """Takes what JSON doesn't know."""


class Planning(Traced):
    @tool(display="nothing")
    def plan(self) -> None:
        """Plan."""

    @tool(display="name")
    def ask(self) -> None:
        """Ask."""


class Talkative(Traced):
    def __init__(self, notifier, requires, **kwargs):
        super().__init__(notifier, requires, **kwargs)
        notifier.log("hints were read")

    async def close(self):
        raise OSError("no such process")


@pytest.fixture(autouse=True)
def stranger(tmp_path, monkeypatch):
    """Install the classes above as a foreign package, and work in an empty folder."""
    info = tmp_path / "site" / "stranger-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1\n")
    kinds = [One, Two, Three, Reader, Needy, Same, Broken, Silent, Closed, Odd, Planning, Talkative]
    toolkits = "\n".join(f"{kind.__name__.lower()} = {__name__}:{kind.__name__}" for kind in kinds)
    (info / "entry_points.txt").write_text(
        f"[goose_like.toolkit]\n{toolkits}\n"
        f"noclass = {__name__}:trace\nforeign = {__name__}:Model\n"
        f"[goose_like.provider]\nplayed = {__name__}:Model\nabsent = {__name__}:Absent\n"
    )
    monkeypatch.syspath_prepend(str(info.parent))
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    monkeypatch.setattr(Model, "steps", [])
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    trace.clear()
    played.clear()
    return work


@asynccontextmanager
async def open_exchange(home, yaml, recorder=None, **options):
    """Open the exchange of a YAML profile. Errors start with their line, as in the command."""
    file = home / "config" / "profiles" / "p.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"processor: played:m\n{yaml}")
    profile, source = load_profile("p")
    try:
        async with build_exchange(profile, recorder or Recorder(), **options) as exchange:
            yield exchange
    except ProfileError as error:
        raise ProfileChoice(profile, source).locate_error(error) from error


async def test_toolkits_are_created_and_closed_in_order_of_dependency(home):
    toolkits = """toolkits:
  - {name: one, requires: {a: two, b: three}}
  - {name: two, requires: {deeper: three}}
  - three
"""
    async with open_exchange(home, toolkits) as exchange:
        assert trace == ["+Three", "+Two", "+One"]
        assert list(exchange.tools) == ["first", "second"]
        assert exchange.system.startswith("You are goose_like")
        assert exchange.system.endswith("Prompt of one.\n\nPrompt of two.")  # in the order of the profile
    assert trace[3:] == ["-One", "-Two", "-Three"]
    assert [provider.closed for provider in played] == [1]


async def test_the_prompt_without_local_access(home):
    async with open_exchange(home, "toolkits: [jira]") as exchange:
        assert exchange.system.startswith("You are goose_like, an assistant. You do what the user asks with the tools")
    async with open_exchange(home, "toolkits: [jira, two]") as exchange:
        assert exchange.system.startswith("You are goose_like, a developer agent.")


async def test_one_turn(home, stranger):
    Model.steps = [calls(call("first")), "Done."]
    recorder = Recorder()
    async with open_exchange(home, "toolkits: [one, talkative]", recorder) as exchange:
        assert (await exchange.reply("Hi.")).reason == "stop"
        folder = exchange.session.folder
        assert exchange.session.file.exists()
    started = recorder.events[0]
    assert isinstance(started, SessionStarted)
    assert (started.profile, started.tools, started.cwd) == ("p", ("first", "second"), str(stranger.resolve()))
    assert started.models == {"processor": "played:m", "accelerator": "played:m"}
    assert recorder.events[1] == Logged(text="hints were read")  # said while it was built, before there was a session
    assert recorder.events[-1] == Logged(text="toolkit 'talkative' failed to close: OSError: no such process")
    assert not folder.exists()


async def test_a_session_tells_which_calls_are_not_shown_as_a_whole(home):
    recorder = Recorder()
    async with open_exchange(home, "toolkits: [one, planning]", recorder) as exchange:
        events = list(exchange.session.read_events())
    assert recorder.events[0].displays == {"plan": "nothing", "ask": "name"}
    assert events[0] == recorder.events[0]


async def test_a_given_session_is_resumed_and_stays_open(home):
    Model.steps = ["One."]
    session = Session.create("kept")
    async with open_exchange(home, "toolkits: []", session=session) as exchange:
        await exchange.reply("Hi.")
    session.close()
    Model.steps = ["Two."]
    session = Session.resume("kept")
    async with open_exchange(home, "toolkits: []", session=session) as exchange:
        await exchange.reply("Again.")
    assert [message.text for message in played[1].requests[0].messages] == ["Hi.", "One.", "Again."]
    session.close()


BAD = {
    "circle": (
        "toolkits:\n  - {name: one, requires: {x: two}}\n  - {name: two, requires: {x: one}}",
        r"line [34]: toolkits require each other in a circle: (one -> two -> one|two -> one -> two); remove one",
    ),
    "circle of one": ("toolkits:\n  - {name: one, requires: {x: one}}", "line 3: .*circle: one -> one"),
    "required but not listed": (
        "toolkits:\n  - three\n  - name: one\n    requires:\n      x: thre",
        r"line 6: toolkit 'one' requires 'thre', .*not in this profile's list of toolkits; did you mean 'three'\?",
    ),
    "requirement missing": (
        "toolkits:\n  - three\n  - name: needy",
        "line 4: toolkit 'needy' needs 'other'; add `requires: {other: TOOLKIT}` to it",
    ),
    "requirement misspelt": (
        "toolkits:\n  - three\n  - name: needy\n    requires:\n      othr: three",
        r"line 5: toolkit 'needy' needs 'other' \(did you mean 'othr'\?\)",
    ),
    "requires is text": (
        "toolkits:\n  - three\n  - name: needy\n    requires: three",
        "line 5: toolkits.1.requires: expected a mapping, not 'three'$",
    ),
    "requires is a list": (
        "toolkits:\n  - three\n  - {name: needy, requires: [three]}",
        r"line 4: toolkits.1.requires: expected a mapping, not \['three'\]$",
    ),
    "unknown toolkit": ("toolkits:\n  - three\n  - tow", r"line 4: unknown toolkit 'tow'; did you mean 'two'\?"),
    "listed twice": ("toolkits:\n  - one\n  - two\n  - one", "line [35]: toolkit 'one' is listed twice; remove one"),
    "same tool twice": (
        "toolkits:\n  - one\n  - same",
        "line 4: two toolkits have a tool 'first': 'one' and 'same'; leave one out, pick among the tools of one "
        r"\(`config: {tools: \[...\]}`\), or rename one of the two$",
    ),
    "tool to pick unknown": (
        "toolkits:\n  - name: one\n    config:\n      tools: [frist]",
        r"line 5: no tool 'frist' to pick; did you mean 'first'\?",
    ),
    "tool to pick unknown, below a key": (
        "toolkits:\n  - one\none:\n    tools: [frist]",
        r"line 5: no tool 'frist' to pick; did you mean 'first'\?",
    ),
    "tools to pick no list": (
        "toolkits:\n  - name: one\n    config: {tools: first}",
        r"line 4: `tools` takes a list, e.g. \[first, second\], not 'first'",
    ),
    "unknown moderator": ("toolkits: []\nmoderator: truncat", r"line 3: unknown moderator 'truncat'; did you mean"),
    "moderator's config": (
        "toolkits: []\nmoderator: {name: truncate, config: {limit: 3}}",
        "line 3: moderator 'truncate' has no 'limit'; there are: at, limit_tokens",
    ),
    "model without provider": ("accelerator: playd", r"line 2: unknown provider 'playd'; did you mean 'played'\?"),
    "several models": ("accelerator: gpt-6", r"several models have 'gpt-6' in their names; .*openai:gpt-6-luna"),
    "unknown provider": ("accelerator: playd:m", r"line 2: unknown provider 'playd'; did you mean 'played'\?"),
}


@pytest.mark.parametrize("kind", BAD)
async def test_bad_profile_is_one_sentence_with_its_line(home, kind):
    yaml, words = BAD[kind]
    with pytest.raises(ProfileError, match=words) as caught:
        async with open_exchange(home, yaml):
            raise AssertionError("must not be built")
    assert "\n" not in str(caught.value)
    opened, closed = ([name[1:] for name in trace if name[0] == sign] for sign in "+-")
    assert closed == opened[::-1]


@pytest.mark.parametrize(
    ("toolkit", "words"),
    [
        (
            "broken",
            r"^toolkit 'broken' can't be used: KeyError: 'settings'; at tests.agent.test_build:\d+ in __init__: "
            r'raise KeyError\("settings"\); repair it or leave it out of the profile$',
        ),
        (
            "silent",
            r"AttributeError: .* 'words'; at tests.agent.test_build:\d+ in prompt: return self.words; repair it",
        ),
        (
            "closed",
            "^toolkit 'closed' can't be used: TypeError: .* got an unexpected keyword argument 'config'; repair it",
        ),
        (
            "odd",
            "toolkit 'odd' can't be used: TypeError: tool 'odd': argument 'lock': asyncio.locks.Lock has no JSON form; "
            "use str, .* or a pydantic model; repair it",
        ),
        (
            "noclass",
            r"the entry point of toolkit 'noclass' names \[.*, which is no toolkit; name a subclass of Toolkit",
        ),
        ("foreign", "the entry point of toolkit 'foreign' names <class .*Model'>, which is no toolkit"),
    ],
)
async def test_an_error_of_a_toolkit_closes_the_others(home, toolkit, words):
    with pytest.raises(GooseLikeError, match=words):
        async with open_exchange(home, f"toolkits: [one, {toolkit}]"):
            raise AssertionError("must not be built")
    assert trace[0] == "+One"
    assert trace[-1] == "-One"


async def test_status_of_create_is_shown_before_the_session_starts(home, monkeypatch):
    may_go, recorder = asyncio.Event(), Recorder()

    class Prepared(Three):
        @classmethod
        async def create(cls, notifier, requires, **kwargs):
            notifier.log("it is fetched")
            notifier.status("fetching")
            await may_go.wait()
            return cls(notifier, requires, **kwargs)

    monkeypatch.setattr(sys.modules[__name__], "Three", Prepared)
    waiting = asyncio.create_task((opened := open_exchange(home, "toolkits: [two, three]", recorder)).__aenter__())
    while not recorder.events:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert recorder.events == [Status(text="fetching")]
    may_go.set()
    await waiting
    assert [type(event) for event in recorder.events] == [Status, SessionStarted, Logged]
    await opened.__aexit__(None, None, None)
    may_go.clear()
    trace.clear()
    stopped = asyncio.create_task(open_exchange(home, "toolkits: [two, three]").__aenter__())
    while not trace:  # noqa: ASYNC110
        await asyncio.sleep(0)
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    assert trace == ["+Two", "-Two"]


async def test_events_of_threads_after_the_end_are_dropped(home, monkeypatch):
    recorder, report = Recorder(), []

    class Late(Three):
        def __init__(self, notifier, requires, **kwargs):
            super().__init__(notifier, requires, **kwargs)
            report.append(notifier)
            if kwargs["config"]:
                raise GooseLikeError("it was given up")

    monkeypatch.setattr(sys.modules[__name__], "Three", Late)
    async with open_exchange(home, "toolkits: [two, three]", recorder):
        pass
    with pytest.raises(GooseLikeError, match="it was given up"):
        async with open_exchange(home, "toolkits: [two, {name: three, config: {more: 1}}]", recorder):
            raise AssertionError("must not be built")
    before = len(recorder.events)
    for notifier in report:
        await asyncio.to_thread(notifier.status, "still fetching")
        await asyncio.to_thread(notifier.log, "fetched")
    await asyncio.sleep(0)
    assert (len(report), recorder.events[before:]) == (2, [])


async def test_config_picks_tools(home):
    async with open_exchange(home, "toolkits:\n  - {name: one, config: {tools: [second], more: 3}}") as exchange:
        assert list(exchange.tools) == ["second"]
        assert inspect.unwrap(exchange.tools["second"].function).__self__.config["more"] == 3


async def test_moderator_and_limits(home):
    yaml = "toolkits: []\nmoderator: {name: truncate, config: {limit_tokens: 30}}\nlimits: {steps: 3}"
    async with open_exchange(home, yaml) as exchange:
        assert isinstance(exchange.moderator, Truncate)
        assert exchange.budget.limits.steps == 3


async def test_a_change_of_model_checks_the_price_first(home):
    async with open_exchange(home, "toolkits: []") as exchange, AsyncExitStack() as stack:
        limited = replace(exchange, budget=Budget(Limits(cost_usd=1), exchange.session))
        with pytest.raises(GooseLikeError, match="the price of played:m is not known"):
            change_profile(limited, load_profile("p")[0], stack)
        assert change_profile(exchange, load_profile("p")[0], stack).models is not exchange.models


@pytest.mark.parametrize("mode", ["sandbox: read-only", "approval: plan"])
async def test_a_read_only_session_has_no_toolkits_of_packages_that_may_write(home, mode):
    recorder = Recorder()
    yaml = f"{mode}\ntoolkits: [one, reader, {{name: needy, requires: {{other: two}}}}, two, developer]\n"
    async with open_exchange(home, yaml, recorder) as exchange:
        assert {"first", "second", "shell"} <= exchange.tools.keys()
        assert trace == ["+Reader"]
    logged = [event.text for event in recorder.events if isinstance(event, Logged)]
    assert [text.split("'")[1] for text in logged if "is left out: it may change" in text] == ["one", "two", "needy"]


async def test_an_unavailable_model():
    with pytest.raises(ModelUnavailableError, match="install absent"):
        async with build_exchange(Profile(processor={"model": "absent:m"}, toolkits=()), Recorder()):
            raise AssertionError("must not be built")


async def test_no_model_at_all(monkeypatch):
    monkeypatch.setattr(models, "find_provider_class", lambda name: Absent)
    with pytest.raises(CredentialError) as caught:
        models.choose_models(Profile())
    assert str(caught.value) == NO_MODEL


async def test_a_failing_hook_is_logged_once(home, monkeypatch):
    def look(self):
        raise LookupError("nowhere")

    for name in ("context_updates", "before_finish", "state_sections"):
        monkeypatch.setattr(Three, name, look)
    async with open_exchange(home, "toolkits: [three]", recorder := Recorder()) as exchange:
        for _ in range(2):
            assert await exchange.hooks.collect_facts() == {}
            assert await exchange.hooks.find_follow_up() is None
            assert exchange.moderator.state_sections() == []
        report = [event.text for event in recorder.events if isinstance(event, Logged)]
    assert ["'three' failed" in text and "nowhere" in text for text in report] == [True] * 3


async def test_a_hook_with_a_wrong_result_is_logged(home, monkeypatch):
    for name, given in (("context_updates", None), ("state_sections", [1]), ("before_finish", 3)):
        monkeypatch.setattr(Three, name, lambda self, given=given: given)
    async with open_exchange(home, "toolkits: [three]", recorder := Recorder()) as exchange:
        assert await exchange.hooks.collect_facts() == {}
        assert await exchange.hooks.find_follow_up() == "3"
        assert exchange.moderator.state_sections() == []
        assert sum("'three' failed" in event.text for event in recorder.events if isinstance(event, Logged)) == 2


async def test_cancelling_twice_does_not_stop_a_close(home, monkeypatch):
    closing, closed = asyncio.Event(), asyncio.Event()

    async def close(self):
        closing.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        closed.set()

    monkeypatch.setattr(Three, "close", close)

    async def run():
        async with open_exchange(home, "toolkits: [three]"):
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    while not trace:  # noqa: ASYNC110
        await asyncio.sleep(0)
    task.cancel()
    await closing.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.is_set()
