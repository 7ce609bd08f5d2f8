"""The pages in docs/: every command, profile and example runs as it is written there, and tables are complete."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from goose_like_toolkits.openbb.config import OpenBBConfig

from goose_like import provider
from goose_like.agent.goose09 import load_toolkit
from goose_like.cli.commands.profiles_yaml import NEW_FILE
from goose_like.config.entry_points import list_entry_points
from goose_like.config.profile_loader import list_profile_sources
from goose_like.core.events import saved_event_adapter
from goose_like.core.history import History
from goose_like.launch.slash_registry import describe_unknown
from goose_like.providers.presets import Preset, load_presets
from goose_like.providers.registry import find_provider_class
from goose_like.providers.retry import RetryPolicy
from goose_like.sdk.lint import collect_tools
from goose_like.serve.openbb.client_tools import OTHER_FUNCTIONS
from tests import ROOT
from tests.e2e.command import Place
from tests.e2e.pages import find_blocks, find_indented_commands, run_line, write_project_profiles
from tests.loopback import answer, said, sse, threaded, words

PROVIDERS = ROOT / "docs/providers.md"
needs_kernel = pytest.mark.skipif(find_spec("ipykernel") is None, reason="the extra `kernel` is not installed")


def test_the_page_on_serving_tells_what_the_command_has(place):
    page, shown = (ROOT / "docs/serve.md").read_text(), place.run("serve", "--help").stdout
    assert find_indented_commands("docs/serve.md") == ["goose-like serve --profile openbb"]
    report = set(re.findall(r"`(--[a-z-]+)", page))
    assert sorted(report - set(re.findall(r"--[a-z-]+", shown))) == []
    for option, default in re.findall(r"^\| `(--[a-z-]+) (\d+)`", page, re.MULTILINE):
        assert re.search(rf"{option} .*?default:\s+{default}\b", shown, re.DOTALL), option
    for name in re.findall(r"^- `([\w.-]+)`:|`(\w+\.c\w+)`, `(haproxy.cfg)`, `(Caddyfile)`", page, re.MULTILINE):
        assert all((ROOT / "docs/serve" / one).is_file() for one in name if one)


def test_a_server_of_ones_own_with_openais_api(place):
    (line,) = re.findall(r"^    OPENAI_BASE_URL=\S+ (goose-like run .*)$", PROVIDERS.read_text(), re.MULTILINE)
    done = run_line(place, line, OPENAI_API_KEY="")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_a_server_of_ones_own_with_anthropics_api(place):
    (line,) = re.findall(r"^    (ANTHROPIC_BASE_URL=\S+ goose-like run .*)$", PROVIDERS.read_text(), re.MULTILINE)
    with threaded([answer(words(0, "ok"))]) as server:
        done = run_line(place, line.replace(":8080", f":{server.port}"), OPENAI_API_KEY="")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("name", sorted({source.name for source in list_profile_sources()}))
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
    (commands,) = find_blocks("docs/profiles.md", "sh")
    done = run_line(place, f"set -e\n{commands}")
    assert done.returncode == 0, done.stderr
    text = (place.home / "config/profiles.yaml").read_text()
    assert "\nmine:\n  extends: default\n" in text
    assert text.endswith("\nuse: default\n")


@needs_kernel
def test_the_commands_the_files_and_the_profiles_of_the_page_on_plugins(place):
    """In their order, as a person would: a plugin is begun, another written, tested, called, and used in sessions."""
    begun, by_hand = find_blocks("docs/plugins.md", "sh")
    done = run_line(place, f"set -e\n{begun}")
    assert (done.returncode, "1 plugin, no errors" in done.stdout) == (0, True), done.stderr
    described, *profiles = find_blocks("docs/plugins.md", "yaml")
    (source,) = find_blocks("docs/plugins.md", "python")
    for text in (described, source):
        (place.work / text.partition("\n")[0].removeprefix("# ")).write_text(text)
    assert run_line(place, "goose-like plugin check").stdout == "2 plugins, no errors\n"
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
    (lines,) = find_blocks("docs/plugins.md", "text")
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
        assert re.search(line, done.stdout + done.stderr), done.stderr
    counted = {"calls": [{"tool": "word_count", "arguments": {"text": "a a b", "limit": 1}}]}
    model = place.script(counted, {"text": "done", "expect": r"^\[\('a', 2\)\]"})
    done = place.run("run", "--profile", "counts", "--model", model, "count")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_the_commands_of_the_page_on_sessions(place):
    """In their order, as a person would; then the plans."""
    commands, planned = find_blocks("docs/sessions.md", "sh")
    for line in filter(None, commands.splitlines()):
        done = run_line(place, line)
        assert done.returncode == 0, done.stderr
    assert (place.work / "parser.md").read_text().startswith("# parser\n")
    listed = run_line(place, "goose-like session list").stdout
    assert re.findall(r"^\S+", listed, re.MULTILINE) == ["name", "lexer", "again", "parser"]
    (markdown,), (yaml,) = find_blocks("docs/sessions.md", "markdown"), find_blocks("docs/sessions.md", "yaml")
    (place.work / "plan.md").write_text(markdown)
    (place.work / "plan.yaml").write_text(yaml)
    for line in planned.splitlines():
        done = run_line(place, line)
        assert done.returncode == 0, done.stderr
        assert "☐ write toml.py" in done.stderr
    assert "Write a parser for toml files" in run_line(place, "goose-like session show writing").stdout


def test_the_line_for_editors_is_the_one_that_new_files_have():
    assert NEW_FILE.startswith(find_blocks("docs/profiles.md", "yaml")[1])


def test_the_command_of_the_exit_codes(place):
    (command,) = find_blocks("docs/exit-codes.md", "sh")
    assert run_line(place, command).stdout == "ok\n"
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text("default: {processr: x}")
    assert run_line(place, command).stdout == "it ended with 2\n"


def test_the_command_of_the_page_on_scripts(place):
    page, shown = (ROOT / "docs/scripts.md").read_text(), place.run("run", "--help").stdout
    command, answer_in_json, with_receipt = find_blocks("docs/scripts.md", "sh")
    done = run_line(place, command)
    assert done.returncode == 0, done.stderr
    result = json.loads((place.work / "result.json").read_text())
    described = re.search(r"The JSON object has (.*?):", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", described[1])) == result.keys()
    assert sorted(set(re.findall(r"--[a-z][a-z-]+", page)) - set(re.findall(r"--[a-z][a-z-]+", shown))) == []
    with threaded([sse(said('{"files": 7}'))]) as server:
        done = run_line(place, answer_in_json, OPENAI_BASE_URL=server.base_url)
    assert (done.returncode, done.stdout) == (0, '{"files": 7}\n'), done.stderr
    assert (place.work / "count.json").read_text() == done.stdout
    done = run_line(place, with_receipt)
    assert done.returncode == 0, done.stderr
    assert json.loads((place.work / "receipt.json").read_text())["reason"] == "stop"


def test_the_profiles_of_the_docs(place):
    written, theirs = (block for block in find_blocks("docs/profiles.md", "yaml") if "profiles.yaml" in block)
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text(written)
    for name in re.findall(r"^(\w+):", written, re.MULTILINE):
        if name == "offline" and find_spec("xllamacpp") is None:
            continue
        done = run_line(place, f"goose-like profile check {name}", ANTHROPIC_API_KEY="k")
        assert done.returncode == 0, done.stderr

    write_project_profiles(place, theirs)
    assert run_line(place, "goose-like trust add && goose-like profile check default").returncode == 0


def test_the_files_of_the_page_on_commands(place):
    (commands,) = find_blocks("docs/commands.md", "sh")
    for line in commands.splitlines():
        done = run_line(place, line)
        assert done.returncode == 0, done.stderr
    (said,) = [event["message"] for event in place.events() if event["type"] == "turn_started"]
    _, text, names = (part["text"] for part in said["parts"])
    assert (text, names) == ("\n[notes.txt]\nsaid by a file\n", "\n[.]\nnotes.txt\n")


def test_the_names_on_the_page_for_users_of_other_agents(place):
    """What it says of this program exists, and what it says of others is known here."""
    page = (ROOT / "docs/coming-from.md").read_text()
    ours = "".join(row.split("|")[-2] for row in page.split("## Conventions")[0].splitlines() if row.startswith("|"))
    options = place.run("--help").stdout + place.run("run", "--help").stdout
    for option in re.findall(
        r"(?<![\w-])--?[a-zA-Z][\w-]*", ours + page.partition("Followed:")[2].partition("Enter,")[0]
    ):
        assert re.search(rf"(?<![\w-]){option}\b", options), option
    commands = {*list_entry_points("goose_like.command"), "init"}
    assert set(re.findall(r"`/([a-z-]+)", ours)) <= commands
    for name in re.findall(r"`/([a-z-]+)", page):
        assert name in commands or "here it is" in describe_unknown(name, {}), name


def test_every_command_of_ours_is_on_the_page():
    page = (ROOT / "docs/commands.md").read_text()
    report = {
        name for row in re.findall(r"^\| (`/.*`) \|", page, re.MULTILINE) for name in re.findall(r"`/([\w-]+)", row)
    }
    ours = [
        point.name
        for point in list_entry_points("goose_like.command").values()
        if point.value.startswith("goose_like.")
    ]
    assert sorted(report) == sorted(ours)


def test_the_commands_of_the_page_on_commands(place, tmp_path):
    """The file, the toolkit and the package as they stand there, then the lines that use them, in one session."""
    (written,) = find_blocks("docs/commands.md", "markdown")
    file = place.home / "config/commands/explain.md"
    file.parent.mkdir(parents=True)
    file.write_text(written)
    (place.work / "notes.txt").write_text("said by a file\n")
    toolkit, package = find_blocks("docs/commands.md", "python")
    (points,) = find_blocks("docs/commands.md", "toml")
    info = tmp_path / "site/hello-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hello\nVersion: 0.1\n")
    named = points.replace('project.entry-points."goose_like.command"', "goose_like.command").replace('"', "")
    (info / "entry_points.txt").write_text(f"{named}[goose_like.toolkit]\ntodo = todo_toolkit:TodoToolkit\n")
    (tmp_path / "site/todo_toolkit.py").write_text(toolkit)
    (tmp_path / "site/hello_command.py").write_text(package)
    (place.home / "config/profiles.yaml").write_text("default: {extends: default, toolkits: [developer, todo]}\n")
    lines = "".join(find_blocks("docs/commands.md", "text")) + "/help\n"
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
    pages = ["docs/safety.md", "docs/sandbox.md", "docs/permissions.md"]
    blocks = [block for page in pages for block in find_blocks(page, "sh")]
    return [line for line in "".join(blocks).splitlines() if line]


@pytest.mark.parametrize("line", safety_lines())
def test_a_command_of_the_pages_on_safety(place, line):
    write_project_profiles(place, "default: {extends: default}")
    (place.work.parent / "lib").mkdir()
    for name in (".claude/CLAUDE.md", ".codex/AGENTS.md"):
        (place.home / name).parent.mkdir()
        (place.home / name).write_text("Use tabs.")
    own = {"HOME": str(place.home)}
    if "forget" in line:
        assert run_line(place, "goose-like trust add . ~/.claude", **own).returncode == 0
    done = run_line(place, line, **own)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", "".join(find_blocks("docs/providers.md", "sh")).splitlines())
def test_a_command_of_the_page_on_providers(place, line):
    (place.work / "key.txt").write_text("k")
    done = run_line(place, line)
    if line.startswith("goose-like setup"):  # with a terminal: see test_setup.py
        assert (done.returncode, "needs a terminal" in done.stderr) == (2, True), done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_the_rows_of_the_docs(place):
    (written,) = [block for block in find_blocks("docs/servers.md", "yaml") if "gateway:" in block]
    (place.home / "config").mkdir()
    (place.home / "config/providers.yaml").write_text(written)
    listed = place.run("provider", "list", env={"GATEWAY_TOKEN": "k"})
    assert listed.returncode == 0, listed.stderr
    rows = {line.split()[0]: line for line in listed.stdout.splitlines()}
    assert "ready" in rows["gateway"]
    assert "set AZURE_OPENAI_API_KEY" in rows["azure-2024"]


def test_the_table_of_providers_is_the_one_that_works():
    page, _, _ = PROVIDERS.read_text().partition("## Tools of the vendor")
    report = re.findall(r"^\| `([\w-]+)` \| .* \| (?:`(\w+_(?:API_KEY|TOKEN))`)?.* \| (.*) \|$", page, re.MULTILINE)
    facts = {name: find_provider_class(name).info for name in ["anthropic", "openai", *load_presets()]}
    report = [row for row in report if row[0] in facts]
    models = {
        name: ", ".join(dict.fromkeys(filter(None, (each.processor, each.accelerator)))) for name, each in facts.items()
    }
    assert report == [(name, each.key_variable or "", models[name] or "-") for name, each in facts.items()]


def test_the_table_of_keys_of_a_server_is_whole():
    page = (ROOT / "docs/servers.md").read_text()
    keys = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)?) \|", page, re.MULTILINE)))
    assert set(keys) & set(Preset.model_fields) == set(Preset.model_fields) - {"name"}


@pytest.mark.parametrize("name", ["default", "patient", "frugal", "endless"])
def test_the_moderators_of_the_docs(place, name):
    (place.home / "config").mkdir()
    (place.home / "config" / "profiles.yaml").write_text("".join(find_blocks("docs/context.md", "yaml")))
    done = place.run("run", "--profile", name, "--model", place.script({"text": "done"}), "--sandbox", "full", "go")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("written", find_blocks("docs/developer.md", "yaml"))
def test_the_configs_of_the_developer_toolkit(place, written):
    (place.home / "config/profiles").mkdir(parents=True)
    (place.home / "config/profiles/mine.yaml").write_text(written)
    done = run_line(place, "goose-like profile check mine && goose-like run --profile mine --model openai:m x")
    assert done.returncode == 0, done.stderr


def install_toolkit(place: Place, folder: Path, name: str, class_name: str) -> dict[str, str]:
    """Install a toolkit of the page as an entry point with a profile of its name, and return the variables for it.

    Write what `pip install` would write, without an index to ask for a build backend.
    """
    module = f"{name}_toolkit"
    (toolkit,) = (block for block in find_blocks("docs/extending.md", "python") if f"# {module}.py" in block)
    (folder / f"{module}.py").write_text(toolkit)
    info = folder / f"{name}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[goose_like.toolkit]\n{name} = {module}:{class_name}\n")
    (place.home / "config/profiles").mkdir(parents=True)
    (place.home / f"config/profiles/{name}.yaml").write_text(f"extends: default\ntoolkits: [{name}]\n")
    return {"PYTHONPATH": str(folder)}


def test_the_toolkit_that_asks_for_json(place, tmp_path):
    """Its question gets two answers, of which the first does not fit."""
    path = install_toolkit(place, tmp_path, "triage", "TriageToolkit")
    model = place.script(
        {"calls": [{"tool": "sort_report", "arguments": {"text": "a typo"}}]},
        {"text": '{"area": "docs", "minutes": 0}', "expect": "a typo"},
        {"text": '{"area": "docs", "minutes": 5}', "expect": "At `[$].minutes`: 0 is less than the minimum of 1"},
        {"text": "done", "expect": "docs, 5 minutes"},
    )
    done = place.run("run", "--profile", "triage", "--model", model, "go", env=path)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_the_toolkit_with_hooks(place, tmp_path):
    """Use the hooks of the page's toolkit in a turn."""
    project, *_ = find_blocks("docs/extending.md", "toml")
    name, _, reference = project.splitlines()[1].replace('"', "").partition(" = ")
    path = install_toolkit(place, tmp_path, name, reference.partition(":")[2])
    model = place.script(
        {"text": "done", "expect": "open checks: tests, docs"},
        {"calls": [{"tool": "check", "arguments": {"name": "tests"}}], "expect": "Still open: .*Call `check`"},
        {"text": "done now", "expect": "open checks: docs"},
        {"calls": [{"tool": "give_up", "arguments": {"reason": "no docs"}}], "expect": "Still open: ..docs'"},
    )
    done = place.run("run", "--profile", name, "--model", model, "go", env=path)
    assert (done.returncode, "✓ stopped: no docs" in done.stderr) == (0, True), done.stderr
    assert re.search(
        r"^checklist +A checklist for every turn", place.run("toolkit", "list", env=path).stdout, re.MULTILINE
    )


