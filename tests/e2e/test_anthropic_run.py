"""A whole run over Anthropic's wire, as a process: what is its own."""

import copy
import json
import signal
import time
from itertools import pairwise

import pytest
from goose_like_toolkits.developer.toolkit import DeveloperToolkit

from goose_like.core.tool import make_tool
from tests.anthropic_server import AnthropicServer
from tests.loopback import answer, refusal, thought, threaded, wish, words
from tests.providers.vendor_rules import RefusedError

PNG = b"\x89PNG\r\n\x1a\n1"
KEY = "sk-ant-secret-1234567890"
MARK = b',"cache_control":{"type":"ephemeral"}'


def go(place, server, *words):
    env = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.port}", "ANTHROPIC_API_KEY": KEY}
    return place.run("run", "--model", "anthropic:claude-opus-5-5", "--sandbox", "full", *words, env=env)


def test_thinking_parallel_calls_with_one_id_and_images(place):
    (place.work / "shot.png").write_bytes(PNG)
    script = [
        answer(
            thought(0, "let me look", "SIG"),
            words(1, "I look ", "twice."),
            wish(2, "t1", "shell", '{"comm', 'and": "echo $((40 + 2))"}'),
            wish(3, "t1", "read_file", '{"path": "shot.png"}'),
            stop="tool_use",
        ),
        answer(wish(0, "t9", "shell", '{"command": "exit 3"}'), stop="tool_use"),
        answer(words(0, "It is red; the command failed.")),
    ]
    with threaded(script) as server:
        done = go(place, server, "what is in shot.png?")
        bodies = [asked.body for asked in server.requests]
    assert (done.returncode, done.stdout) == (0, "It is red; the command failed.\n"), done.stderr
    _, said, thinking, results, _, last = (entry["content"] for entry in json.loads(bodies[2])["messages"])
    assert [part["type"] for part in said] == ["text", "image"]
    assert thinking[0] == {"type": "thinking", "thinking": "let me look", "signature": "SIG"}
    assert [part["tool_use_id"] for part in results] == [part["id"] for part in thinking[2:]]
    assert len({part["tool_use_id"] for part in results}) == 2
    assert results[0]["content"] == "42"
    assert results[1]["content"][1]["source"]["media_type"] == "image/png"
    assert "exit code 3" in last[0]["content"]
    bare = [body.replace(MARK, b"").removesuffix(b"]}") for body in bodies]
    assert bare[1].startswith(bare[0])
    assert bare[2].startswith(bare[1])
    assert KEY not in done.stderr + json.dumps(place.events())


def test_the_cost_shows_what_the_cache_saved(place):
    with threaded([answer(words(0, "hi"), cache_read_input_tokens=60, cache_creation_input_tokens=10)]) as server:
        env = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.port}", "ANTHROPIC_API_KEY": KEY}
        done = place.run("session", "start", "--model", "anthropic:claude-opus-5-5", input="go\n/cost\n", env=env)
    assert "cache: 75% of the input read, 10 tokens written" in done.stdout + done.stderr


def test_files_are_streamed_while_they_are_written(place):
    """Only Anthropic's own servers know the key, so that no other one may get it."""
    with threaded([answer(words(0, "hi"))]) as server:
        assert go(place, server, "hello").returncode == 0
        assert b"eager_input_streaming" not in server.requests[0].body
    functions = (DeveloperToolkit.write_file, DeveloperToolkit.patch_file, DeveloperToolkit.read_file)
    assert [make_tool(function).spec.has_long_arguments for function in functions] == [True, True, False]


def test_the_first_provider_with_a_key_is_taken(place):
    with threaded([answer(words(0, "hi"))]) as server:
        env = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.port}", "ANTHROPIC_API_KEY": KEY}
        done = place.run("run", "--sandbox", "full", "go", env=env)
        assert server.requests[0].json["model"] == "claude-opus-5-5"
    assert done.returncode == 0, done.stderr
    assert place.events()[0]["models"]["accelerator"] == "anthropic:claude-haiku-5-5"


# --- a server that binds thinking to the conversation

STEPS = 30


def step(number):
    return {"call": ("shell", {"command": f"echo step {number}"})}


