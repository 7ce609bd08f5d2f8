"""What README, docs and `--help` show is run as it stands there: every command, profile and example."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from goose_like_toolkits.openbb.config import Config

from goose_like.agent.goose09 import load_toolkit
from goose_like.cli.commands.profile_editor import NEW_FILE
from goose_like.config.profile import sources
from goose_like.core.entry_points import found
from goose_like.providers.presets import Row, rows
from goose_like.providers.registry import provider_class
from goose_like.sdk.lint import written_tools
from goose_like.serve.openbb.client_tools import FURTHER
from tests import ROOT
from tests.e2e.command import Place
from tests.e2e.serving import serving
from tests.loopback import answer, said, sse, threaded, words

SESSIONS = ("start", "planned", "resume", "list", "show", "export", "import", "fork", "rename", "clear")
COMPONENT = ("list", "show", "check", "new", "install", "fetch", "build", "run", "deploy")
COMMANDS = [
    ["--help"],
    *([name, "--help"] for name in ("run", "doctor", "completion", "help", "version")),
    *([name, "--help"] for name in ("session", "profile", "toolkit", "provider", "trust", "plugin", "component")),
    *(["session", name, "--help"] for name in SESSIONS),
    *(["profile", name, "--help"] for name in ("list", "show", "check", "new", "edit", "use", "schema")),
    *(["provider", name, "--help"] for name in ("list", "check", "login", "logout")),
    *(["toolkit", name, "--help"] for name in ("list", "show", "new")),
    *(["trust", name, "--help"] for name in ("add", "list", "forget")),
    *(["plugin", name, "--help"] for name in ("list", "check", "test", "run", "new")),
    *(["component", name, "--help"] for name in COMPONENT),
]


needs_kernel = pytest.mark.skipif(find_spec("ipykernel") is None, reason="the extra `kernel` is not installed")


def blocks(file: str, language: str) -> list[str]:
    """The fenced blocks of a language in a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / file).read_text(), re.DOTALL | re.MULTILINE)


def put_command_on_path(folder: Path) -> str:
    """A `goose-like` that is this checkout's, whatever is installed."""
    file = folder / "goose-like"
    file.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m goose_like "$@"\n')
    file.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def run_line(place, line: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """A line of a page, in a shell, with a server that answers `ok` in the place of OpenAI's."""
    with threaded([sse(said("ok"))]) as server:
        path = put_command_on_path(place.home)
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url, "PATH": path, "VISUAL": "true", **env}
        return subprocess.run(
            ["bash", "-c", line],
            cwd=place.work,
            env=place.env(**env),
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            check=False,
        )


def bring_profiles(place, text: str) -> None:
    (place.work / ".goose-like").mkdir()
    (place.work / ".goose-like/profiles.yaml").write_text(text)


def readme_lines() -> list[str]:
    lines = "".join(blocks("README.md", "sh")).splitlines()
    return [line for line in lines if "goose-like" in line and "venv" not in line]


def test_readme_has_the_lines_that_are_tested_here():
    assert len(readme_lines()) >= 6


@pytest.mark.parametrize("line", readme_lines())
def test_a_command_of_the_readme(place, line):
    if "analyst" in line and find_spec("ipykernel") is None:
        pytest.skip("the extra `analyst` is not installed")
    if line.startswith("goose-like component") and find_spec("jsonschema") is None:
        pytest.skip("the extra `components` is not installed")
    if line.startswith("goose-like serve"):  # it would not end by itself
        pytest.importorskip("uvicorn")
        with serving(place, *shlex.split(line, comments=True)[2:], env={"OPENAI_API_KEY": "k"}) as server:
            assert "<title>goose_like</title>" in server.get("/").text
        return
    (place.work / "task.md").write_text("a task")
    subprocess.run(["git", "init", "-q"], cwd=place.work, check=True)
    if "git diff" in line:
        (place.work / "task.md").write_text("a task")
        subprocess.run("git add . && git commit -qm x && echo y >> task.md", shell=True, cwd=place.work, check=True)
    if "resume" in line:
        assert run_line(place, 'goose-like run "first"').returncode == 0
    done = run_line(place, line)
    if line.partition("#")[0].strip() == "goose-like":  # a session is for a terminal: see test_seat.py
        assert (done.returncode, "Without a command it begins a session" in done.stdout) == (2, True)
    elif line.startswith("goose-like boss"):  # whose model should do more than say ok: see test_boss_page.py
        assert (done.returncode, "named no action" in done.stderr) == (1, True), done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_the_page_on_serving_tells_what_the_command_has(place):
    page, shown = (ROOT / "docs/serve.md").read_text(), place.run("serve", "--help").stdout
    assert re.findall(r"^    (goose-like .*)", page, re.MULTILINE) == ["goose-like serve --profile openbb"]
    told = set(re.findall(r"`(--[a-z-]+)", page))
    assert sorted(told - set(re.findall(r"--[a-z-]+", shown))) == []
    for option, default in re.findall(r"^\| `(--[a-z-]+) (\d+)`", page, re.MULTILINE):
        assert re.search(rf"{option} .*?default:\s+{default}\b", shown, re.DOTALL), option
    for name in re.findall(r"^- `([\w.-]+)`:|`(\w+\.c\w+)`, `(haproxy.cfg)`, `(Caddyfile)`", page, re.MULTILINE):
        assert all((ROOT / "docs/serve" / one).is_file() for one in name if one)