OWN_PROVIDERS = "docs/own-providers.md"


def install_package(folder: Path, name: str) -> dict[str, str]:
    """Build and install a package of the pages as its author would, and return the variables for it."""
    blocks: list[str] = []
    for page in ("docs/extending.md", OWN_PROVIDERS):
        blocks += find_blocks(page, "toml") + find_blocks(page, "python")
    source = folder / name
    source.mkdir()
    for block in blocks:
        first_line = block.splitlines()[0]
        file_name = first_line.removeprefix("# ").partition(" of ")[0]
        if first_line.endswith(f" of {name}") or file_name.startswith(f"{name}_"):
            (source / file_name).write_text(block)
    site = folder / "site"
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--quiet")
    pip = (sys.executable, "-m", "pip", "install", *offline, "--target", site, source)
    subprocess.run(pip, check=True)
    return {"PYTHONPATH": str(site)}


def test_the_smallest_package_with_a_provider(place, tmp_path):
    path = install_package(tmp_path, "shout")
    done = place.run("run", "-m", "shout", "hello", env=path)
    assert (done.returncode, done.stdout) == (0, "HELLO\n"), done.stderr


def test_the_package_with_a_provider(place, tmp_path):
    """The provider is listed, says what is missing, and answers with the words of the message."""
    path = install_package(tmp_path, "parrot")
    missing = place.run("run", "--model", "parrot:grey", "hello", env=path)
    assert (missing.returncode, "set PARROT_KEY; any text will do" in missing.stderr) == (76, True), missing.stderr
    listed = place.run("provider", "list", env={**path, "PARROT_KEY": "k"})
    assert re.search(r"^parrot +repeats your words", listed.stdout, re.MULTILINE), listed.stdout
    done = place.run("run", "--model", "parrot:grey", "hello there", env={**path, "PARROT_KEY": "k"})
    assert (done.returncode, done.stdout) == (0, "hello there\n"), done.stderr
    (answer,) = [event for event in place.events() if event["type"] == "message_completed"]
    assert answer["usage"]["input_tokens"] == 9
    (commands,) = find_blocks(OWN_PROVIDERS, "sh")
    for line in commands.splitlines():
        done = run_line(place, line, PARROT_KEY="k", **path)
        assert done.returncode == 0, done.stderr


