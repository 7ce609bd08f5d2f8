"""Whole tasks over the Responses API, against a server that refuses what that API refuses."""

import json
import signal
from itertools import pairwise

import pytest

from goose_like.core.message import Usage
from goose_like.providers.prices import compute_cost_usd
from tests.e2e.serving import wait_until
from tests.loopback import threaded
from tests.responses_server import RefusedError, ResponsesServer

STEPS = 30
KEY = {"OPENAI_API_KEY": "sk-0123456789abcdef"}


def write_profile(place, server, **changes):
    (place.home / "config").mkdir(exist_ok=True)
    processor = {"model": "openai:gpt-6.2-sol", "base_url": server.base_url, "wire": "responses", "effort": "high"}
    profile = {"extends": "default", "sandbox": "full", "approval": "yolo", "processor": processor, **changes}
    (place.home / "config" / "profiles.yaml").write_text(json.dumps({"mine": profile}))


def start(place, *words):
    return place.start("run", "--profile", "mine", *words, env=KEY)


def run(place, server, *words, **changes):
    write_profile(place, server, **changes)
    return place.run("-p", "--profile", "mine", *words, env=KEY)


def step(number):
    return {"call": ("shell", {"command": f"echo step {number}"})}


def list_inputs(server):
    return [asked.json["input"] for asked in server.requests]


def test_a_long_task_a_resume_and_a_fork_keep_all_reasoning(place):
    steps = [*map(step, range(STEPS)), {"say": "done"}, step(100), {"say": "resumed"}, {"say": "forked"}]
    with threaded(ResponsesServer(steps)) as server:
        assert run(place, server, "--session", "long", "count").stdout == "done\n"
        done = run(place, server, "--resume", "long", "go on")
        assert (done.stdout, server.problems) == ("resumed\n", []), done.stderr
        assert run(place, server, "--fork", "--resume", "long", "another way").stdout == "forked\n"
        assert server.problems == []
        inputs = list_inputs(server)
    assert len(inputs) == STEPS + 1 + 2 + 1
    for earlier, later in pairwise(inputs[:-1]):
        assert later[: len(earlier)] == earlier
    reasoning = [item for item in inputs[-1] if item.get("type") == "reasoning"]
    assert [item["encrypted_content"] for item in reasoning] == [f"SECRET-{n}" for n in range(1, STEPS + 4)]


def get_body_without_end(asked):
    """Return the bytes of a body before the end of `input`."""
    return asked.body.partition(b'],"tool_choice":')[0].removesuffix(b"]}")


def test_a_mode_switch_and_edited_instructions_change_no_earlier_byte(place):
    notes = place.work / "AGENTS.md"
    notes.write_text("Use tabs.\n\nNever push.\n")
    steps = [step(1), {"say": "made"}, {"call": ("write_file", {"path": "a", "content": "x"})}, {"say": "planned"}]
    with threaded(ResponsesServer([*steps, step(2), {"say": "done"}])) as server:
        assert run(place, server, "--session", "s", "make it").stdout == "made\n"
        notes.write_text("Use spaces.\n\nNever push.\n")
        done = run(place, server, "--resume", "s", "--approval", "plan", "plan it", sandbox="workspace")
        assert done.stdout == "planned\n", done.stderr
        done = run(place, server, "--resume", "s", "--approval", "auto", "carry it out", sandbox="workspace")
        assert (done.stdout, server.problems) == ("done\n", []), done.stderr
        requests = server.requests
    for earlier, later in pairwise(requests):
        assert get_body_without_end(later).startswith(get_body_without_end(earlier))
    told = [item["content"] for item in requests[-1].json["input"] if item.get("role") == "developer"]
    assert "Use tabs." in told[0]
    switch, back = [text for text in told[1:] if text.startswith("Your instructions have changed.")]
    assert "- Make a plan, do not carry it out" in back
    assert "Use spaces." in switch
    assert "- Hints from" in switch  # the paragraph with the tabs
    assert "Never push." not in switch
    assert not (place.work / "a").exists()
    results = [item["output"] for item in requests[3].json["input"] if item.get("type") == "function_call_output"]
    assert "not allowed" in results[-1] or "read-only" in results[-1]