def list_sent(server):
    """List the messages of each request, without the marks of the cache."""
    bodies = [json.loads(asked.body.replace(MARK, b"")) for asked in server.requests]
    return [body["messages"] for body in bodies]


def test_a_long_task_with_faults_an_interrupt_and_a_resume_keeps_all_thinking(place):
    steps = [*map(step, range(STEPS))]
    steps[7:7] = [{"status": 529}, {"status": 529}]
    steps[15:15] = [{"say": "I will", "cut": True}]
    steps[25:25] = [{"say": "This takes long.", "cut": True, "hang_s": 60}]
    with threaded(AnthropicServer([*steps, {"say": "done"}, step(100), {"say": "resumed"}])) as server:
        env = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.port}", "ANTHROPIC_API_KEY": KEY}
        options = ("--model", "anthropic:claude-opus-5-5", "--sandbox", "full")
        process = place.start("run", *options, "--session", "long", "count", env=env)
        while process.poll() is None and "This takes long" not in str(read_texts(place)):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        process.communicate()
        done = place.run("run", *options, "--resume", "long", "go on", env=env)
        assert (done.stdout, server.problems) == ("done\n", []), done.stderr
        done = place.run("run", *options, "--resume", "long", "and now", env=env)
        assert (done.stdout, server.problems) == ("resumed\n", []), done.stderr
        sent = list_sent(server)
    for earlier, later in pairwise(sent):
        assert later[: len(earlier)] == earlier
    thoughts = [entry for message in sent[-1] for entry in message["content"] if entry["type"] == "thinking"]
    assert len(thoughts) == STEPS + 2


def write_profile(place, server, **changes):
    (place.home / "config").mkdir(exist_ok=True)
    processor = {"model": "anthropic:claude-opus-5-5", "base_url": f"http://127.0.0.1:{server.port}"}
    profile = {"extends": "default", "sandbox": "full", "approval": "yolo", "processor": processor, **changes}
    (place.home / "config" / "profiles.yaml").write_text(json.dumps({"mine": profile}))


def run_profile(place, server, *words, **changes):
    write_profile(place, server, **changes)
    return place.run("-p", "--profile", "mine", *words, env={"ANTHROPIC_API_KEY": KEY})


def test_a_mode_switch_and_edited_instructions_change_no_earlier_byte(place):
    notes = place.work / "AGENTS.md"
    notes.write_text("Use tabs.\n\nNever push.\n")
    steps = [step(1), {"say": "made"}, {"call": ("write_file", {"path": "a", "content": "x"})}, {"say": "planned"}]
    with threaded(AnthropicServer([*steps, step(2), {"say": "done"}])) as server:
        assert run_profile(place, server, "--session", "s", "make it").stdout == "made\n"
        notes.write_text("Use spaces.\n\nNever push.\n")
        done = run_profile(place, server, "--resume", "s", "--approval", "plan", "plan it", sandbox="workspace")
        assert done.stdout == "planned\n", done.stderr
        done = run_profile(place, server, "--resume", "s", "--approval", "auto", "carry it out", sandbox="workspace")
        assert (done.stdout, server.problems) == ("done\n", []), done.stderr
        bodies = [asked.body.replace(MARK, b"").removesuffix(b"]}") for asked in server.requests]
        told = [message for message in server.requests[-1].json["messages"] if message["role"] == "system"]
    for earlier, later in pairwise(bodies):
        assert later.startswith(earlier)
    assert not (place.work / "a").exists()
    switch, back = [message["content"][-1]["text"] for message in told]
    assert "Use spaces." in switch
    assert "Make a plan, do not carry it out" in switch
    assert "- Make a plan, do not carry it out" in back


