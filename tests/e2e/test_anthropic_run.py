"""A whole run over Anthropic's wire, as a process: what is its own."""

import json

from tests.loopback import answer, thought, threaded, wish, words

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
        answer(words(0, "It is red.")),
    ]
    with threaded(script) as server:
        done = go(place, server, "what is in shot.png?")
        bodies = [asked.body for asked in server.requests]
    assert (done.returncode, done.stdout) == (0, "It is red.\n"), done.stderr
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


def test_the_first_provider_with_a_key_is_taken(place):
    with threaded([answer(words(0, "hi"))]) as server:
        env = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.port}", "ANTHROPIC_API_KEY": KEY}
        done = place.run("run", "--sandbox", "full", "go", env=env)
        assert server.requests[0].json["model"] == "claude-opus-5-5"
    assert done.returncode == 0, done.stderr
    assert place.events()[0]["models"]["accelerator"] == "anthropic:claude-haiku-5-5"