def test_an_interrupt_a_compaction_and_delegates(place):
    wait = {"call": ("shell", {"command": "touch waits; sleep 300"})}
    helper = {"call": ("delegate", {"task": "look around"})}
    long = {"call": ("shell", {"command": "seq 3000"})}
    steps = [wait, step(1), helper, {"say": "all is here"}, helper, {"say": "as before"}, {"say": "looked"}]
    with threaded(ResponsesServer([*steps, long, long, {"say": "Goal: look."}, step(2), {"say": "done"}])) as server:
        write_profile(place, server)
        process = start(place, "--session", "s", "wait")
        wait_until(lambda: (place.work / "waits").exists())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
        assert run(place, server, "--resume", "s", "go on").stdout == "looked\n"
        limit = {"moderator": {"name": "summarize", "config": {"limit_tokens": 9_000}}}
        done = run(place, server, "--resume", "s", "look longer", **limit)
        assert (done.stdout, server.problems) == ("done\n", []), done.stderr
    kinds = [event["type"] for event in place.events()]
    assert kinds.count("compacted") == 1
    assert kinds.count("prompt_recorded") == 2


def test_the_settings_of_a_request(place):
    with threaded(ResponsesServer([{"say": "hi"}])) as server:
        done = run(place, server, "hello")
        body = server.requests[0].json
    assert (done.stdout, done.returncode) == ("hi\n", 0)
    assert body["reasoning"] == {"summary": "auto", "effort": "high"}
    assert body["prompt_cache_key"]
    assert "instructions" not in body


def test_an_answer_that_breaks_off_is_asked_for_again(place):
    steps = [step(1), {"say": "do", "cut": True}, {"say": "done"}]
    with threaded(ResponsesServer(steps)) as server:
        done = run(place, server, "count")
        assert server.problems == []
    assert (done.stdout, done.returncode) == ("done\n", 0)


def test_what_the_person_and_other_vendors_see(place):
    with threaded(ResponsesServer([{"say": "I look.", **step(1)}, {"say": "done"}])) as server:
        assert run(place, server, "count").returncode == 0
    answers = [event["message"] for event in place.events() if event["type"] == "message_completed"]
    assert [part["type"] for part in answers[0]["parts"]] == ["thinking", "text", "tool_call"]
    assert answers[0]["parts"][0]["text"] == "thought 1"
    assert [item["type"] for item in answers[0]["verbatim"]["items"]] == ["reasoning", "message", "function_call"]


# --- the server itself

DEVELOPER = {"role": "developer", "content": "be good"}
USER = {"role": "user", "content": "hi"}


@pytest.fixture
def body():
    """A second request that the server accepts: the first one and its answer with a result."""
    server = ResponsesServer([])
    server._steps = [{"say": "I look.", "call": ("shell", {})}]
    tools = [{"type": "function", "name": "shell", "parameters": {}, "strict": False}]
    first = {"model": "m", "stream": True, "store": False, "tools": tools, "input": [DEVELOPER, USER]}
    server._play(first)
    items = [given.item for given in server._given.values()]
    result = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    return server, {**first, "input": [DEVELOPER, USER, *items, result]}


CHANGES = {
    "another prefix": lambda items: [{**DEVELOPER, "content": "x"}, *items[1:]],
    "no reasoning": lambda items: [item for item in items if item.get("type") != "reasoning"],
    "no follower": lambda items: [item for item in items if item.get("type") != "message"],
    "another order": lambda items: [*items[:2], items[3], items[2], *items[4:]],
    "other encrypted content": lambda items: [
        {**item, "encrypted_content": "x"} if "encrypted_content" in item else item for item in items
    ],
    "no result": lambda items: items[:-1],
    "a result twice": lambda items: [*items, items[-1]],
    "no developer": lambda items: items[1:],
}


