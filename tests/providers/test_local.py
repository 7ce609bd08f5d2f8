"""Tests of the embedded model: errors without it, and real answers with its weights."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from importlib.util import find_spec
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import ModelUnavailableError
from goose_like.core.events import MessageCompleted, Status, TextDelta, UsageRecorded
from goose_like.core.message import Message, Text, Usage
from goose_like.core.tool import ToolSpec
from goose_like.providers import local
from goose_like.providers.base import Request
from goose_like.providers.json_answer import answer_json
from goose_like.providers.local import LocalProvider
from goose_like.providers.retry import RetryPolicy, complete_answer

engine = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
SHELL = ToolSpec(
    "shell",
    "Run a bash command.",
    {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout_s": {"type": "number"}},
        "required": ["command"],
    },
)
COUNT = Request("", "", [Message.user("Count from 1 to 200, one number a line.")])


def choice(model: str = "local", **how: int) -> ModelChoice:
    return ModelChoice(model=model, **how)


async def answer(provider: LocalProvider, request: Request) -> MessageCompleted:
    deltas = [delta async for delta in provider.stream(request)]
    done = deltas[-1]
    assert isinstance(done, MessageCompleted)
    return done


def test_without_the_engine_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    assert "pip install 'goose-like[local]'" in str(LocalProvider.find_setup_error(choice()))


class FakeEngine:
    """An engine that writes these texts, one per request and 20 characters per token."""

    def __init__(self, *texts: str) -> None:
        self.temperatures: list[float] = []
        self._texts = list(texts)

    def handle_chat_completions(self, body: dict[str, Any], report: Callable[[dict[str, Any]], bool]) -> None:
        assert body["timings_per_token"]
        self.temperatures.append(body["temperature"])
        text = self._texts.pop(0)
        count = 0
        for start in range(0, len(text), 20):
            count += 1
            item = {"choices": [{"delta": {"content": text[start : start + 20]}, "finish_reason": None}]}
            if report({**item, "timings": {"cache_n": 60, "prompt_n": 40, "predicted_n": count}}):
                return
        report({"choices": [{"delta": {}, "finish_reason": "stop"}]})
        report({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": count}})


LIST = "<shell>\nls -l\n"
LOOP = "<shell>\n" + "echo it is not done yet\n" * 100
LOOP_TOKENS = Usage(input_tokens=100, output_tokens=45, cache_read_tokens=60)
"""The watch looks at 800 characters, which are no loop yet, and at 900."""


def run_fake(*texts: str) -> tuple[LocalProvider, FakeEngine]:
    provider = LocalProvider(choice())
    fake = FakeEngine(*texts)
    provider._engine = fake
    return provider, fake


def ask(*tools: ToolSpec) -> Request:
    return Request("local", "", [Message.user("List the files.")], tools)


async def test_a_call_that_repeats_a_passage_is_written_again_and_its_tokens_count():
    provider, fake = run_fake(LOOP, LIST)
    request = ask(SHELL)
    deltas = [delta async for delta in provider.stream(request)]
    spent = UsageRecorded(model="local", usage=LOOP_TOKENS, purpose="repeated passage")
    again = Status(text="the model repeats a passage; it starts again")
    at = deltas.index(spent)
    assert deltas[at + 1] == again
    assert deltas[-1].usage == Usage(input_tokens=100, output_tokens=1)
    assert [call.arguments for call in deltas[-1].message.tool_calls] == ['{"command": "ls -l"}']
    assert not any(isinstance(delta, TextDelta) for delta in deltas)
    assert fake.temperatures == [0.0, 0.7]


async def test_the_third_answer_counts_even_if_it_repeats_a_passage():
    provider, fake = run_fake(LOOP, LOOP, LOOP)
    counted: list[Usage] = []
    done = await complete_answer(provider, ask(SHELL), RetryPolicy(), counted.append)
    assert done.message.tool_calls[0].arguments.count("not done yet") == 100
    assert counted == [LOOP_TOKENS, LOOP_TOKENS, done.usage]
    assert fake.temperatures == [0.0, 0.7, 1.0]


@pytest.mark.parametrize(("tools", "text"), [((), LOOP), ((SHELL,), f"<finish>\n{LOOP}")])
async def test_an_answer_to_the_person_may_repeat_a_passage(tools, text):
    provider, fake = run_fake(text)
    done = await answer(provider, ask(*tools))
    assert done.message.text.count("not done yet") == 100
    assert len(fake.temperatures) == 1


async def test_the_tokens_of_an_answer_that_the_person_cuts_are_told():
    provider, _ = run_fake(LOOP)
    request = ask()
    async with aclosing(provider.stream(request)) as deltas:
        async for delta in deltas:
            if isinstance(delta, TextDelta):
                break
    assert request.told_usage == [Usage(input_tokens=100, output_tokens=1, cache_read_tokens=60)]


@engine
@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "no model can be read .*No such file"), (b"PK\3\4zip", "is no GGUF file"), (b"", "is no GGUF")],
)
async def test_a_file_that_is_no_model(tmp_path, content, words):
    path = tmp_path / "m.gguf"
    if content is not None:
        path.write_bytes(content)
    chosen = choice(f"local:{path}")
    with pytest.raises(ModelUnavailableError, match=words) as caught:
        await answer(LocalProvider(chosen), COUNT)
    assert str(LocalProvider.find_setup_error(chosen)) == str(caught.value)


@engine
async def test_a_damaged_model(tmp_path, capfd):
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(ModelUnavailableError, match="can't be loaded; is it a whole model"):
        await answer(LocalProvider(choice(f"local:{path}")), COUNT)
    assert capfd.readouterr() == ("", "")


async def test_real_answers(capfd, monkeypatch, tmp_path, home, weights):
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(private))
    provider = LocalProvider(choice(window=2048, max_output_tokens=400))
    try:
        stream = provider.stream(COUNT)
        async for delta in stream:
            if isinstance(delta, TextDelta):
                break
            assert isinstance(delta, Status)
        await stream.aclose()  # a turn was cancelled: the engine stops, and is free for the next

        said = [Message.user("Run `ls -l` and tell me what you see.")]
        request = Request("", "You are a developer agent.", said, [SHELL])
        called = await answer(provider, request)
        (call,) = called.message.tool_calls
        assert call.name == "shell"
        assert "ls" in call.arguments
        assert "timeout_s" not in call.arguments
        assert called.usage.input_tokens > 20

        counted = Request("", "", [Message.user("How many legs has a dog?")])
        legs = {"type": "integer", "minimum": 6}  # against what it knows
        schema = {"type": "object", "properties": {"legs": legs}, "required": ["legs"]}
        value = await answer_json(provider, counted, schema, attempts=1)
        assert (value.keys(), value["legs"] >= 6) == ({"legs"}, True)

        cut = await answer(LocalProvider(choice(window=2048, max_output_tokens=8)), COUNT)
        assert cut.is_cut
        assert isinstance(cut.message.parts[0], Text)

        begun = await answer(LocalProvider(choice(window=2048, max_output_tokens=8)), request)
        again = await answer(LocalProvider(choice(window=2048, max_output_tokens=8)), request)
        assert again == begun
        assert begun.usage.cache_read_tokens > called.usage.input_tokens - 40
        assert len(list((home / "cache/prompts").iterdir())) == 1
        assert list(private.iterdir()) == []  # nobody can connect to an engine

        running = asyncio.create_task(answer(provider, COUNT))
        await asyncio.sleep(0.5)
        running.cancel()
        await asyncio.wait([running])
    finally:
        await provider.close()  # while it may still be at work
    assert capfd.readouterr() == ("", "")
