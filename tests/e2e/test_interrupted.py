"""Ctrl-C at each stage, before either vendor's server: whatever it leaves is a history that both of them take."""

import json
import time

import pytest

from tests.loopback import answer, called, chunk, events, named, raw, said, sse, started, thought, threaded, wish, words
from tests.providers.vendor_rules import valid_for_anthropic, valid_for_openai

MODELS = {"openai": "openai:any-model", "anthropic": "anthropic:claude-opus-5-5"}
VALID = {"openai": valid_for_openai, "anthropic": valid_for_anthropic}
CALLS = {
    "tool": [{"command": "echo it runs; sleep 300"}],
    "pair": [{"command": "echo it runs; sleep 300"}, {"command": "echo never"}],
    "question": [{"command": "echo x", "access": "network"}],
}
SIGNS = {"waiting": "thinking", "streaming": "one two", "tool": "it runs", "pair": "it runs", "question": "[N] no:"}


def first(vendor: str, stage: str):
    """Answers of the server until the person stops it."""
    if stage == "waiting":
        return raw(hang_s=300)
    calls = [(f"c{at}", "shell", json.dumps(arguments)) for at, arguments in enumerate(CALLS.get(stage, ()))]
    if vendor == "openai":
        begun = [chunk({"reasoning_content": "let me look"}), chunk({"content": "one two "})]
        return sse([begun[0], *called(*calls)]) if calls else raw(events(begun, is_done=False), hang_s=300)
    if calls:
        wishes = [wish(at, *call) for at, call in enumerate(calls, 1)]
        return answer(thought(0, "let me look", "SIG"), *wishes, stop="tool_use")
    return raw(named([started(), *thought(0, "let me look", "SIG"), *words(1, "one two ")[:-1]]), hang_s=300)


def second(vendor: str, text: str):
    return sse(said(text)) if vendor == "openai" else answer(thought(0, "hm", "SIG2"), words(1, text))


def leave_out_own_keys(body):
    """Leave out the thinking that returns to servers of one's own: OpenAI has no key for it."""
    messages = [
        {key: value for key, value in message.items() if key != "reasoning_content"} for message in body["messages"]
    ]
    return {**body, "messages": messages}


def env(servers) -> dict[str, str]:
    ports = {vendor: server.port for vendor, server in servers.items()}
    return {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{ports['openai']}/v1",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{ports['anthropic']}",
        "OPENAI_API_KEY": "k",
        "ANTHROPIC_API_KEY": "k",
    }


@pytest.mark.parametrize("vendor", MODELS)
@pytest.mark.parametrize("stage", SIGNS)
def test_both_vendors_accept_a_history_after_ctrl_c(place, open_screen, vendor, stage):
    (other,) = set(MODELS) - {vendor}
    own = [first(vendor, stage), second(vendor, "second answer"), second(vendor, "third answer")]
    with threaded(own) as here, threaded([second(other, "other answer")]) as there:
        servers = {vendor: here, other: there}
        terminal = open_screen("session", "start", "talk", "--model", MODELS[vendor], **env(servers))
        terminal.see("goose>")
        terminal.type("go\r")
        terminal.see(SIGNS[stage])
        while not here.requests:  # "thinking" is shown before it is there
            time.sleep(0.01)
        terminal.type("\x03")
        terminal.see("■ cancelled")
        terminal.idle()
        terminal.type("next\r")  # in the same process, where thinking goes back
        terminal.see("second answer")
        assert terminal.leave() == 0
        assert place.list_turn_ends() == ["cancelled", "stop"]
        for name in (other, vendor):
            resumed = ("run", "--resume", "--session", "talk", "--model", MODELS[name], "go on")
            done = place.run(*resumed, env=env(servers))
            assert done.returncode == 0, done.stderr
        assert (len(here.requests), len(there.requests)) == (3, 1)
        for name, server in servers.items():
            for asked in server.requests:
                assert VALID[name](leave_out_own_keys(asked.json))
    for server in servers.values():
        is_told = "Your previous answer was cut off before its end" in json.dumps(server.requests[-1].json)
        assert is_told == (stage == "streaming")
    last = json.dumps(servers["anthropic"].requests[-1].json["messages"])
    # Thinking stays after a resume, also with an answer of another vendor in between; other vendors' is left out.
    assert ('"signature": "SIG2"' in last) == (vendor == "anthropic")
    if vendor == "anthropic" and stage in CALLS:
        assert '"signature": "SIG"' in last