def test_the_server_accepts_what_is_right(body):
    server, sent = body
    server.check(sent)


@pytest.mark.parametrize("change", CHANGES)
def test_the_server_refuses(body, change):
    server, sent = body
    with pytest.raises(RefusedError):
        server.check({**sent, "input": CHANGES[change](sent["input"])})


@pytest.mark.parametrize("change", [{"tools": []}, {"store": True}, {"stream": "x"}])
def test_the_server_refuses_another_body(body, change):
    server, sent = body
    with pytest.raises(RefusedError):
        server.check(sent | change)


def test_a_model_with_a_tool_for_patches_uses_it(place):
    """The server knows only calls and results in its own form; a wrong diff comes back as `failed`.

    Undo brings back what the patches changed and deleted.
    """
    (place.work / "a.py").write_text("x = 1\n")
    (place.work / "old.py").write_text("z = 1\n")
    wrong = {"type": "update_file", "path": "a.py", "diff": "@@\n-x = 7\n+x = 2\n"}
    steps = [
        {"patch": wrong},
        {"patch": {**wrong, "diff": "@@\n-x = 1\n+x = 2\n"}},
        {"patch": {"type": "create_file", "path": "b.py", "diff": "+y = 1"}},
        {"patch": {"type": "delete_file", "path": "old.py"}},
        {"say": "done"},
    ]
    with threaded(ResponsesServer(steps)) as server:
        done = run(place, server, "--session", "s", "make x two")
        assert (done.stdout, server.problems) == ("done\n", []), done.stderr
        body = server.requests[-1].json
    assert {"type": "apply_patch"} in body["tools"]
    results = [item for item in body["input"] if item.get("type") == "apply_patch_call_output"]
    assert [result["status"] for result in results] == ["failed", "completed", "completed", "completed"]
    assert (place.work / "a.py").read_text() == "x = 2\n"
    assert (place.work / "b.py").read_text() == "y = 1\n"
    assert not (place.work / "old.py").exists()
    place.run("session", "resume", "s", input="/undo files\n", env=KEY)
    assert {file.name: file.read_text() for file in place.work.iterdir()} == {"a.py": "x = 1\n", "old.py": "z = 1\n"}


def test_a_long_conversation_is_shortened_by_the_server(place):
    """Its item stands for the messages, and the fast model writes the summary for other servers."""
    long_step = {"call": ("shell", {"command": "seq 3000"})}
    steps = [long_step, long_step, {"say": "NOTES"}, {"say": "done"}]
    moderator = {"name": "summarize", "config": {"limit_tokens": 6_000, "newest": 0.1}}
    with threaded(ResponsesServer(steps)) as server:
        model = {"model": "openai:gpt-6.2-sol", "base_url": server.base_url, "wire": "responses"}
        done = run(place, server, "count", moderator=moderator, processor=model, accelerator=model)
        assert (done.stdout, server.problems) == ("done\n", []), done.stderr
        *_, compacted, _, last = server.requests
    assert compacted.path.endswith("/responses/compact")
    assert len(compacted.json["input"]) > 5
    kinds = [item.get("type", item.get("role")) for item in last.json["input"]]
    assert kinds[:4] == ["developer", "user", "compaction", "user"]
    assert "function_call" not in kinds
    assert "NOTES" not in json.dumps(last.json["input"])


def test_tokens_of_a_tier_have_its_price(place):
    model = {"model": "openai:gpt-6-sol", "wire": "responses", "service_tier": "fast"}
    with threaded(ResponsesServer([{"say": "done"}])) as server:
        done = run(place, server, "--output-format", "json", "hi", processor={**model, "base_url": server.base_url})
        assert server.requests[0].json["service_tier"] == "fast"
    result = json.loads(done.stdout)
    used = Usage(**result["usage"])
    assert result["cost_usd"] == pytest.approx(compute_cost_usd({"openai:gpt-6-sol (fast)": used}))
    assert result["cost_usd"] > compute_cost_usd({"openai:gpt-6-sol": used})
