"""A call that a server announces and that never comes."""

from pathlib import Path

import pytest

from goose_like.core.events import Logged, MessageCompleted
from goose_like.core.message import Message
from tests.fakes import ExchangeHarness, call, calls
from tests.loopback import Loopback, chunk, raw, usage
from tests.providers.vendors import ANTHROPIC, OPENAI, Vendor, set_keys_only


def announce(text: str = "I will read the file first.") -> list[MessageCompleted]:
    return [MessageCompleted(message=Message.assistant(text), lacks_call=True)]


async def test_the_model_is_asked_for_it_once(tmp_path: Path) -> None:
    harness = ExchangeHarness([announce(), "fine"], folder=tmp_path)
    done = await harness.exchange.reply("fix it")
    assert (done.reason, len(harness.provider.requests)) == ("stop", 2)
    assert "You announced a tool call, but none came" in harness.provider.requests[1].messages[-1].text


async def test_a_second_time_ends_the_turn(tmp_path: Path) -> None:
    harness = ExchangeHarness([announce(), announce("Really."), "never"], folder=tmp_path)
    done = await harness.exchange.reply("fix it")
    assert (done.reason, done.exit_code, len(harness.provider.requests)) == ("error", 1, 2)
    assert "announced a tool call twice" in done.detail


async def test_it_is_asked_for_again_after_a_step(tmp_path: Path) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    script = [announce(), calls(call("look")), announce("And now."), "done"]
    harness = ExchangeHarness(script, look, folder=tmp_path)
    done = await harness.exchange.reply("fix it")
    assert (done.reason, len(harness.provider.requests)) == ("stop", 4)


async def test_the_person_is_told_of_a_cut_call(tmp_path: Path) -> None:
    cut = MessageCompleted(message=calls(call("look", '{"a": "x')), is_cut=True)
    harness = ExchangeHarness([[cut], "done"], folder=tmp_path)
    await harness.exchange.reply("go")
    logged = [event.text for event in harness.recorder.events if isinstance(event, Logged)]
    assert any("max_output_tokens" in text for text in logged)


CHAT_END = [chunk(finish="tool_calls"), usage()]
ENDS = [(OPENAI, CHAT_END), (OPENAI, [chunk(finish="function_call"), usage()]), (ANTHROPIC, ANTHROPIC.last("tool_use"))]


@pytest.mark.parametrize(("vendor", "end"), ENDS)
async def test_a_parser_sees_it(monkeypatch: pytest.MonkeyPatch, vendor: Vendor, end: list[object]) -> None:
    set_keys_only(monkeypatch)
    async with Loopback([raw(vendor.stream(*vendor.said("I look."), *end))]) as server:
        done = (await vendor.ask(server.base_url))[-1]
    assert isinstance(done, MessageCompleted)
    assert done.lacks_call
    async with Loopback([raw(vendor.stream(*vendor.called("{}"), *end))]) as server:
        done = (await vendor.ask(server.base_url))[-1]
    assert isinstance(done, MessageCompleted)
    assert not done.lacks_call
