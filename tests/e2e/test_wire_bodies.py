"""A whole run over each vendor's wire, as a process: every request's head and body, and the exit codes.

The run: an image in the message; thinking, words and two calls in one step, of which one shows an image and one fails;
a step with one call more; the answer.
"""

import json
import re
from itertools import pairwise

import pytest

from tests.chat_types import check_body
from tests.loopback import answer, called, chunk, refusal, said, sse, thought, threaded, usage, wish, words

PNG = b"\x89PNG\r\n\x1a\n\x00shot", "iVBORw0KGgoAc2hvdA=="
OTHER = b"\x89PNG\r\n\x1a\n\x00other", "iVBORw0KGgoAb3RoZXI="
KEY = "sk-secret-1234567890"
MARK = {"cache_control": {"type": "ephemeral"}}
MARK_BYTES = b',"cache_control":{"type":"ephemeral"}'
NEWS = r"folder: (?s:.*)\ndate: [A-Z][a-z]+day, 20\d\d-\d\d-\d\d"
MODELS = {"openai": "openai:any-model", "anthropic": "anthropic:claude-opus-5-5"}


def go(place, vendor, server, *task):
    path = {"openai": "/v1", "anthropic": ""}[vendor]
    env = {
        f"{vendor.upper()}_BASE_URL": f"http://127.0.0.1:{server.port}{path}",
        f"{vendor.upper()}_API_KEY": KEY,
    }
    return place.run("run", "--model", MODELS[vendor], "--sandbox", "full", *task, env=env)


def delta(index, arguments, **more):
    return chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments}, **more}]})


def begun(index, id_):
    function = {"name": "read_file", "arguments": ""}
    return chunk({"tool_calls": [{"index": index, "id": id_, "type": "function", "function": function}]})


SCRIPTS = {
    "openai": [
        sse(
            [
                chunk({"role": "assistant", "content": "", "reasoning_content": "let me "}),
                chunk({"reasoning_content": "look"}),
                chunk({"content": "I look "}),
                chunk({"content": "twice."}),
                begun(0, "c1"),
                begun(1, "c2"),
                delta(0, '{"path": "oth'),
                delta(1, '{"path": "none'),
                delta(0, 'er.png"}'),
                delta(1, '.txt"}'),
                chunk(finish="tool_calls"),
                usage(100, 20, 50),
            ]
        ),
        sse(called(("c3", "shell", '{"command": "echo $((40 + 2))"}'))),
        sse(said("It is red.")),
    ],
    "anthropic": [
        answer(
            thought(0, "let me look", "SIG=="),
            words(1, "I look ", "twice."),
            wish(2, "c1", "read_file", "", '{"path": "oth', 'er.png"}'),
            wish(3, "c2", "read_file", '{"path": "none.txt"}'),
            stop="tool_use",
        ),
        answer(thought(0, "", "SIG2"), wish(1, "c3", "shell", '{"command": "echo $((40 + 2))"}'), stop="tool_use"),
        answer(words(0, "It is red.")),
    ],
}


@pytest.fixture(params=SCRIPTS)
def run(request, place):
    """The vendor, what the command ended with, and what the server was asked."""
    for name, image in (("shot.png", PNG), ("other.png", OTHER)):
        (place.work / name).write_bytes(image[0])
    with threaded(SCRIPTS[request.param]) as server:
        done = go(place, request.param, server, "what is in shot.png?")
    assert (done.returncode, done.stdout) == (0, "It is red.\n"), done.stderr
    assert [event["type"] for event in place.events()].count("tool_finished") == 3
    return request.param, done, server.requests


def test_heads(run, place):
    vendor, done, requests = run
    assert len(requests) == 3
    for asked in requests:
        line, *fields = asked.head.decode().strip().split("\r\n")
        head = dict(field.lower().split(": ", 1) for field in fields)
        assert line == {"openai": "POST /v1/chat/completions", "anthropic": "POST /v1/messages"}[vendor] + " HTTP/1.1"
        assert [name for name, value in head.items() if KEY in value] == ["authorization"]
        assert head["authorization"] == f"bearer {KEY}"
        assert head["content-type"] == "application/json"
        assert head["content-length"] == str(len(asked.body))
        assert ("anthropic-version" in head) == (vendor == "anthropic")
        assert KEY.encode() not in asked.body
    assert KEY not in done.stderr + json.dumps(place.events())


def test_each_body_begins_the_next(run):
    _, _, requests = run
    bodies = [asked.body.replace(MARK_BYTES, b"").removesuffix(b"]}") for asked in requests]
    assert bodies[1].startswith(bodies[0] + b",")
    assert bodies[2].startswith(bodies[1] + b",")


