"""Tests of a copilot of components with the real commands: output, files and exit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE
from types import MappingProxyType
from typing import Any

import pytest

from goose_like.config.yaml_reader import format_document, parse_document
from tests import ROOT
from tests.e2e.command import Place
from tests.loopback import raw, threaded

WORKSHOP = ROOT / "tests/fixtures/components" / "workshop"
GUIDEBOOK = WORKSHOP.with_name("guidebook")
COPILOT = "org.example.workshop:copilot:1.0.0"
CONPACK = "goose_like_toolkits.components.conpack"
COMMANDS = {
    "component": ("-m", "goose_like", "component", "run", COPILOT),
    "conpack": (
        *("-m", CONPACK, "run", "--group-id=org.example.workshop", "--artifact-id=copilot", "--version=1.0.0"),
    ),
}


class Unhomed(Place):
    """A user whose files follow the XDG rules."""

    def env(self, **more: str) -> dict[str, str]:
        return {name: value for name, value in super().env(**more).items() if name != "GOOSE_LIKE_HOME"}


class Copilot:
    """The tutorial's copilot in a user's local repository."""

    def __init__(self, place: Place, env: Mapping[str, str] = MappingProxyType({})) -> None:
        self.place = place
        self.env = {"HOME": str(place.home), **env}
        folders = [str(WORKSHOP / name) for name in ("talker", "notes", "greeter", "prompter", "copilot")]
        folders += [str(GUIDEBOOK / "ledger"), str(GUIDEBOOK / "clerk")]
        done = place.run("component", "install", *folders, env=self.env)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == len(folders)  # and nothing is to be done about the copilot's package

    def says(self, *steps: Any) -> None:
        """Set the model's answers."""
        self.asks(self.place.script(*steps))

    def asks(self, model: str) -> None:
        """Set the model of the default profile."""
        profiles = self.place.home / "config" / "profiles.yaml"
        profiles.parent.mkdir(exist_ok=True)
        profiles.write_text(format_document({"default": {"processor": model, "toolkits": []}}))

    def add_ledger(self) -> None:
        """Add a resource that records when it opens and closes, and a plugin that writes into it."""
        folder = self.place.home / ".concopilot/repository/org/example/workshop/copilot/1.0.0"
        file = folder / "copilot-1.0.0-config.yaml"
        data, _ = parse_document(file.read_text())
        data["config"]["resource_manager"]["config"]["resources"].append(
            {"group_id": "org.example.guidebook", "artifact_id": "ledger", "version": "1.0.0"}
        )
        data["config"]["plugin_manager"]["config"]["plugins"] += [
            {"group_id": "org.example.guidebook", "artifact_id": "clerk", "version": "1.0.0"},
        ]
        file.write_text(format_document(data))

    def start(self, by: str, *words: str) -> "subprocess.Popen[str]":
        how: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE, "text": True}
        command = [sys.executable, *COMMANDS[by], *words]
        return subprocess.Popen(command, cwd=self.place.work, env=self.place.env(**self.env), **how)

    def run(self, by: str, typed: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command with some input, and return its result."""
        process = self.start(by, *words)
        out, err = process.communicate(typed, timeout=300)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    @property
    def is_gone(self) -> bool:
        """Tell whether no process of this user is left."""
        every = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=True).stdout
        return str(self.place.home) not in every

    @property
    def ledger(self) -> list[str]:
        """Return the lines that the resource wrote when it opened and closed."""
        return (self.place.work / "ledger.log").read_text().splitlines()


@pytest.fixture
def copilot(place: Place) -> Copilot:
    made = Copilot(place)
    made.add_ledger()
    return made


def plugin(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tool": name, "arguments": arguments}


@pytest.mark.parametrize("by", COMMANDS)
def test_it_does_what_the_user_types(copilot: Copilot, by: str):
    copilot.says(
        {
            "text": "I'll keep it.",
            "calls": [plugin("notes_write", name="shopping", text="milk"), plugin("greeter_greet", who="Ada")],
        },
        {"text": "Your note is kept, Ada.", "expect": "Tell the user in one sentence"},
        {"text": "There is nothing else.", "expect": "anything else"},
    )
    done = copilot.run(by, "Keep milk on the shopping note\nanything else?\n")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1), done.stderr
    assert done.stderr.startswith("auto · workspace · profile default · scripted:")
    assert done.stdout == "What shall we write down?\nYour note is kept, Ada.\nThere is nothing else.\n"
    assert (copilot.place.work / "shopping.txt").read_text() == "milk"
    assert (copilot.ledger[0], copilot.ledger[-1], len(copilot.ledger)) == ("opened", "closed", 4)
    placed = copilot.place.work / ".runtime" / "org" / "example" / "workshop"
    assert (placed / "greeter" / "1.0.0" / "0" / "config.yaml").is_file()


@pytest.mark.parametrize("by", COMMANDS)
@pytest.mark.parametrize("typed", ["", "\n"])
def test_it_ends_where_nothing_is_typed(copilot: Copilot, by: str, typed: str):
    copilot.says("never asked")
    done = copilot.run(by, typed)
    assert (done.returncode, done.stdout) == (0, "What shall we write down?\n"), done.stderr
    assert (copilot.ledger[0], copilot.ledger[-1], len(copilot.ledger)) == ("opened", "closed", 4)


def test_a_wrong_call_goes_back_to_the_model_and_not_to_the_plugin(copilot: Copilot):
    copilot.says(
        {"calls": [plugin("notes_write", name="a")]},
        {"calls": [plugin("notes_write", name="a", text="b")], "expect": "'text' is a required property"},
        "Done.",
    )
    done = copilot.run("component", "go\n")
    assert (done.returncode, done.stdout) == (0, "What shall we write down?\nDone.\n"), done.stderr
    assert (copilot.place.work / "a.txt").read_text() == "b"


def test_a_model_that_fails_ends_it_with_its_words_and_closed_resources(copilot: Copilot):
    copilot.says({"error": {"status": 401, "text": "bad key"}})
    done = copilot.run("component", "go\n")
    assert done.returncode == 1
    assert "bad key" in done.stderr
    assert "Traceback" not in done.stderr
    assert (copilot.ledger[0], copilot.ledger[-1], len(copilot.ledger)) == ("opened", "closed", 4)


@pytest.mark.parametrize("by", COMMANDS)
@pytest.mark.parametrize("stage", ["the user", "the model"])
def test_ctrl_c_ends_it_with_closed_resources(copilot: Copilot, by: str, stage: str):
    with threaded([raw(hang_s=300)]) as server:
        copilot.env |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1", "OPENAI_API_KEY": "k"}
        copilot.asks("openai:any-model")
        process = copilot.start(by)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "What shall we write down?\n"
        if stage == "the model":
            process.stdin.write("go\n")
            process.stdin.flush()
            while not server.requests:
                time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.wait(60)  # `communicate` would end the input, too: the signal could meet the copilot at its own end
        out, err = process.communicate()
    assert (process.returncode, out) == (130, ""), err
    assert "Traceback" not in err
    assert (copilot.ledger[0], copilot.ledger[-1], len(copilot.ledger)) == ("opened", "closed", 4)
    assert copilot.is_gone


@pytest.mark.parametrize("is_deaf", [False, True])
def test_ctrl_c_while_a_plugin_hangs(copilot: Copilot, is_deaf: bool):
    """A copilot that ignores the signal is killed with its children."""
    copilot.says({"calls": [plugin("clerk_write", line="now", then="ignore" if is_deaf else "hang")]})
    process = copilot.start("component")
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    ledger = copilot.place.work / "ledger.log"
    while not ledger.exists() or "clerk: now" not in copilot.ledger:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert copilot.ledger[3:] == ([] if is_deaf else ["clerk went", "closed"])
    assert copilot.is_gone


@pytest.mark.local
@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
def test_the_embedded_model_writes_the_note(place: Place, request: pytest.FixtureRequest):
    """Use the weights in the user's own cache."""
    if not request.config.getoption("--local-answers"):
        pytest.skip("it takes half a minute: --local-answers")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    own = {"XDG_CACHE_HOME": cache, "XDG_CONFIG_HOME": str(place.home / "c"), "XDG_STATE_HOME": str(place.home / "s")}
    copilot = Copilot(Unhomed(place.home, place.work), own)
    done = copilot.run("component", "Keep the note shopping: milk and eggs\n\n", "--profile", "local")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("What shall we write down?\n")
    assert (place.work / "shopping.txt").is_file(), done.stdout
