"""Runs that people can check: a budget that survives SIGKILL."""

import json
import os
import signal
import time

from tests.e2e.command import Place, shell


def test_a_killed_run_has_spent_what_it_spent(place: Place):
    usage = {"input": 9_000, "output": 1_000}
    model = place.script({"calls": [shell("true")], "usage": usage}, {"calls": [shell("sleep 60")], "usage": usage})
    limits = ("--max-tokens", "25000", "--output-format", "json")
    process = place.start("run", "--session", "kept", "--model", model, *limits, "go")
    while not any("sleep 60" in file.read_text() for file in place.home.glob("state/sessions/*/events.jsonl")):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    model = place.script("never", "never", {"text": "all done", "usage": usage})
    done = place.run("run", "-r", "kept", "--model", model, *limits, "go on")
    summary = json.loads(done.stdout)
    assert (done.returncode, summary["usage"]["input_tokens"]) == (5, 18_000), done.stderr
    assert summary["detail"].startswith("the limit of 25,000 tokens; 20,000 are used, and the next request has about")
    again = json.loads(place.run("run", "-r", "kept", "--model", model, *limits, "go on").stdout)
    assert (again["exit_code"], again["result"]) == (0, "all done"), "a new turn has its own budget"


def test_a_cost_limit_needs_a_known_price(place: Place):
    model = "openai:of-unknown-price"
    key = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    done = place.run("run", "--model", model, "--max-cost", "1", "go", env=key)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "the price of openai:of-unknown-price is not known" in done.stderr
    assert "--max-tokens" in done.stderr
