"""Tests of scripts: played steps and errors."""

import re
from pathlib import Path
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import (
    BrokenStreamError,
    CredentialError,
    ModelUnavailableError,
    ProfileError,
    ProviderError,
    RateLimitError,
)
from goose_like.core.events import MessageCompleted, Retrying, TextDelta, ThinkingDelta
from goose_like.core.message import Message, Text, Thinking, ToolCall, ToolResult, Usage
from goose_like.providers.base import Delta, Request
from goose_like.providers.retry import RetryPolicy, stream_with_retries
from goose_like.providers.scripted import ScriptedProvider
from tests import ROOT

HI = Message.user("hi")


def create_provider(folder: Path, script: str) -> ScriptedProvider:
    file = folder / "script.yaml"
    file.write_text(script, encoding="utf-8")
    return ScriptedProvider(ModelChoice(model=f"scripted:{file}"))


async def play(provider: ScriptedProvider, *messages: Message) -> list[Delta]:
    return [delta async for delta in provider.stream(Request("m", "s", messages or (HI,)))]


async def done(provider: ScriptedProvider, *messages: Message) -> MessageCompleted:
    last = (await play(provider, *messages))[-1]
    assert isinstance(last, MessageCompleted)
    return last


async def test_a_whole_step(tmp_path: Path) -> None:
    provider = create_provider(
        tmp_path,
        """
- thinking: let me see
  text: " a  bc\\n"
  calls:
    - {tool: shell, arguments: {command: ls}}
    - {tool: shell, arguments: '{"broken', id: mine}
    - {tool: shell, id: ""}
  usage: {input: 10, output: 2, cached: 8}
  cut: true
""",
    )
    deltas = await play(provider)
    assert [d.text for d in deltas if isinstance(d, ThinkingDelta)] == ["let ", "me ", "see"]
    assert [d.text for d in deltas if isinstance(d, TextDelta)] == [" a  ", "bc\n"]
    assert deltas[-1] == MessageCompleted(
        message=Message(
            role="assistant",
            parts=(
                Thinking(text="let me see"),
                Text(text=" a  bc\n"),
                ToolCall(id="call_1_1", name="shell", arguments='{"command": "ls"}'),
                ToolCall(id="mine", name="shell", arguments='{"broken'),
                ToolCall(id="", name="shell", arguments="{}"),
            ),
        ),
        usage=Usage(input_tokens=10, output_tokens=2, cache_read_tokens=8),
        is_cut=True,
    )


async def test_chunks_of_characters(tmp_path: Path) -> None:
    deltas = await play(create_provider(tmp_path, "- {text: abcde, chunk: 2, delay_s: 0.001, delta_delay_s: 0.001}"))
    assert [d.text for d in deltas if isinstance(d, TextDelta)] == ["ab", "cd", "e"]


async def test_steps_come_in_order_and_end_with_an_error(tmp_path: Path) -> None:
    provider = create_provider(tmp_path, "- one\n- text: two\n")
    assert [(await done(provider)).message.text for _ in range(2)] == ["one", "two"]
    with pytest.raises(ProviderError, match=r"has 2 steps, and this was request number 3") as caught:
        await play(provider)
    assert not caught.value.is_retryable


@pytest.mark.parametrize(("answers", "text"), [(0, None), (1, "two"), (2, "three")])
async def test_a_resumed_session_continues_after_its_history(tmp_path: Path, answers: int, text: str | None) -> None:
    provider = create_provider(tmp_path, "- {error: refused}\n- one\n- two\n- {error: broken}\n- three\n")
    history = [HI, *[Message.assistant("x"), HI] * answers]
    if text is None:
        with pytest.raises(ModelUnavailableError):
            await play(provider, *history)
    else:
        if text == "three":
            with pytest.raises(BrokenStreamError):
                await play(provider, *history)
        assert (await done(provider, *history)).message.text == text


async def test_a_history_longer_than_the_script(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="has 1 steps"):
        await play(create_provider(tmp_path, "- one"), *[Message.assistant("x")] * 5)