def test_the_readme_runs_a_server_of_ones_own(place):
    line = re.search(
        r"`(OPENAI_BASE_URL=\S+ goose-like run --model openai:NAME \"\.\.\.\")`", (ROOT / "README.md").read_text()
    )
    assert line
    done = run_line(place, line[1].replace("OPENAI_BASE_URL=http://127.0.0.1:8080/v1 ", ""), OPENAI_API_KEY="")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_the_readme_runs_a_server_that_speaks_anthropics_wire(place):
    page = " ".join((ROOT / "README.md").read_text().split())
    line = re.search(r"`(ANTHROPIC_BASE_URL=\S+) (goose-like run --model anthropic:NAME \"\.\.\.\")`", page)
    assert line
    with threaded([answer(words(0, "ok"))]) as server:
        given = line[1].replace("http://127.0.0.1:8080", f"http://127.0.0.1:{server.port}")
        done = run_line(place, f"{given} {line[2]}", OPENAI_API_KEY="")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_the_first_command_of_the_readme_is_what_ci_and_the_tests_know():
    first, second = (block.strip() for block in blocks("README.md", "sh")[:2])
    assert first.startswith("python3 -m venv .venv && .venv/bin/pip install '.[local]' && .venv/bin/goose-like run ")
    assert second.replace("pip install -e", "pip install --quiet -e") in (ROOT / ".ci/run").read_text()