def test_a_compaction_a_fork_and_delegates_keep_what_the_server_accepts(place):
    helper = {"call": ("delegate", {"task": "look around"})}
    long = {"call": ("shell", {"command": "seq 3000"})}
    steps = [step(1), helper, step(11), {"say": "all is here"}, helper, {"say": "as before"}, {"say": "looked"}]
    later = [step(2), {"say": "forked"}, long, long, {"say": "Goal: look."}, step(3), {"say": "done"}]
    with threaded(AnthropicServer([*steps, *later])) as server:
        assert run_profile(place, server, "--session", "s", "look").stdout == "looked\n"
        done = run_profile(place, server, "--fork", "--resume", "s", "another way")
        assert (done.stdout, server.problems) == ("forked\n", []), done.stderr
        limit = {"moderator": {"name": "summarize", "config": {"limit_tokens": 9_000}}}
        done = run_profile(place, server, "--resume", "s", "look longer", **limit)
        assert (done.stdout, server.problems) == ("done\n", []), done.stderr
    kinds = [json.loads(line)["type"] for line in find_session(place, "-s").read_text().splitlines()]
    assert kinds.count("compacted") == 1
    assert kinds.count("prompt_recorded") == 2


def find_session(place, end):
    (file,) = (place.home / "state" / "sessions").glob(f"*{end}/events.jsonl")
    return file


def test_a_model_without_system_messages_reads_reminders_as_the_users(place):
    refused = refusal(400, "role 'system' is not supported on this model", type="invalid_request_error")
    end = answer(words(0, "done"))
    calls = [answer(wish(0, f"t{at}", "shell", '{"command": "true"}'), stop="tool_use") for at in range(3)]
    with threaded([*calls, refused, end]) as server:
        done = go(place, server, "go on")
        roles = [[message["role"] for message in asked.json["messages"]] for asked in server.requests]
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert roles[3][-1] == "system"
    assert "system" not in roles[4]
    assert "they are sent as the user's" in done.stderr


def read_texts(place):
    """Read the texts that the session file has of an unfinished answer."""
    try:
        return [event.get("text") for event in place.events()]
    except (OSError, ValueError, IndexError):
        return []


@pytest.fixture
def body():
    """A second request that the server accepts: the first one and its answer with a result."""
    server = AnthropicServer([])
    server._steps = [{"say": "I look.", "call": ("shell", {"command": "ls"})}]
    system = [{"type": "text", "text": "be good"}]
    tools = [{"name": "shell", "description": "Runs.", "input_schema": {"type": "object"}}]
    head = {"model": "m", "stream": True, "max_tokens": 9, "thinking": {"type": "adaptive"}}
    said = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    first = {**head, "system": system, "tools": tools, "messages": [said]}
    server.check(first)
    server._play(first)
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    answered = {"role": "assistant", "content": copy.deepcopy(server._answers[0])}
    return server, {**first, "messages": [said, answered, {"role": "user", "content": [result]}]}


def mark(content, ttl):
    content[-1]["cache_control"] = {"type": "ephemeral", "ttl": ttl}


BOUND = "bound to a different conversation"
CHANGES = {
    "another system prompt": (lambda body: body["system"][0].update(text="x"), BOUND),
    "another tool": (lambda body: body["tools"][0].update(description="x"), BOUND),
    "another message": (lambda body: body["messages"][0]["content"][0].update(text="x"), BOUND),
    "another signature": (lambda body: body["messages"][1]["content"][0].update(signature="x"), "cannot be modified"),
    "other thinking": (lambda body: body["messages"][1]["content"][0].update(thinking="x"), "cannot be modified"),
    "no text": (lambda body: body["messages"][1]["content"].pop(1), "is missing"),
    "no caller": (lambda body: body["messages"][1]["content"][2].pop("caller"), "is missing"),
    "no result": (lambda body: body["messages"].pop(), "nothing to answer"),
    "an unknown key": (lambda body: body.update(fanfare=1), "Extra inputs"),
    "a wrong type": (lambda body: body["messages"][2]["content"][0].update(tool_use_id=5), "SDK's type"),
    "marks in a wrong order": (
        lambda body: [mark(body["system"], "5m"), mark(body["messages"][2]["content"], "1h")],
        "must not come after",
    ),
}


def test_the_server_accepts_what_is_right(body):
    server, sent = body
    server.check(sent)
    for message in sent["messages"]:
        message["content"] = [entry for entry in message["content"] if entry["type"] != "thinking"]
    server.check(sent)  # all thinking may be left out


@pytest.mark.parametrize("change", CHANGES)
def test_the_server_refuses(body, change):
    server, sent = body
    alter, problem = CHANGES[change]
    alter(sent)
    with pytest.raises(RefusedError, match=problem):
        server.check(sent)
