"""The table of outcomes: each event with hooks that fail, block, answer and print nonsense."""

from pathlib import Path
from typing import Any

import pytest
from goose_like_toolkits.hooks.settings import EVENTS

from goose_like.toolkit import CallVerdict, FollowUp, PermissionVerdict, PromptVerdict, ResultChange

from .harness import fire, hook, open_toolkit

_KNOWN = '{"hookSpecificOutput": {"additionalContext": "known"}, "systemMessage": "told"}'
FAILURES = {
    "killed": ("kill -9 $$", "was killed by SIGKILL"),
    "hangs": ("sleep 60", "did not end within 0.3 s"),
    "exits 1": ("echo why >&2; exit 1", "ended with exit code 1: why"),
    "exits 127": ("no-such-program-here", "is missing (exit code 127)"),
    "broken JSON": ("""echo '{"decision": '""", "printed broken JSON"),
    "a wrong value": ("""echo '{"decision": "perhaps"}'""", "printed JSON with a wrong value"),
}
BLOCKS = {
    "exits 2": "echo why >&2; exit 2",
    "blocks by JSON": """echo '{"decision": "block", "reason": "why"}'""",
}
WITH_TEXT = ("SessionStart", "UserPromptSubmit", "PreCompact", "SubagentStart")
WITH_CONTEXT = (*WITH_TEXT, "PreToolUse", "PostToolUse", "PostToolUseFailure")
BLOCKED: dict[str, Any] = {
    "UserPromptSubmit": PromptVerdict("block", "why"),
    "PreToolUse": CallVerdict("deny", "why"),
    "PermissionRequest": PermissionVerdict("deny", "why"),
    "PostToolUse": ResultChange(None, "why"),
    "PostToolUseFailure": ResultChange(None, "why"),
    "Stop": FollowUp("why", is_repeated=True),
}
EMPTY = (None, "", PromptVerdict(), CallVerdict(), ResultChange())


def read_context(answer: Any) -> str:
    """Return the context of an answer, whatever its kind is."""
    if answer is None or isinstance(answer, str):
        return answer or ""
    return str(answer.context)


@pytest.mark.parametrize("event", EVENTS)
async def test_a_hook_that_fails(tmp_path: Path, event: str) -> None:
    for name, (command, problem) in FAILURES.items():
        limit = {"timeout": 0.3} if name == "hangs" else {}
        async with open_toolkit(tmp_path, **{event: hook(command, **limit)}) as (toolkit, logged):
            answers = [await fire(toolkit, event) for _ in range(2)]
            if event == "PreToolUse":
                assert [answer.decision for answer in answers] == ["ask", "ask"], name
                assert problem in answers[0].reason, name
                assert logged == [], "the question says it"
            else:
                assert all(answer in EMPTY for answer in answers), name
                assert len(logged) == 1, (name, logged)
                assert problem in logged[0]


@pytest.mark.parametrize("event", EVENTS)
async def test_a_hook_that_blocks(tmp_path: Path, event: str) -> None:
    for name, command in BLOCKS.items():
        async with open_toolkit(tmp_path, **{event: hook(command)}) as (toolkit, logged):
            answer = await fire(toolkit, event)
            if event in BLOCKED:
                assert answer == BLOCKED[event], name
                assert logged == []
            else:
                assert answer in EMPTY, name
                assert logged == [f"hook `{' '.join(command.split())}`: why"]


@pytest.mark.parametrize("event", EVENTS)
async def test_a_hook_that_prints(tmp_path: Path, event: str) -> None:
    async with open_toolkit(tmp_path, **{event: hook("echo words")}) as (toolkit, logged):
        assert read_context(await fire(toolkit, event)) == ("words" if event in WITH_TEXT else "")
        assert logged == []
    async with open_toolkit(tmp_path, **{event: hook(f"echo '{_KNOWN}'")}) as (toolkit, logged):
        answer = await fire(toolkit, event)
        assert read_context(answer) == ("known" if event in WITH_CONTEXT else "")
        assert [line.rpartition(": ")[2] for line in logged] == ["told"]