@pytest.mark.local
@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
def test_the_first_command_of_the_readme_does_what_it_says(place):
    """With the weights of the person's own cache, so that a gigabyte is not unpacked for each run of the tests."""
    task = shlex.split(blocks("README.md", "sh")[0].strip())[-1]
    env = {"XDG_CONFIG_HOME": str(place.home / "c"), "XDG_STATE_HOME": str(place.home / "s")}
    kept = {name: value for name, value in place.env(**env).items() if name != "GOOSE_LIKE_HOME"}
    command = [sys.executable, "-m", "goose_like", "run", task]
    done = subprocess.run(command, cwd=place.work, env=kept, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "shell" in done.stderr
    assert done.stdout.strip()
    shown = subprocess.run([sys.executable, "hello.py"], cwd=place.work, capture_output=True, text=True, check=False)
    assert re.findall(r"\d+", shown.stdout) == ["2", "3", "5", "7", "11", "13", "17", "19", "23", "29"], done.stderr


@pytest.fixture(scope="module")
def new_place(tmp_path_factory):
    """Makes a place that tests take copies of."""

    def make() -> Place:
        folder = tmp_path_factory.mktemp("made")
        for name in ("home", "work"):
            (folder / name).mkdir()
        return Place(folder / "home", folder / "work")

    return make


@pytest.fixture(scope="module")
def talk(new_place):
    """Where a session of two turns was held, and exported."""
    made = new_place()
    line = "goose-like run --session NAME first && goose-like session export NAME -o talk.json"
    assert run_line(made, line).returncode == 0
    assert run_line(made, "goose-like run --session NAME --resume second").returncode == 0
    return made


@pytest.fixture(scope="module")
def components(new_place):
    """The components that examples name, installed, and the folder that one is deployed to."""
    if find_spec("jsonschema") is None:
        pytest.skip("the extra `components` is not installed")
    made = new_place()
    names = ("plugin ocr", "copilot my_copilot", "plugin word_count")
    lines = [f"goose-like component new {name}" for name in names]
    lines += ["sed -i s/-SNAPSHOT// ocr/.config/config.yaml", "goose-like component install .", "mkdir ~/shared"]
    done = run_line(made, " && ".join(lines), HOME=str(made.home))
    assert done.returncode == 0, done.stderr
    return made


def bring(made: Place, place: Place) -> None:
    """Puts a copy of all that is in a place into another."""
    for source, target in ((made.home, place.home), (made.work, place.work)):
        shutil.copytree(source, target, dirs_exist_ok=True)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_help_has_an_example_that_works(place, words, request):
    shown = place.run(*words)
    assert shown.returncode == 0
    examples = re.findall(r"(?:Example|Try): (goose-like (?:[^\n]|\n +)*)", shown.stdout)
    if len(words) == 2 and words[0] in ("session", "profile", "toolkit", "provider", "trust", "plugin", "component"):
        return  # a group: its commands have the examples
    assert examples, shown.stdout
    (place.work / "key.txt").write_text("k")
    if "resume" in words:
        assert run_line(place, 'goose-like run "first"').returncode == 0
    if words[0] == "session" and re.search(r"NAME|talk\.json", examples[0]):
        bring(request.getfixturevalue("talk"), place)
    if "planned" in words:
        (place.work / "plan.md").write_text("Write {{ name }}.\n\n- write it\n")
    if "plugin" in words:
        there = "there_already" if "new" in words else "word_count"
        assert run_line(place, f"goose-like plugin new {there}").returncode == 0
    if "component" in words:
        bring(request.getfixturevalue("components"), place)
        if "new" in words:
            shutil.rmtree(place.work / "word_count")
    if "trust" in words:
        bring_profiles(place, "default: {extends: default}")
    if "forget" in words:
        assert run_line(place, "goose-like trust add").returncode == 0
    line = " ".join(examples[0].split()).replace("--profile local", "--profile default")
    own = {"HOME": str(place.home)} if "component" in words else {}
    done = run_line(place, line, **own)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted({source.name for source in sources()}))
def test_each_shipped_profile_can_be_used(place, name):
    if name == "local" and find_spec("xllamacpp") is None:
        pytest.skip("the extra `local` is not installed")
    if name == "analyst" and find_spec("ipykernel") is None:
        pytest.skip("the extra `analyst` is not installed")
    done = run_line(place, f"goose-like profile check {name} && goose-like profile show {name}")
    assert done.returncode == 0, done.stderr
    assert "tools" in done.stdout


def test_the_commands_of_the_profiles_page(place):
    """In their order, as a person would."""
    (commands,) = blocks("docs/profiles.md", "sh")
    done = run_line(place, f"set -e\n{commands}")
    assert done.returncode == 0, done.stderr
    assert (place.home / "config/profiles.yaml").read_text().endswith("mine:\n  extends: default\n\nuse: default\n")


