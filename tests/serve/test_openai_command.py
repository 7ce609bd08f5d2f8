"""Tests of `goose-like serve` as OpenAI's clients see it: the page's example, several profiles, and a stop."""

import re
import signal
import subprocess
import sys
import threading

import pytest

pytest.importorskip("uvicorn")

from tests.e2e.command import Place
from tests.e2e.pages import find_blocks
from tests.e2e.serving import serving, wait_until


@pytest.fixture
def place(tmp_path):
    for name in ("home", "work"):
        (tmp_path / name).mkdir(exist_ok=True)
    return Place(tmp_path / "home", tmp_path / "work")


def test_the_examples_of_the_page(place):
    examples = find_blocks("docs/serve.md", "python")
    model = place.script("It is noon.", '{"name": "Rome", "country": "Italy"}')
    with serving(place, "--model", model, "--token", "TOKEN") as server:
        for example, printed in zip(examples, ["It is noon.\n", "name='Rome' country='Italy'\n"], strict=True):
            assert "http://127.0.0.1:7777/v1" in example
            source = example.replace(":7777", f":{server.port}")
            done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
            assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_several_profiles_are_several_models(place):
    """Each has its own toolkits; what touches the machine is offered only where it was named."""
    (place.home / "config/profiles").mkdir(parents=True)
    (place.home / "config/profiles/desk.yaml").write_text("extends: openbb\ntoolkits: [reasoner]\n")
    (place.home / "config/profiles/careful.yaml").write_text("extends: default\napproval: ask\n")
    calls = {"calls": [{"tool": "shell", "arguments": {"command": "echo a > a; echo b"}}]}
    model = place.script(calls, "two lines", calls, {"text": "no", "expect": "deni|allow"})
    profiles = ("--profile", "default", "--profile", "careful", "--profile", "desk", "--toolkit", "developer")
    with serving(place, *profiles, "--model", model) as server:
        models = server.get("/v1/models").json()["data"]
        assert [each["id"] for each in models] == ["default", "careful", "desk"]
        body = {"model": "default", "messages": [{"role": "user", "content": "count"}]}
        choice = server.post(body, "/v1/chat/completions").json()["choices"][0]
        assert choice["message"]["content"] == "two lines"
        assert choice["message"]["reasoning_content"].startswith("Using shell ")
        choice = server.post({**body, "model": "careful"}, "/v1/chat/completions").json()["choices"][0]
        assert "Not allowed here: echo a > a; echo b\n" in choice["message"]["reasoning_content"]
        server.signal(signal.SIGTERM)
        screen = server.process.stdout.read()
        assert re.search(r"OpenAI's clients +set the base URL http://127.0.0.1:\d+/v1", screen)
        assert re.findall(r"(?m)^  (?:profile|toolkits) +(.*)$", screen) == [
            *("default", "developer, openbb"),
            *("careful", "developer, openbb"),
            *("desk", "reasoner, openbb"),
        ]
    done = place.run("serve", "--profile", "openbb", "--profile", "desk", "--toolkit", "develper", "--model", model)
    assert (done.returncode, "has no such toolkit" in done.stderr) == (2, True), done.stderr


def test_a_stop_ends_an_answer_with_an_error(place):
    model = place.script({"text": "late", "delay_s": 600})
    answers = []
    with serving(place, "--model", model, "--drain", "0.1") as server:
        body = {"model": "openbb", "messages": [{"role": "user", "content": "x"}]}
        asking = threading.Thread(target=lambda: answers.append(server.post(body, "/v1/chat/completions")))
        asking.start()
        wait_until(lambda: server.sum_metric("goose_like_running"))
        server.signal(signal.SIGTERM)
        asking.join()
        assert (answers[0].status_code, "being stopped" in answers[0].json()["error"]["message"]) == (503, True)