@pytest.mark.parametrize(
    ("error", "kind", "is_retryable"),
    [
        ("refused", ModelUnavailableError, True),
        ("stalled", BrokenStreamError, True),
        ("broken", BrokenStreamError, True),
        ("{status: 429, retry_after_s: 2, text: slow down}", RateLimitError, True),
        ("{status: 503}", ModelUnavailableError, True),
        ("{status: 401}", CredentialError, False),
        ("{status: 404}", ModelUnavailableError, False),
        ("{status: 400}", ProviderError, False),
    ],
)
async def test_errors_are_the_real_ones(
    tmp_path: Path, error: str, kind: type[ProviderError], is_retryable: bool
) -> None:
    with pytest.raises(ProviderError) as caught:
        await play(create_provider(tmp_path, f"- error: {error}"))
    assert type(caught.value) is kind
    assert caught.value.is_retryable is is_retryable
    if "429" in error:
        assert caught.value.retry_after_s == 2
        assert "slow down" in str(caught.value)


async def test_a_retry_plays_the_next_step(tmp_path: Path) -> None:
    provider = create_provider(tmp_path, "- {text: half, error: broken}\n- whole\n")
    policy = RetryPolicy(first_wait_s=0.001)
    deltas = [delta async for delta in stream_with_retries(provider, Request("m", "s", (HI,)), policy)]
    assert [type(delta) for delta in deltas] == [TextDelta, Retrying, TextDelta, MessageCompleted]


async def test_expect(tmp_path: Path) -> None:
    script = "- {text: ok, expect: '^a.*b$'}\n- {text: ok, expect: failed}\n- {expect: x}\n"
    provider = create_provider(tmp_path, script)
    await play(provider, Message.user("a\nb"))
    await play(provider, Message(role="tool", parts=(ToolResult(call_id="1", output="it failed"),)))
    with pytest.raises(ProviderError, match=r"script\.yaml, line 3: step 3 expects 'x', but the last message is 'hi'"):
        await play(provider, HI)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("- text: [", "line 1: this is not valid YAML"),
        ("text: hello", "line 1: the script: expected a list, not {'text': 'hello'}"),
        ("", "the script: expected a list"),
        ("- text: hello\n- txt: hello", "line 2: unknown key '1.txt'; did you mean 'text'?"),
        ("- calls:\n  - tol: shell", "line 2: 0.calls.0.tool: this key is missing"),
        (
            "- calls:\n  - tool: shell\n    argument: {}",
            "line 3: unknown key '0.calls.0.argument'; did you mean 'arguments'?",
        ),
        ("- usage: {inpt: 3}", "expected 'input', 'output' or 'cached', not 'inpt'"),
        ("- text: a\n  chunk: 0", "line 2: 0.chunk: expected greater than 0, not 0"),
        ("- expect: '['", "line 1: 0.expect: expected a valid regular expression, not '['"),
        ("- error: slow", "line 1: 0.error.kind: expected 'refused', 'stalled' or 'broken', not 'slow'"),
        ("- text: a\n  error: {text: x}", "line 2: 0.error: an error has a `status`"),
        ("- text: a\n  error: {status: 200}", "line 2: 0.error.status: expected greater"),
        ("- 5", "line 1: 0: expected a mapping, not 5"),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(ProfileError, match=re.escape(words)) as caught:
        create_provider(tmp_path, script)
    assert "script.yaml" in str(caught.value)


def test_a_missing_script(tmp_path: Path) -> None:
    choice = ModelChoice(model=f"scripted:{tmp_path / 'none.yaml'}")
    assert "none.yaml" in str(ScriptedProvider.find_setup_error(choice))
    assert "scripted:FILE" in str(ScriptedProvider.find_setup_error(ModelChoice(model="scripted")))
    with pytest.raises(ProfileError, match=r"none\.yaml: can't be read"):
        ScriptedProvider(choice)


async def test_the_example_of_the_docs_plays(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "scripted.md").read_text(encoding="utf-8")
    example = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert example
    provider = create_provider(tmp_path, example[1])
    await provider.close()
    assert (await done(provider)).message.tool_calls[0].name == "shell"
    report: Any = Message(role="tool", parts=(ToolResult(call_id="call_1_1", output="hello from the shell"),))
    with pytest.raises(RateLimitError):
        await play(provider, HI, report)
    assert (await done(provider, HI, report)).message.text == "The shell said hello."
