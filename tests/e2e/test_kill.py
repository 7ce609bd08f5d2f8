"""SIGKILL at any moment: what was shown and lasts is in the file, and the resumed session's request is valid.

`--kills N` says at how many moments (CI: 5; the full count: 200).
"""

import json
import signal
import time

import pytest

from tests.loopback import called, said, sse, threaded


def _answers():
    """Six steps of two calls each, then the end."""
    steps = [
        sse(
            called(
                (f"a{n}", "shell", f'{{"command": "echo a{n}; sleep 0.1"}}'),
                (f"b{n}", "shell", '{"command": "echo b"}'),
            )
        )
        for n in range(6)
    ]
    return [*steps, sse(said("done"))]


def test_a_killed_run_goes_on(place, kills):
    for moment in range(kills):
        with threaded(_answers()) as server:
            env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
            words = ["run", "--model", "openai:m", "--output-format", "stream-json", "--session", f"s{moment}", "go"]
            process = place.start(*words, env=env)
            shown = []
            # Kill after a growing number of events, and a little later than the event was seen.
            for line in process.stdout:
                shown.append(json.loads(line))
                if len(shown) > moment * 60 // kills:
                    break
            time.sleep(0.003 * (moment % 7))
            process.send_signal(signal.SIGKILL)
            shown += [json.loads(line) for line in process.stdout if line.endswith("\n")]
            process.wait()
        recorded = [{k: v for k, v in event.items() if k != "at"} for event in place.events()]
        durable = {event["type"] for event in recorded}
        assert [event for event in shown if event["type"] in durable and event not in recorded] == []
        if not any(event["type"] == "turn_started" for event in recorded):
            continue
        with threaded([sse(said("went on"))]) as server:
            env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
            words = ["run", "--model", "openai:m", "--session", f"s{moment}", "--resume", "go on"]
            done = place.run(*words, env=env)
        assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
        _check_valid(server.requests[-1].json["messages"])


def _check_valid(messages):
    """Every call is answered once, right after its message and in order; the last message is the person's."""
    assert messages[-1] == {"role": "user", "content": "go on"}
    for at, message in enumerate(messages):
        wanted = [call["id"] for call in message.get("tool_calls", [])]
        answers = [entry.get("tool_call_id") for entry in messages[at + 1 : at + 1 + len(wanted)]]
        assert answers == wanted
    calls = sum(len(message.get("tool_calls", [])) for message in messages)
    assert calls == sum(message["role"] == "tool" for message in messages)


@pytest.fixture
def kills(request):
    return request.config.getoption("--kills")