@needs_kernel
def test_the_commands_the_files_and_the_profiles_of_the_page_on_plugins(place):
    """In their order, as a person would: a plugin is begun, another written, tested, called, and used in sessions."""
    begun, by_hand = blocks("docs/plugins.md", "sh")
    done = run_line(place, f"set -e\n{begun}")
    assert (done.returncode, "1 plugin: nothing is wrong" in done.stdout) == (0, True), done.stderr
    described, *profiles = blocks("docs/plugins.md", "yaml")
    (source,) = blocks("docs/plugins.md", "python")
    for text in (described, source):
        (place.work / text.partition("\n")[0].removeprefix("# ")).write_text(text)
    assert run_line(place, "goose-like plugin check").stdout == "2 plugins: nothing is wrong\n"
    done = run_line(place, f"set -e\n{by_hand}")
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == "✓ last line: The last of two lines.\n\n1 passed, 0 failed\n['configurations:', '  encoding: utf-8']\n"
    )

    for text in profiles:
        file = place.home / text.partition("\n")[0].removeprefix("# ~/").replace(".config/goose-like", "config")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (place.work / "tools").mkdir()
    for file in place.work.glob("[tw]*.*"):
        file.rename(place.work / "tools" / file.name)
    (lines,) = blocks("docs/plugins.md", "text")
    called = {
        "calls": [{"tool": "run_python", "arguments": {"code": "print(word_count('a a b', limit=1))\ntail('x')"}}]
    }
    model = place.script(called, {"text": "seen", "expect": "'a', 2.*name 'tail' is not defined"})
    words = ("--profile", "logs", "--model", model)
    done = place.run("session", "start", *words, input=lines.replace("team=day", "team=day\ncount\n/plugins"))
    assert done.returncode == 0, done.stderr
    for line in (
        "seen",
        r"word_count +off: not among",
        "word_count is on",
        r"tail +off: switched off in this",
        "team = day",
    ):
        assert re.search(line, done.stderr), done.stderr
    counted = {"calls": [{"tool": "word_count", "arguments": {"text": "a a b", "limit": 1}}]}
    model = place.script(counted, {"text": "done", "expect": r"^\[\('a', 2\)\]"})
    done = place.run("run", "--profile", "counts", "--model", model, "count")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_the_commands_of_the_page_on_sessions(place):
    """In their order, as a person would; then the plans."""
    commands, planned = blocks("docs/sessions.md", "sh")
    for line in filter(None, commands.splitlines()):
        done = run_line(place, line)
        assert done.returncode == 0, done.stderr
    assert (place.work / "parser.md").read_text().startswith("# parser\n")
    listed = run_line(place, "goose-like session list").stdout
    assert re.findall(r"^\S+", listed, re.MULTILINE) == ["name", "lexer", "again", "parser"]
    (markdown,), (yaml,) = blocks("docs/sessions.md", "markdown"), blocks("docs/sessions.md", "yaml")
    (place.work / "plan.md").write_text(markdown)
    (place.work / "plan.yaml").write_text(yaml)
    for line in planned.splitlines():
        done = run_line(place, line)
        assert done.returncode == 0, done.stderr
        assert "☐ write toml.py" in done.stderr
    assert "Write a parser for toml files" in run_line(place, "goose-like session show writing").stdout


def test_the_line_for_editors_is_the_one_that_new_files_have():
    assert NEW_FILE.startswith(blocks("docs/profiles.md", "yaml")[1])


def test_the_command_of_the_exit_codes(place):
    (command,) = blocks("docs/exit-codes.md", "sh")
    assert run_line(place, command).stdout == "ok\n"
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text("default: {processr: x}")
    assert run_line(place, command).stdout == "it ended with 2\n"


def test_the_profiles_of_the_docs(place):
    written, theirs = (block for block in blocks("docs/profiles.md", "yaml") if "profiles.yaml" in block)
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text(written)
    for name in re.findall(r"^(\w+):", written, re.MULTILINE):
        if name == "offline" and find_spec("xllamacpp") is None:
            continue
        done = run_line(place, f"goose-like profile check {name}", ANTHROPIC_API_KEY="k")
        assert done.returncode == 0, done.stderr

    bring_profiles(place, theirs)
    assert run_line(place, "goose-like trust add && goose-like profile check default").returncode == 0


def test_the_files_of_the_page_on_commands(place):
    (commands,) = blocks("docs/commands.md", "sh")
    for line in commands.splitlines():
        done = run_line(place, line)
        assert done.returncode == 0, done.stderr
    (said,) = [event["message"] for event in place.events() if event["type"] == "turn_started"]
    _, text, names = (part["text"] for part in said["parts"])
    assert (text, names) == ("\n[notes.txt]\nsaid by a file\n", "\n[.]\nnotes.txt\n")


def test_every_command_of_ours_is_on_the_page():
    page = (ROOT / "docs/commands.md").read_text()
    told = {name for row in re.findall(r"^\| (`/.*`) \|", page, re.MULTILINE) for name in re.findall(r"`/(\w+)", row)}
    ours = [point.name for point in found("goose_like.command").values() if point.value.startswith("goose_like.")]
    assert sorted(told) == sorted(ours)


