"""The examples in the help of every command run as they are written there."""

import re
import shutil
import sys
from importlib.util import find_spec

import pytest

from tests import ROOT
from tests.e2e.command import Place
from tests.e2e.pages import run_line, write_project_profiles
from tests.toolkits.skills.write_skill import write_skill

SESSIONS = ("start", "planned", "resume", "list", "search", "show", "export", "import", "fork", "rename", "clear")
COMPONENT = ("list", "show", "check", "new", "install", "build", "run", "deploy")
COMMANDS = [
    ["--help"],
    *([name, "--help"] for name in ("run", "doctor", "completion", "help", "version")),
    *([name, "--help"] for name in ("session", "profile", "toolkit", "provider", "trust", "plugin", "component")),
    *(["session", name, "--help"] for name in SESSIONS),
    ["session", "receipt-schema", "--help"],
    *(["profile", name, "--help"] for name in ("list", "show", "check", "new", "edit", "use", "schema")),
    *(["provider", name, "--help"] for name in ("list", "check", "login", "logout")),
    *(["toolkit", name, "--help"] for name in ("list", "show", "new")),
    *(["trust", name, "--help"] for name in ("add", "list", "forget")),
    *(["plugin", name, "--help"] for name in ("list", "show", "check", "test", "run", "new")),
    *(["component", name, "--help"] for name in COMPONENT),
    *(["skill", name, "--help"] for name in ("list", "show", "check", "new")),
    *(["recipe", name, "--help"] for name in ("run", "list", "show", "check", "explain", "new")),
    *(["hooks", name, "--help"] for name in ("list", "test", "use", "forget")),
    *(["mcp", name, "--help"] for name in ("list", "show", "test", "remove")),  # `add` starts a published server
]
HOOKS = '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}'
SERVER = ROOT / "tests/toolkits/mcp/scripts/demo_server.py"


@pytest.fixture(scope="module")
def new_place(tmp_path_factory):
    """Return a function that makes a place for tests to copy."""

    def make() -> Place:
        folder = tmp_path_factory.mktemp("made")
        for name in ("home", "work"):
            (folder / name).mkdir()
        return Place(folder / "home", folder / "work")

    return make


@pytest.fixture(scope="module")
def talk(new_place):
    """Return a place with a session of two turns and its export."""
    made = new_place()
    line = "goose-like run --session NAME first && goose-like session export NAME -o talk.json"
    assert run_line(made, line).returncode == 0
    assert run_line(made, "goose-like run --session NAME --resume second").returncode == 0
    return made


@pytest.fixture(scope="module")
def components(new_place):
    """Return a place with the components that examples name, installed, and the folder for deployment."""
    if find_spec("concopilot") is None:
        pytest.skip("the extra `components` is not installed")
    made = new_place()
    names = ("plugin ocr", "copilot my_copilot", "plugin word_count")
    lines = [f"goose-like component new {name}" for name in names]
    lines += ["sed -i s/-SNAPSHOT// ocr/.config/config.yaml", "goose-like component install .", "mkdir ~/shared"]
    done = run_line(made, " && ".join(lines), HOME=str(made.home))
    assert done.returncode == 0, done.stderr
    return made


def copy_place(made: Place, place: Place) -> None:
    """Copy everything in a place into another."""
    for source, target in ((made.home, place.home), (made.work, place.work)):
        shutil.copytree(source, target, dirs_exist_ok=True)


def prepare_toolkit(place: Place, group: str, command: str) -> None:
    """Write what the examples of a group of commands name."""
    if group == "skill" and command != "new":
        write_skill(place.work / ".agents/skills", "pdf")
        assert run_line(place, "goose-like trust add").returncode == 0
    if group == "recipe" and command != "new":
        assert run_line(place, "goose-like recipe new release-notes").returncode == 0
    if group == "hooks":
        (place.home / ".claude").mkdir()
        (place.home / ".claude/settings.json").write_text(HOOKS)
    if group == "hooks" and command == "forget":
        line = "goose-like hooks use --yes ~/.claude/settings.json"
        assert run_line(place, line, HOME=str(place.home)).returncode == 0
    if group == "mcp":
        line = f"goose-like mcp add --no-start git -- {sys.executable} {SERVER} stdio"
        assert run_line(place, line).returncode == 0


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_help_has_an_example_that_works(place, words, request):
    shown = place.run(*words)
    assert shown.returncode == 0
    examples = re.findall(r"(?:Example|Try): (goose-like (?:[^\n]|\n +)*)", shown.stdout)
    if len(words) == 2 and words[0] in ("session", "profile", "toolkit", "provider", "trust", "plugin", "component"):
        return  # a group: its commands have the examples
    assert examples, shown.stdout
    (place.work / "key.txt").write_text("k")
    if words[0] == "session" and words[1] in ("resume", "show", "export", "fork"):  # the newest session of the folder
        assert run_line(place, "goose-like run first && goose-like run --continue second").returncode == 0
    if words[0] == "session" and re.search(r"NAME|talk\.json", examples[0]):
        copy_place(request.getfixturevalue("talk"), place)
    if "planned" in words:
        (place.work / "plan.md").write_text("Write {{ name }}.\n\n- write it\n")
    if "plugin" in words:
        there = "there_already" if "new" in words else "word_count"
        assert run_line(place, f"goose-like plugin new {there}").returncode == 0
    if "component" in words:
        copy_place(request.getfixturevalue("components"), place)
        if "new" in words:
            shutil.rmtree(place.work / "word_count")
    if "trust" in words:
        write_project_profiles(place, "default: {extends: default}")
    if words[:2] == ["trust", "forget"]:
        assert run_line(place, "goose-like trust add").returncode == 0
    if words[0] in ("skill", "hooks", "mcp", "recipe"):
        prepare_toolkit(place, words[0], words[1])
    line = " ".join(examples[0].split()).replace("--profile local", "--profile default")
    own = {"HOME": str(place.home)} if words[0] in ("component", "hooks") else {}
    done = run_line(place, line, **own)
    if words[:2] == ["hooks", "use"]:  # of the person who is asked: see test_sources.py
        assert (done.returncode, "nobody is there to ask" in done.stderr) == (2, True), done.stderr
        return
    if "deploy" in words:  # of published packages to a server: see test_component_commands.py
        assert (done.returncode, "nobody else could run" in done.stderr) == (2, True), done.stderr
        return
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [("run",), ("serve",), ("boss", "run")])
def test_help_writes_small_limits_as_decimal_numbers(new_place, words):
    text = new_place().run(*words, "--help").stdout
    assert "[x>=0.0001]" in text
    assert "e-0" not in text