@pytest.mark.parametrize("event", BLOCKED)
async def test_a_failure_blocks_where_the_hook_says_so(tmp_path: Path, event: str) -> None:
    async with open_toolkit(tmp_path, **{event: hook("exit 3", onFailure="block")}) as (toolkit, _):
        answer = await fire(toolkit, event)
        wanted = BLOCKED[event]
        text = "the hook `exit 3` of the profile ended with exit code 3"
        if isinstance(wanted, ResultChange):
            assert answer == ResultChange(None, text)
        elif isinstance(wanted, FollowUp):
            assert answer == FollowUp(text, is_repeated=True)
        else:
            assert (answer.decision, answer.reason) == (wanted.decision, text)


async def test_decisions_that_permit_are_no_objection(tmp_path: Path) -> None:
    allow = """echo '{"hookSpecificOutput": {"permissionDecision": "allow", "decision": {"behavior": "allow"}}}'"""
    events = {"PreToolUse": hook(allow), "PermissionRequest": hook(allow)}
    async with open_toolkit(tmp_path, **events) as (toolkit, _):
        assert await fire(toolkit, "PreToolUse") == CallVerdict()
        assert await fire(toolkit, "PermissionRequest") is None


@pytest.mark.parametrize(
    ("decision", "wanted"), [("ask", "ask"), ("defer", "ask"), ("deny", "deny"), ("allow", "pass")]
)
async def test_each_decision_about_a_call(tmp_path: Path, decision: str, wanted: str) -> None:
    inner = f'{{"permissionDecision": "{decision}", "permissionDecisionReason": "why"}}'
    command = f"""echo '{{"hookSpecificOutput": {inner}}}'"""
    async with open_toolkit(tmp_path, PreToolUse=hook(command)) as (toolkit, _):
        answer = await fire(toolkit, "PreToolUse")
        assert (answer.decision, answer.reason) == (wanted, "" if wanted == "pass" else "why")


async def test_the_strictest_of_several_hooks_wins(tmp_path: Path) -> None:
    ask = """echo '{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "really?"}}'"""
    groups = [*hook(ask), *hook("echo no >&2; exit 2"), *hook("true")]
    async with open_toolkit(tmp_path, PreToolUse=groups) as (toolkit, _):
        assert await fire(toolkit, "PreToolUse") == CallVerdict("deny", "no")
    async with open_toolkit(tmp_path, PreToolUse=[groups[0], groups[2]]) as (toolkit, _):
        assert await fire(toolkit, "PreToolUse") == CallVerdict("ask", "really?")


async def test_a_hook_ends_the_turn(tmp_path: Path) -> None:
    stop = """echo '{"continue": false, "stopReason": "enough"}'"""
    async with open_toolkit(tmp_path, PostToolUse=hook(stop), Stop=hook("exit 2")) as (toolkit, logged):
        await fire(toolkit, "PostToolUse")
        answer = await fire(toolkit, "PreToolUse")
        assert answer.decision == "deny"
        assert "enough" in answer.reason
        assert await fire(toolkit, "Stop") is None
        assert len(logged) == 1
        await fire(toolkit, "UserPromptSubmit")
        assert await fire(toolkit, "PreToolUse") is None, "the next message starts anew"
    async with open_toolkit(tmp_path, UserPromptSubmit=hook(stop)) as (toolkit, _):
        assert await fire(toolkit, "UserPromptSubmit") == PromptVerdict("block", "enough")


async def test_a_hook_cannot_keep_a_turn_open_for_ever(tmp_path: Path) -> None:
    async with open_toolkit(tmp_path, Stop=hook("exit 2")) as (toolkit, logged):
        answers = [await fire(toolkit, "Stop") for _ in range(9)]
        assert [answer is None for answer in answers] == [False] * 8 + [True]
        assert "although a hook objects" in logged[0]


async def test_a_hook_replaces_an_output(tmp_path: Path) -> None:
    command = """echo '{"hookSpecificOutput": {"updatedToolOutput": "short", "additionalContext": "see"}}'"""
    async with open_toolkit(tmp_path, PostToolUse=hook(command)) as (toolkit, _):
        assert await fire(toolkit, "PostToolUse") == ResultChange("short", "see")