def test_the_commands_of_the_page_on_commands(place, tmp_path):
    """The file, the toolkit and the package as they stand there, then the lines that use them, in one session."""
    (written,) = blocks("docs/commands.md", "markdown")
    file = place.home / "config/commands/explain.md"
    file.parent.mkdir(parents=True)
    file.write_text(written)
    (place.work / "notes.txt").write_text("said by a file\n")
    toolkit, package = blocks("docs/commands.md", "python")
    (points,) = blocks("docs/commands.md", "toml")
    info = tmp_path / "site/hello-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hello\nVersion: 0.1\n")
    named = points.replace('project.entry-points."goose_like.command"', "goose_like.command").replace('"', "")
    (info / "entry_points.txt").write_text(f"{named}[goose_like.toolkit]\ntodo = todo_toolkit:TodoToolkit\n")
    (tmp_path / "site/todo_toolkit.py").write_text(toolkit)
    (tmp_path / "site/hello_command.py").write_text(package)
    (place.home / "config/profiles.yaml").write_text("default: {extends: default, toolkits: [developer, todo]}\n")
    lines = "".join(blocks("docs/commands.md", "text")) + "/help\n"
    model = place.script("first", "second", "third")
    done = place.run("session", "start", "--model", model, input=lines, env={"PYTHONPATH": str(tmp_path / "site")})
    assert done.returncode == 0, done.stderr
    begun = [event["message"]["parts"] for event in place.events() if event["type"] == "turn_started"]
    assert [parts[0]["text"] for parts in begun] == [
        "Explain @notes.txt to a busy manager, in short sentences.",
        "Explain @notes.txt to a new colleague, in short sentences.",
        "Do this now: write the tests",
    ]
    assert begun[0][1]["text"] == "\n[notes.txt]\nsaid by a file\n"
    for shown in (
        "write the tests\n",
        "Hello Ada, after 7 messages!",
        "Explain a file to somebody",
        "Note a thing to do",
    ):
        assert shown in done.stderr


def safety_lines() -> list[str]:
    return [line for line in "".join(blocks("docs/safety.md", "sh")).splitlines() if line]


@pytest.mark.parametrize("line", safety_lines())
def test_a_command_of_the_page_on_safety(place, line):
    bring_profiles(place, "default: {extends: default}")
    if "forget" in line:
        assert run_line(place, "goose-like trust add").returncode == 0
    done = run_line(place, line)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", [line for line in "".join(blocks("docs/providers.md", "sh")).splitlines() if line])
def test_a_command_of_the_page_on_providers(place, line):
    (place.work / "key.txt").write_text("k")
    done = run_line(place, line)
    assert done.returncode == 0, done.stderr


def test_the_rows_of_the_docs(place):
    (written,) = blocks("docs/providers.md", "yaml")
    (place.home / "config").mkdir()
    (place.home / "config/providers.yaml").write_text(written)
    listed = place.run("provider", "list", env={"GATEWAY_TOKEN": "k"})
    assert listed.returncode == 0, listed.stderr
    rows = {line.split()[0]: line for line in listed.stdout.splitlines()}
    assert "ready" in rows["gateway"]
    assert "set AZURE_OPENAI_API_KEY" in rows["azure-2024"]


def test_the_table_of_providers_is_the_one_that_works():
    page = (ROOT / "docs/providers.md").read_text()
    told = re.findall(r"^\| `([\w-]+)` \| .* \| (?:`(\w+_(?:API_KEY|TOKEN))`)?.* \| (.*) \|$", page, re.MULTILINE)
    facts = {name: provider_class(name).facts for name in ["anthropic", "openai", *rows()]}
    told = [row for row in told if row[0] in facts]
    models = {
        name: ", ".join(dict.fromkeys(filter(None, (each.processor, each.accelerator)))) for name, each in facts.items()
    }
    assert told == [(name, each.key_variable or "", models[name] or "-") for name, each in facts.items()]
    keys = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)?) \|", page, re.MULTILINE)))
    assert set(keys) & set(Row.model_fields) == set(Row.model_fields) - {"name"}


@pytest.mark.parametrize("name", ["default", "patient", "frugal", "endless"])
def test_the_moderators_of_the_docs(place, name):
    (place.home / "config").mkdir()
    (place.home / "config" / "profiles.yaml").write_text("".join(blocks("docs/context.md", "yaml")))
    done = place.run("run", "--profile", name, "--model", place.script({"text": "done"}), "--sandbox", "full", "go")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("written", blocks("docs/developer.md", "yaml"))
def test_the_configs_of_the_developer_toolkit(place, written):
    (place.home / "config/profiles").mkdir(parents=True)
    (place.home / "config/profiles/mine.yaml").write_text(written)
    done = run_line(place, "goose-like profile check mine && goose-like run --profile mine --model openai:m x")
    assert done.returncode == 0, done.stderr


