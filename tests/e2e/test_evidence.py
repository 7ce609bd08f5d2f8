"""Runs that people can check: a budget that survives SIGKILL, and receipts."""

import json
import os
import signal
import subprocess
import time

import jsonschema

from tests import ROOT
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


def test_a_receipt_tells_what_was_done_and_checked(place: Place):
    subprocess.run(["git", "init", "-q", str(place.work)], check=True)
    (place.work / "run_tests.sh").write_text("echo 3 passed\n")
    written = {"tool": "write_file", "arguments": {"path": "a.py", "content": "x = 1\n"}}
    model = place.script(
        {"calls": [written], "usage": {"input": 900, "output": 30}},
        {"calls": [shell("sh run_tests.sh && touch by_command")]},
        {"calls": [shell("sh run_tests.sh")]},
        "All tests pass.",
    )
    done = place.run("run", "--model", model, "--sandbox", "full", "--receipt", "r.json", "write a.py")
    assert done.returncode == 0, done.stderr
    receipt = json.loads((place.work / "r.json").read_text())
    schema = json.loads((ROOT / "docs" / "receipt.schema.json").read_text())
    jsonschema.validate(receipt, schema)
    assert [file["path"] for file in receipt["files"]] == ["a.py", "by_command"]
    assert "+x = 1" in receipt["files"][0]["diff"]
    first, second = receipt["checks"]
    assert (first["outcome"], second["outcome"], second["is_current"]) == ("passed", "passed", True)
    assert second["tree"] == receipt["tree"] == receipt["commands"][1]["tree_after"] != ""
    assert (receipt["is_tree_equal"], receipt["exit_code"], receipt["task"]) == (False, 0, "write a.py")
    assert receipt["models"][0]["input_tokens"] == 900
    assert place.run("session", "receipt-schema").stdout == (ROOT / "docs" / "receipt.schema.json").read_text()


def test_a_receipt_says_that_no_change_was_needed(place: Place):
    model = place.script({"calls": [shell("ls")]}, "Nothing is to do.")
    done = place.run("run", "--model", model, "--sandbox", "full", "--receipt", "../r.md", "look")
    assert done.returncode == 0, done.stderr
    text = (place.work.parent / "r.md").read_text()
    assert "- files: none changed; the tree is equal\n" in text
    assert "| `ls` |" in text
    refused = place.run("run", "--model", model, "--receipt", "r.txt", "look")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_the_check_of_a_project_runs_after_the_person_confirmed_it(place: Place):
    (place.work / "AGENTS.md").write_text("verify: touch ran; exit 3\n")
    model = place.script({"calls": [shell("echo x >> new")]}, "Done.", "Done.", "Done.", "Done.")
    words = ("run", "--model", model, "--sandbox", "full", "change it")
    done = place.run(*words)
    assert done.returncode == 0, done.stderr
    unasked = "the check of AGENTS.md does not run, as you did not decide: touch ran; exit 3"
    assert f"{unasked}; to run it: --trust, or goose-like trust add\n" in done.stderr
    assert not (place.work / "ran").exists()
    assert place.run("trust", "add").returncode == 0
    done = place.run(*words)
    assert (done.returncode, (place.work / "ran").exists()) == (8, True), done.stderr