def call_of(id_, name, arguments):
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("run", ["openai"], indirect=True)
def test_openais_last_body(run):
    """Roles, order, ids; images after the results, in the person's name; thinking under the key it came in."""
    for asked in run[2]:
        check_body(asked.json)
    body = run[2][-1].json
    assert [*body] == ["model", "stream", "stream_options", "tools", "messages"]
    assert (body["model"], body["stream"], body["stream_options"]) == ("any-model", True, {"include_usage": True})
    assert all(tool["type"] == "function" and [*tool] == ["type", "function"] for tool in body["tools"])
    assert all([*tool["function"]] == ["name", "description", "parameters"] for tool in body["tools"])
    system, *messages = body["messages"]
    assert (system["role"], [*system]) == ("system", ["role", "content"])

    def image(source, data):
        shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        return [{"type": "text", "text": f"[image {source}]"}, shown]

    task = {"type": "text", "text": "what is in shot.png?"}
    news, gap, *asked = messages[0].pop("content")
    assert re.fullmatch(NEWS, news["text"])
    assert gap == {"type": "text", "text": "\n\n"}
    assert asked == [task, *image("shot.png", PNG[1])]
    shown, missing = messages[2].pop("content"), messages[3].pop("content")
    assert messages == [
        {"role": "user"},
        {
            "role": "assistant",
            "content": "I look twice.",
            "reasoning_content": "let me look",
            "tool_calls": [
                call_of("c1", "read_file", '{"path": "other.png"}'),
                call_of("c2", "read_file", '{"path": "none.txt"}'),
            ],
        },
        {"role": "tool", "tool_call_id": "c1"},
        {"role": "tool", "tool_call_id": "c2"},
        {"role": "user", "content": image("other.png", OTHER[1])},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [call_of("c3", "shell", '{"command": "echo $((40 + 2))"}')],
        },
        {"role": "tool", "tool_call_id": "c3", "content": "42"},
    ]
    assert shown.startswith("[other.png: an image")
    assert missing.startswith("error: there is no file 'none.txt'")


@pytest.mark.parametrize("run", ["anthropic"], indirect=True)
def test_anthropics_last_body(run):
    """Roles, order, ids; thinking as it came; results first; a mark where this request and the former one end."""
    body = run[2][-1].json
    assert [*body] == ["model", "stream", "max_tokens", "tools", "system", "thinking", "messages"]
    assert (body["model"], body["stream"], body["max_tokens"]) == ("claude-opus-5-5", True, 64_000)
    assert all([*tool] == ["name", "description", "input_schema"] for tool in body["tools"])
    (system,) = body["system"]
    assert (system.pop("text")[:3], system) == ("You", {"type": "text", **MARK})

    def image(data):
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    messages = body["messages"]
    (news,) = messages.pop(0)["content"]
    assert re.fullmatch(NEWS, news["text"])
    results = messages[2]["content"]
    shown, missing = results[0]["content"].pop(0), results[1].pop("content")
    assert messages == [
        {"role": "user", "content": [{"type": "text", "text": "what is in shot.png?"}, image(PNG[1])]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "let me look", "signature": "SIG=="},
                {"type": "text", "text": "I look twice."},
                {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "other.png"}},
                {"type": "tool_use", "id": "c2", "name": "read_file", "input": {"path": "none.txt"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": [image(OTHER[1])]},
                {"type": "tool_result", "tool_use_id": "c2", "is_error": True, **MARK},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "SIG2"},
                {"type": "tool_use", "id": "c3", "name": "shell", "input": {"command": "echo $((40 + 2))"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c3", "content": "42", **MARK}]},
    ]
    assert shown["text"].startswith("[other.png: an image")
    assert missing.startswith("there is no file 'none.txt'")


@pytest.mark.parametrize("vendor", MODELS)
def test_another_process_goes_on_with_the_very_bytes(place, vendor):
    """Whatever order sets have in it; thinking goes back too, as prompt and tools are the same."""
    (place.work / "other.png").write_bytes(OTHER[0])
    path = {"openai": "/v1", "anthropic": ""}[vendor]
    with threaded([*SCRIPTS[vendor], SCRIPTS[vendor][-1]]) as server:
        for seed, words in (("1", "what is in other.png?"), ("2", "and now?")):
            env = {
                f"{vendor.upper()}_BASE_URL": f"http://127.0.0.1:{server.port}{path}",
                f"{vendor.upper()}_API_KEY": KEY,
                "PYTHONHASHSEED": seed,
            }
            options = [
                "--session",
                "mine",
                *["--resume"] * (seed == "2"),
                "--model",
                MODELS[vendor],
                "--sandbox",
                "full",
            ]
            done = place.run("run", *options, words, env=env)
            assert done.returncode == 0, done.stderr
    bodies = [asked.body.replace(MARK_BYTES, b"").removesuffix(b"]}") for asked in server.requests]
    assert len(bodies) == 4
    assert all(later.startswith(earlier + b",") for earlier, later in pairwise(bodies))
    assert (b"SIG2" in bodies[3]) == (vendor == "anthropic")


@pytest.mark.parametrize("vendor", MODELS)
@pytest.mark.parametrize(
    ("status", "code", "requests"),
    [
        (400, 1, 1),
        (401, 76, 1),
        (402, 75, 1),
        (403, 76, 1),
        (404, 77, 1),
        (413, 1, 1),
        (422, 1, 1),
        (429, 75, 6),
        (503, 77, 6),
    ],
)
def test_exit_codes(place, vendor, status, code, requests):
    with threaded([refusal(status, f"no, {KEY}", headers={"retry-after": "0"})]) as server:
        done = go(place, vendor, server, "go")
        assert len(server.requests) == requests
    assert done.returncode == code
    assert f"{vendor} at 127.0.0.1:{server.port}: " in done.stderr
    assert KEY not in done.stderr + json.dumps(place.events())
