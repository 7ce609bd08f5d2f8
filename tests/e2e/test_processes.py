"""Background processes of the real command: reachable while it runs, gone afterwards."""

import time

import pytest

from tests.e2e.command import shell
from tests.processes import wait_for_count

SERVER = "exec python3 -m http.server --bind 127.0.0.1 18642"


def use(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


def test_a_server_is_started_asked_in_the_same_sandbox_and_cancelled(place):
    (place.work / "hello.txt").write_text("hello there\n")
    model = place.script(
        {"calls": [use("process", action="start", command=SERVER)]},
        {"calls": [shell("curl -s http://127.0.0.1:18642/hello.txt")], "expect": r"\[p1: running for"},
        {"calls": [use("process", action="view", id="p1")], "expect": "hello there"},
        {"calls": [use("process", action="list")], "expect": "GET /hello.txt"},
        {"calls": [use("process", action="stop", id="p1")], "expect": r"p1: running for \d+ s, 0 new bytes"},
        {"calls": [shell("curl -s http://127.0.0.1:18642/hello.txt")], "expect": r"\[p1: cancelled\]"},
        {"text": "it works", "expect": "exit code 7"},
    )
    done = place.run("run", "--model", model, "serve")
    assert (done.returncode, done.stdout) == (0, "it works\n"), done.stderr
    assert "│ 127.0.0.1 - - [" in done.stderr
    assert "✓ p1: running for" in done.stderr


def test_a_command_past_its_limit_goes_on_and_ends_with_the_run(place):
    waiting = f"sleep 4321{time.time_ns() % 100_000}"
    model = place.script(
        {"calls": [shell(f"echo begun; {waiting}; true", timeout_s=0.5)]},
        {"calls": [use("process", action="list")], "expect": "still running as process p1"},
        {"text": "left it", "expect": "p1: running"},
    )
    done = place.run("run", "--model", model, "wait")
    assert (done.returncode, done.stdout) == (0, "left it\n"), done.stderr
    wait_for_count(0, waiting)


@pytest.mark.parametrize("mode", ["workspace", "full"])
def test_kill_9_leaves_nothing_running(place, mode):
    number = time.time_ns() % 100_000
    started, went_on, grandchild = f"sleep 1234{number}", f"sleep 2345{number}", f"sleep 3456{number}"
    model = place.script(
        {
            "calls": [
                use("process", action="start", command=f"trap '' TERM HUP; (setsid {grandchild} &) ; {started} & wait")
            ]
        },
        {"calls": [shell(f"{went_on}; true", timeout_s=0.2)]},
        {"calls": [shell("sleep 300")]},
    )
    process = place.start("run", "--model", model, "--sandbox", mode, "go")
    try:
        for command in (started, grandchild, went_on):
            wait_for_count(1, command)
    finally:
        process.kill()
        process.communicate()
    for command in (started, grandchild, went_on):
        wait_for_count(0, command)


def test_a_page_is_not_fetched_where_nobody_allows_it(place):
    model = place.script(
        {"calls": [use("fetch_web_content", url="http://127.0.0.1:1/")]},
        {"text": "no page", "expect": "nobody is there"},
    )
    done = place.run("run", "--model", model, "fetch")
    assert (done.returncode, done.stdout) == (6, "no page\n"), done.stderr