def test_the_table_of_provider_errors_is_whole_and_true():
    page = (ROOT / OWN_PROVIDERS).read_text()
    rows = re.findall(r"^\| `(\w+)\(text(.*?)\)` \|.*\| (.*) \| (\d+) \|$", page, re.MULTILINE)
    shown = {name for name, *_ in rows}
    public = [getattr(provider, name) for name in provider.__all__]
    classes = {each for each in public if isinstance(each, type) and issubclass(each, provider.ProviderError)}
    assert shown == {each.__name__ for each in classes}
    policy = RetryPolicy()
    for name, options, action, code in rows:
        error = eval(f"provider.{name}('text'{options})", {"provider": provider})
        assert error.exit_code == int(code), name
        assert error.is_retryable == (f"retries up to {policy.max_attempts - 1} times" in action), name
    assert f"a wait over {policy.deadline_s:.0f} s ends the turn" in page


def test_the_table_of_optional_protocols_is_whole_and_true():
    page = (ROOT / OWN_PROVIDERS).read_text()
    _, _, optional = page.partition("## Optional")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", optional, re.MULTILINE))
    for name, members in rows.items():
        protocol = getattr(provider, name)
        own = {member for member in vars(protocol) if not member.startswith("_")}
        own |= set(protocol.__annotations__)
        assert own <= set(re.findall(r"`(?:async )?(\w+)", members)), name
    served = {"SupportsProbe", "SupportsAnswerSchema", "SupportsCompaction", "TakesFiles", "TellsFacts"}
    assert set(rows) == served | {"Embedder", "WebSearcher"}


