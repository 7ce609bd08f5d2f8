"""Tests of the accelerator's work beside the processor in the real command."""

import pytest

from tests.e2e.command import shell
from tests.loopback import raw, threaded

PROFILE = """
mine:
  processor: {strong}
  accelerator: {fast}
  approval: yolo
  toolkits:
    - name: developer
      config: {config}
"""


def use_profile(place, config, strong="local", fast="local"):
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text(PROFILE.format(strong=strong, fast=fast, config=config))


def test_it_sees_that_a_command_is_stuck_and_the_strong_one_is_told(place):
    strong = place.script(
        {"calls": [shell("echo Continue?; sleep 4000")]},
        {
            "text": "it hangs",
            "expect": r"Continue\?\n\[printed .* waits for input.* \(asks to continue\): still running as .* p1",
        },
    )
    fast = place.script({"text": "INPUT: asks to continue", "expect": r"echo Continue\?.*output:\nContinue\?"})
    use_profile(place, "{asks_when_silent: 0.2}", strong, fast)
    done = place.run("run", "--profile", "mine", "install it")
    assert (done.returncode, done.stdout) == (0, "it hangs\n"), done.stderr
    (usage,) = (event for event in place.events() if event["type"] == "usage_recorded")
    assert (usage["model"], usage["purpose"]) == (fast, "stuck command")


def test_it_finds_the_lines_of_a_page(place):
    with threaded([raw(b"The first primes\nare 2 and 3.\n", kind="text/plain")]) as server:
        url = f"http://127.0.0.1:{server.port}/"
        calls = [{"tool": "fetch_web_content", "arguments": {"url": url, "looking_for": "primes"}}]
        strong = place.script(
            {"calls": calls}, {"text": "2 and 3", "expect": r"is there, see lines 2\].*\n2: are 2 and 3\.$"}
        )
        fast = place.script({"text": "yes: 2", "expect": r"Look for: primes.*2\| are 2 and 3"})
        use_profile(place, "{private_addresses: true}", strong, fast)
        done = place.run("run", "--profile", "mine", "what are the first primes?")
    assert (done.returncode, done.stdout) == (0, "2 and 3\n"), done.stderr


@pytest.mark.parametrize(
    ("config", "report"),
    [
        ("{asks_when_silent: often}", "line 8: `asks_when_silent` is false, or the seconds"),
        ("{checks: {.py: [mypy]}}", "line 8: a check of .py is a command"),
        ("{check: false}", "line 8: toolkit 'developer' has no 'check'; did you mean 'checks'?"),
    ],
)
def test_invalid_configs_are_reported_with_their_line(place, config, report):
    use_profile(place, config, place.script("x"), place.script("y"))
    done = place.run("run", "--profile", "mine", "x")
    assert done.returncode == 2
    assert report in done.stderr
