"""Hooks around the calls of a scripted model: what they read, and what their verdicts do."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from goose_like.core.events import Status
from tests.fakes import call
from tests.loopback import Loopback, Response
from tests.workspace.workspace_harness import needs_sandbox

from .harness import NO, NOBODY, ONCE, hook, open_place, read_inputs, shell, show_input

SETTINGS = ".claude/settings.json"
CODEX = ".codex/hooks.json"
UNUSUAL_S = 1_000_000 + os.getpid()
"""The seconds of a `sleep` that no other test runs at the same time."""


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def settings(**events: Any) -> str:
    return json.dumps({"hooks": events})


def print_json(**specific: Any) -> str:
    """Return a command that prints the output of a hook. It holds no single quote."""
    return f"echo '{json.dumps({'hookSpecificOutput': specific})}'"


@pytest.mark.parametrize(("answer", "ran"), [(ONCE, True), (NO, False), (NOBODY, False)])
async def test_a_failing_hook_leaves_the_call_to_the_person(work: Path, answer: Any, ran: bool) -> None:
    async with open_place({"PreToolUse": hook("exit 1", "Bash")}, answer=answer, approval="yolo") as place:
        await place.run(shell("touch ran"))
        assert (work / "ran").exists() is ran
        (question,) = place.recorder.questions
        assert "the hook `exit 1` of the profile ended with exit code 1" in question.text + question.detail


async def test_a_hook_that_permits_permits_nothing(work: Path) -> None:
    allow = print_json(permissionDecision="allow", decision={"behavior": "allow"})
    events = {"PreToolUse": hook(allow), "PermissionRequest": hook(allow)}
    async with open_place(events, answer=NO, approval="ask") as place:
        (output,) = await place.run(shell("touch ran"))
        assert "the person said no" in output
        assert not (work / "ran").exists()
    rules = {"deny": ["tool:shell"]}
    async with open_place(events, answer=ONCE, permissions=rules) as place:
        (output,) = await place.run(shell("touch ran"))
        assert not (work / "ran").exists(), output


async def test_changed_arguments_are_judged_again(work: Path) -> None:
    rewrite = print_json(updatedInput={"command": "touch b"})
    guard = 'grep -q "touch b" && { echo not b >&2; exit 2; }; exit 0'
    async with open_place(files={SETTINGS: settings(PreToolUse=hook(rewrite))}) as place:
        (output,) = await place.run(shell("touch a"))
        assert 'other arguments: {"command":"touch b"' in output
        assert os.listdir(work) == ["b"]
    async with open_place(files={SETTINGS: settings(PreToolUse=[*hook(guard), *hook(rewrite)])}) as place:
        (output,) = await place.run(shell("touch c"))
        assert "not b" in output
        assert os.listdir(work) == ["b"]
    rules = {"deny": ["touch b"]}
    async with open_place(files={SETTINGS: settings(PreToolUse=hook(rewrite))}, permissions=rules) as place:
        (output,) = await place.run(shell("touch d"))
        assert "a rule forbids it" in output


async def test_changed_arguments_that_have_no_form_here_are_asked_about(work: Path) -> None:
    rewrite = print_json(updatedInput={"shell": "zsh"})
    async with open_place(files={SETTINGS: settings(PreToolUse=hook(rewrite))}) as place:
        await place.run(shell("touch a"))
        assert len(place.recorder.questions) == 1
        assert not os.listdir(work)


PATCHES = [{"before": "a", "after": "b"}, {"before": "c", "after": "d", "replace_all": True}]
PATCH = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n@@\n-c\n+d\n*** End Patch"


@pytest.mark.parametrize(
    ("file", "tool", "arguments", "wanted"),
    [
        (SETTINGS, "shell", {"command": "ls", "timeout_s": 3}, [("Bash", {"command": "ls", "timeout": 3000})]),
        (SETTINGS, "read_file", {"path": "f", "start_line": 2, "end_line": 4}, [("Read", {"offset": 2, "limit": 3})]),
        (SETTINGS, "write_file", {"path": "g", "content": "x"}, [("Write", {"content": "x"})]),
        (
            SETTINGS,
            "patch_file",
            {"path": "f", "patches": PATCHES},
            [
                ("Edit", {"old_string": "a", "new_string": "b"}),
                ("Edit", {"old_string": "c", "new_string": "d", "replace_all": True}),
            ],
        ),
        (SETTINGS, "process", {"action": "list"}, [("BashOutput", {})]),
        (CODEX, "shell", {"command": "ls"}, [("Bash", {"command": "ls"})]),
        (CODEX, "patch_file", {"path": "f", "patches": PATCHES}, [("apply_patch", {"command": PATCH})]),
        (CODEX, "read_file", {"path": "f"}, [("read_file", {"path": "f"})]),
    ],
)
async def test_hooks_of_other_agents_read_their_names(
    work: Path, tmp_path: Path, file: str, tool: str, arguments: Any, wanted: Any
) -> None:
    (work / "f").write_text("a\nc\n")
    seen = tmp_path / "seen"
    events = {event: hook(show_input(seen)) for event in ("PreToolUse", "PostToolUse")}
    async with open_place(files={file: settings(**events)}) as place:
        await place.run(call(tool, json.dumps(arguments)))
    inputs = read_inputs(seen)
    before = [entry for entry in inputs if entry["hook_event_name"] == "PreToolUse"]
    assert sorted(entry["tool_name"] for entry in before) == sorted(name for name, _ in wanted)
    for name, part in wanted:
        found = [
            entry for entry in before if entry["tool_name"] == name and part.items() <= entry["tool_input"].items()
        ]
        assert found, inputs
        if "path" in arguments and file == SETTINGS:
            assert found[0]["tool_input"]["file_path"] == str(work / arguments["path"])
        assert found[0]["tool_use_id"] == "c1"
        assert found[0]["cwd"] == str(work)
    assert len(inputs) == 2 * len(before)


async def test_hooks_of_a_profile_read_our_names(work: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    async with open_place({"PreToolUse": hook(show_input(seen), "Bash|Write")}) as place:
        await place.run(shell("true"), call("read_file", '{"path": "f"}', "c2"))
        (entry,) = read_inputs(seen)
        assert (entry["tool_name"], entry["tool_input"]["command"]) == ("shell", "true")
        assert entry["transcript_path"] == str(place.exchange.session.file)


async def test_the_transcript_of_other_agents(work: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    command = f'cp "$(jq -r .transcript_path)" {copy}'
    async with open_place(files={SETTINGS: settings(Stop=hook(command))}) as place:
        await place.run(shell("echo hi"), words="greet")
        assert copy.exists()
        lines = [json.loads(line) for line in copy.read_text().splitlines()]
        roles = [(line["type"], line["message"]["content"][0]["type"]) for line in lines]
        assert roles == [("user", "text"), ("assistant", "tool_use"), ("user", "tool_result"), ("assistant", "text")]
        assert lines[1]["message"]["content"][0]["name"] == "Bash"
        assert lines[1]["parentUuid"] == lines[0]["uuid"]
        assert '"role":"assistant"' in copy.read_text(), "scripts search for this text"
        await place.run(shell("echo ho"), words="again")
        assert len(copy.read_text().splitlines()) == 8


async def test_no_transcript_is_written_for_hooks_of_a_profile(work: Path) -> None:
    async with open_place({"Stop": hook("true")}) as place:
        await place.run(shell("true"))
        assert not (place.exchange.workspace.tmp / "transcript.jsonl").exists()


async def test_the_environment_of_a_hook(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    seen = tmp_path / "seen"
    async with open_place({"PreToolUse": hook(f"env > {seen}")}) as place:
        await place.run(shell("true"))
    text = seen.read_text()
    assert f"CLAUDE_PROJECT_DIR={work}\n" in text
    assert "sk-secret" not in text


async def test_an_asynchronous_hook_delays_nothing_and_ends_with_the_session(work: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    command = f"touch {mark}; exec sleep {UNUSUAL_S}"
    async with open_place({"PreToolUse": hook(command, **{"async": True})}) as place:
        (output,) = await place.run(shell("echo ran"))
        assert output.startswith("ran")
        while not mark.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert not await find_processes(f"sleep {UNUSUAL_S}")


async def find_processes(text: str) -> str:
    process = await asyncio.create_subprocess_exec("pgrep", "-fx", text, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return output.decode()


async def test_the_time_limit_ends_all_processes_of_a_hook(work: Path) -> None:
    command = f"setsid sleep {UNUSUAL_S}.1 & sleep {UNUSUAL_S}.2"
    async with open_place({"PostToolUse": hook(command, timeout=0.5)}) as place:
        await place.run(shell("true"))
        assert "did not end within 0.5 s" in place.logged[-1]
        assert not await find_processes(rf"sleep {UNUSUAL_S}\.[12]")


async def test_the_person_reads_what_the_session_waits_for(work: Path) -> None:
    events = {"PreToolUse": [*hook("sleep 1", statusMessage="the slow check"), *hook("true", "Write")]}
    async with open_place(events) as place:
        await place.run(shell("true"))
        assert "the slow check" in [event.text for event in place.recorder.events if isinstance(event, Status)]
    async with open_place({"PreToolUse": hook("sleep 1")}) as place:
        await place.run(shell("true"))
        texts = [event.text for event in place.recorder.events if isinstance(event, Status)]
        assert "PreToolUse: waiting for 1 hook: sleep 1" in texts


async def test_a_hook_that_floods_its_outputs(work: Path) -> None:
    flood = "head -c 3000000 /dev/zero | tr '\\0' x"
    async with open_place({"PostToolUse": [*hook(flood), *hook(f"{flood} >&2; exit 2")]}) as place:
        (output,) = await place.run(shell("true"))
        assert any("printed more than 1,000,000 bytes" in line for line in place.logged)
        assert "xxx" in output
        assert len(output) < 10_000


@pytest.mark.parametrize(
    ("reply", "decision"),
    [
        (Response(200, {}, [b'{"decision": "block", "reason": "by http"}']), "by http"),
        (Response(200), ""),
        (Response(500), "answered with status 500"),
        (Response(is_reset=True), "did not answer"),
    ],
)
async def test_a_hook_over_http(work: Path, monkeypatch: pytest.MonkeyPatch, reply: Response, decision: str) -> None:
    monkeypatch.setenv("TEAM", "blue")
    monkeypatch.setenv("OTHER", "red")
    async with Loopback([reply]) as server:
        address = f"http://127.0.0.1:{server.port}/hook"
        headers = {"x-team": "$TEAM ${OTHER}"}
        entry = {"type": "http", "url": address, "headers": headers, "allowedEnvVars": ["TEAM"]}
        async with open_place({"PreToolUse": [{"hooks": [entry]}]}) as place:
            (output,) = await place.run(shell("echo ran"))
            asked = server.requests[0]
            assert asked.json["tool_name"] == "shell"
            assert b"x-team: blue\r\n" in asked.head
            if decision:
                texts = [output, *(question.text + question.detail for question in place.recorder.questions)]
                assert any(decision in text for text in texts)
            else:
                assert output.startswith("ran")


@pytest.mark.parametrize(("answer", "reached"), [(NO, 0), (ONCE, 1)])
async def test_the_address_of_a_project_needs_permission(work: Path, answer: Any, reached: int) -> None:
    async with Loopback([Response(200)]) as server:
        entry = {"type": "http", "url": f"http://127.0.0.1:{server.port}/", "headers": {"k": "$PATH"}}
        text = settings(PostToolUse=[{"hooks": [{**entry, "allowedEnvVars": ["PATH"]}]}])
        async with open_place(files={SETTINGS: text}, answer=answer, sandbox="workspace") as place:
            await place.run(call("update_plan", '{"tasks": []}'))
        assert len(server.requests) == reached
        assert all(b"k: \r\n" in asked.head for asked in server.requests)


@needs_sandbox
async def test_hooks_of_a_project_run_in_the_sandbox_and_own_ones_do_not(work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    text = settings(PostToolUse=hook(f"touch {outside}/project; touch here"))
    own = {"PostToolUse": [*hook(f"touch {outside}/own"), *hook(f"touch {outside}/asked", sandbox=True)]}
    async with open_place(own, files={SETTINGS: text}, sandbox="workspace") as place:
        await place.run(shell("true"))
    assert os.listdir(outside) == ["own"]
    assert (work / "here").exists()


@needs_sandbox
async def test_an_own_hook_that_runs_a_file_of_the_workspace_is_confined(work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    script = f"touch {outside}/pwned\n"
    write = call("write_file", json.dumps({"path": "check.sh", "content": script}))
    for command in ("bash check.sh", "bash $CLAUDE_PROJECT_DIR/check.sh", f"bash {work}/check.sh"):
        async with open_place({"Stop": hook(command)}, sandbox="workspace") as place:
            await place.run(write)
        assert (work / "check.sh").exists()
        assert os.listdir(outside) == []


async def test_a_call_without_a_matching_hook_starts_no_process(work: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    events = {event: hook(show_input(seen), "Write") for event in ("PreToolUse", "PostToolUse", "PermissionRequest")}
    async with open_place(events) as place:
        await place.run(shell("true"))
    assert not seen.exists()


async def test_a_blocked_message_and_a_turn_that_must_go_on(work: Path) -> None:
    block = 'grep -q secret && { echo no secrets >&2; exit 2; }; echo "the branch is frozen"'
    stop = '[ -e ready ] || { touch ready; echo "write the changelog" >&2; exit 2; }'
    async with open_place({"UserPromptSubmit": hook(block), "Stop": hook(stop, sandbox=True)}) as place:
        await place.run(shell("true"), words="go")
        texts = [message.text for message in place.exchange.history.messages if message.role != "tool"]
        assert any("the branch is frozen" in text for text in texts)
        assert any("write the changelog" in text for text in texts)
        assert texts[-1] == "Done again."
        with pytest.raises(Exception, match="no secrets"):
            await place.exchange.reply("a secret")
