"""The toolkit of docs/hook-points.md in a run and in a session."""

from pathlib import Path

import pytest

from tests.e2e.command import Place, shell
from tests.e2e.pages import find_blocks


@pytest.fixture
def policy(place: Place, tmp_path: Path) -> dict[str, str]:
    """Install the toolkit of the page with a profile `policy`, and return the variables for it."""
    (source,) = find_blocks("docs/hook-points.md", "python")
    site = tmp_path / "site"
    info = site / "policy-0.1.dist-info"
    info.mkdir(parents=True)
    (site / "policy_toolkit.py").write_text(source)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: policy\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[goose_like.toolkit]\npolicy = policy_toolkit:PolicyToolkit\n")
    (place.home / "config/profiles").mkdir(parents=True)
    text = "sandbox: full\ntoolkits: [policy, developer]\n"
    (place.home / "config/profiles/policy.yaml").write_text(text)
    return {"PYTHONPATH": str(site)}


def test_a_blocked_run_ends_with_one_clear_line(place, policy):
    model = place.script("never asked")
    done = place.run("run", "--profile", "policy", "--model", model, "write to ACME", env=policy)
    assert (done.returncode, done.stdout) == (6, "")
    assert "the message was not sent: the toolkit 'policy' blocks it: it names a customer" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_rules_of_the_page_in_a_run(place, policy):
    wanted = [
        shell("psql x"),
        shell("rm a"),
        shell("echo pip one"),
        {"tool": "read_file", "arguments": {"path": "missing"}},
    ]
    model = place.script(
        {"calls": wanted, "expect": "branch is frozen"},
        {"text": "done", "expect": "uv pip one"},
    )
    done = place.run("run", "--profile", "policy", "--model", model, "go", env=policy)
    outputs = [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]
    assert "a hook forbids it: ask the person for the data instead" in outputs[0]
    assert "nobody is there to allow it" in outputs[1]
    assert outputs[2].startswith("uv pip one")
    assert outputs[3].endswith("[policy] See docs/troubleshooting.md.")
    assert done.returncode == 6, done.stderr  # a question was left


def test_a_blocked_message_returns_to_the_input(place, policy, session):
    terminal = session("hello", words=("--profile", "policy"), **policy)
    terminal.type("greet ACME\r")
    terminal.see("the toolkit 'policy' blocks it: it names a customer")
    terminal.see("goose> greet ACME")
    terminal.type("\x7f\x7f\x7f\x7fAnn\r")
    terminal.see("hello")
    terminal.idle()
    assert place.list_messages() == ["greet Ann"]


def test_a_blocked_message_within_a_turn_returns_to_the_input(place, policy, session):
    steps = [{"calls": [shell("echo working; until [ -e go ]; do sleep 0.05; done")]}, "first"]
    terminal = session(*steps, words=("--profile", "policy"), **policy)
    terminal.type("hi\r")
    terminal.see("│ working")
    terminal.type("and greet ACME\r")
    terminal.see("⏎ and greet ACME")
    (place.work / "go").touch()
    terminal.see("first")
    terminal.see("goose> and greet ACME")
    assert place.list_messages() == ["hi"]