def test_the_package_with_a_moderator(place, tmp_path):
    """Of four turns, the third and the fourth receive the first message and the two newest turns."""
    path = install_package(tmp_path, "recent")
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text("default: {extends: default, moderator: recent}\n")
    model = place.script("one", "two", "three", "four")
    done = place.run("session", "start", "--model", model, input="a\nb\nc\nd\n", env=path)
    assert done.returncode == 0, done.stderr
    durable = [{key: value for key, value in event.items() if key != "at"} for event in place.events()]
    history = History.replay([saved_event_adapter.validate_json(json.dumps(event)) for event in durable])
    texts = [message.text for message in history.context.messages if message.role in ("user", "assistant")]
    first_words = "It began with this request:\na"
    assert texts == [first_words, "c", "three", "d", "four"]
    compacted = [event for event in durable if event["type"] == "compacted"]
    assert [event["summary"] for event in compacted] == [first_words, first_words]


@pytest.mark.parametrize(("line", "content"), [("y", "red\n"), ("n", None)])
def test_the_front_end_of_the_page(place, line, content):
    source, _ = find_blocks("docs/front-ends.md", "python")
    assert source.count("\n") <= 40
    (place.work / "lines.py").write_text(source)
    model = place.script(
        {"text": "I write it.", "calls": [{"tool": "write_file", "arguments": {"path": "a.txt", "content": "red\n"}}]},
        {"text": "That is all."},
    )
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text(f"default: {{processor: '{model}', approval: ask, sandbox: full}}")
    command = [sys.executable, "lines.py", "go"]
    done = subprocess.run(
        command, cwd=place.work, env=place.env(), input=f"{line}\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    texts = ["I write it.", "▸ Write a.txt", "change? [y/n] ", "allowed" if content else "denied", "That is"]
    places = [done.stdout.index(text) for text in texts]
    assert places == sorted(places)
    assert [done.stdout.count(text) for text in texts] == [1] * len(texts)
    assert "... running write_file\n" in done.stderr
    assert done.stderr.endswith("... ready\n")
    file = place.work / "a.txt"
    assert (file.read_text() if file.exists() else None) == content


def test_the_front_end_with_sessions_of_the_page(place):
    """It works in the folder of the argument, saves the session, and does without the files that nobody trusted."""
    _, source = find_blocks("docs/front-ends.md", "python")
    file = place.home / "conversation.py"
    file.write_text(source)
    model = place.script("I looked.", "I looked again.")
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text(f"default: {{processor: '{model}'}}")
    (place.work / ".goose-like").mkdir()
    (place.work / ".goose-like/profiles.yaml").write_text("mine: {}\n")
    command = [sys.executable, str(file), str(place.work)]
    lines = "one\ntwo\n"
    done = subprocess.run(
        command, cwd=place.home, env=place.env(), input=lines, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "skipped untrusted files: " in done.stdout
    assert "I looked" in done.stdout
    assert place.list_messages() == ["one", "two"]
    (header,) = [event for event in place.events() if event["type"] == "session_started"]
    assert header["cwd"] == str(place.work)


OPENBB = "docs/openbb.md"


def test_the_profile_of_the_page_on_dashboards(place):
    profile, script = find_blocks(OPENBB, "yaml")
    (place.home / "config/profiles").mkdir(parents=True)
    (place.home / "config/profiles/desk.yaml").write_text(profile)
    done = run_line(place, "goose-like profile check desk && goose-like run --profile desk --model openai:m x")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "ok"), done.stderr
    (place.work / "prices.yaml").write_text(script)
    (line,) = find_indented_commands(OPENBB)
    done = run_line(place, line)
    assert (done.returncode, done.stdout) == (0, "AAPL rose from 227.5 to 233.9.\n"), done.stderr
    for drawn in ("    233.9 │", "    Thu │ 233.9", "  → How did MSFT do?"):
        assert drawn in done.stderr


def test_the_page_on_dashboards_has_every_tool_and_function():
    page = (ROOT / OPENBB).read_text()
    report = set(re.findall(r"^\| `(\w+)\(", page, re.MULTILINE))
    assert report == {tool.name for tool in collect_tools(load_toolkit("openbb"))}
    assert set(re.findall(r"`(\w+)`", page)) >= {*OTHER_FUNCTIONS, *OpenBBConfig.model_fields} - {"query"}


ANALYST = "docs/analyst.md"
needs_analyst = pytest.mark.skipif(
    not all(map(find_spec, ("ipykernel", "pandas"))), reason="the extra `analyst` is not installed"
)


@needs_analyst
@pytest.mark.parametrize("line", "".join(find_blocks(ANALYST, "sh")).splitlines())
def test_a_command_of_the_page_on_data(place, line):
    done = run_line(place, line)
    assert done.returncode == 0, done.stderr


@needs_analyst
def test_the_script_and_the_profile_of_the_page_on_data(place):
    script, profile = find_blocks(ANALYST, "yaml")
    (line,) = find_indented_commands(ANALYST)
    (place.work / "counting.yaml").write_text(script)
    done = run_line(place, line)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Kiel sold 8 and Bonn 4, see sold.csv."), done.stderr
    assert (place.work / "sold.csv").read_text() == "town,sold\nBonn,4\nKiel,8\n"
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text(profile)
    done = run_line(place, "goose-like profile check data && goose-like run --profile data --model openai:m x")
    assert done.returncode == 0, done.stderr