def test_the_toolkit_of_the_docs(place, tmp_path):
    """The page's package, as it stands there: built, installed, tested, and used in a turn."""
    package = tmp_path / "dice"
    package.mkdir()
    toolkit, test = blocks("docs/extending.md", "python")
    (package / "dice_toolkit.py").write_text(toolkit)
    (package / "test_dice.py").write_text(test)
    (project,) = blocks("docs/extending.md", "toml")
    (package / "pyproject.toml").write_text(project)
    # What `pip install` would write, without an index to ask for setuptools.
    site = tmp_path / "site"
    info = site / "dice_toolkit-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dice-toolkit\nVersion: 0.1\n")
    points = project[project.index("[project.entry-points") :].replace(
        'project.entry-points."goose_like.toolkit"', "goose_like.toolkit"
    )
    (info / "entry_points.txt").write_text(points.replace('"', ""))
    (site / "dice_toolkit.py").write_text(toolkit)
    path = {"PYTHONPATH": str(site)}
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_dice.py"],
        cwd=package, env=place.env(**path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout
    (profile,) = blocks("docs/extending.md", "yaml")
    (place.home / "config/profiles").mkdir(parents=True)
    (place.home / "config/profiles/dicer.yaml").write_text(profile)
    model = place.script({"calls": [{"tool": "roll", "arguments": {"sides": 1}}]}, {"text": "a 1", "expect": "^1$"})
    done = place.run("run", "--profile", "dicer", "--model", model, "roll", env=path)
    assert (done.returncode, done.stdout) == (0, "a 1\n"), done.stderr
    assert "rolled a 1" in done.stderr
    assert "dice" in place.run("toolkit", "list", env=path).stdout


OPENBB = "docs/openbb.md"


def test_the_profile_of_the_page_on_dashboards(place):
    profile, script = blocks(OPENBB, "yaml")
    (place.home / "config/profiles").mkdir(parents=True)
    (place.home / "config/profiles/desk.yaml").write_text(profile)
    done = run_line(place, "goose-like profile check desk && goose-like run --profile desk --model openai:m x")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "ok"), done.stderr
    (place.work / "prices.yaml").write_text(script)
    (line,) = re.findall(r"^    (goose-like run .*)$", (ROOT / OPENBB).read_text(), re.MULTILINE)
    done = run_line(place, line)
    assert (done.returncode, done.stdout) == (0, "AAPL rose from 227.5 to 233.9.\n"), done.stderr
    for drawn in ("    233.9 │", "    Thu │ 233.9", "  → How did MSFT do?"):
        assert drawn in done.stderr


def test_the_page_on_dashboards_has_every_tool_and_function():
    page = (ROOT / OPENBB).read_text()
    told = set(re.findall(r"^\| `(\w+)\(", page, re.MULTILINE))
    assert told == {tool.name for tool in written_tools(load_toolkit("openbb"))}
    assert set(re.findall(r"`(\w+)`", page)) >= {*FURTHER, *Config.model_fields} - {"query"}


ANALYST = "docs/analyst.md"
needs_analyst = pytest.mark.skipif(
    not all(map(find_spec, ("ipykernel", "pandas"))), reason="the extra `analyst` is not installed"
)


@needs_analyst
@pytest.mark.parametrize("line", "".join(blocks(ANALYST, "sh")).splitlines())
def test_a_command_of_the_page_on_data(place, line):
    done = run_line(place, line)
    assert done.returncode == 0, done.stderr


@needs_analyst
def test_the_script_and_the_profile_of_the_page_on_data(place):
    script, profile = blocks(ANALYST, "yaml")
    (line,) = re.findall(r"^    (goose-like run .*)$", (ROOT / ANALYST).read_text(), re.MULTILINE)
    (place.work / "counting.yaml").write_text(script)
    done = run_line(place, line)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Kiel sold 8 and Bonn 4, see sold.csv."), done.stderr
    assert (place.work / "sold.csv").read_text() == "town,sold\nBonn,4\nKiel,8\n"
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text(profile)
    done = run_line(place, "goose-like profile check data && goose-like run --profile data --model openai:m x")
    assert done.returncode == 0, done.stderr
