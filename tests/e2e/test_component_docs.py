"""docs/components.md, run in its order: commands, profile, component, copilot, repositories."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.e2e.command import Place
from tests.e2e.pages import find_blocks, put_forking_command_on_path
from tests.loopback import said, sse, threaded

PAGE = "docs/components.md"
BEGIN, BUILD, RUN, COPILOT, TALK, REPOSITORIES = find_blocks(PAGE, "sh")
COMPONENT, PROFILE, SETTINGS = (
    next(block for block in find_blocks(PAGE, "yaml") if block.startswith(f"# {start}"))
    for start in ("word_count", "~/.config", "~/.concopilot")
)


def run_lines(place: Place, lines: str, typed: str = "") -> str:
    """Run lines of the page with a server that answers `ok` in place of OpenAI's, and return what they print."""
    conpack = place.home / "conpack"
    command = f'exec {shlex.quote(sys.executable)} -m goose_like_toolkits.components.conpack "$@"'
    conpack.write_text(f"#!/bin/sh\n{command}\n")
    conpack.chmod(0o755)
    with threaded([sse(said("ok"))] * 3) as server:
        done = subprocess.run(
            ["bash", "-ec", lines], cwd=place.work, input=typed, capture_output=True, text=True, timeout=120,
            env=place.env(
                HOME=str(place.home), PATH=put_forking_command_on_path(place.home), OPENAI_API_KEY="k",
                OPENAI_BASE_URL=server.base_url,
            ),
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def write_block(place: Place, text: str) -> None:
    """Write a block to the file that its first line names."""
    name = text.partition("\n")[0].removeprefix("# ")
    folder = place.home if name.startswith("~/") else place.work
    file = folder / name.removeprefix("~/").replace(".config/goose-like", "config")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def counting(place: Place) -> Place:
    """Return a place with the page's component and profile."""
    assert "1 component: nothing is wrong" in run_lines(place, BEGIN)
    for text in (COMPONENT, find_blocks(PAGE, "python")[0], PROFILE):
        write_block(place, text)
    return place


def test_the_component_and_the_profile(counting: Place):
    shown = run_lines(counting, BEGIN.partition("\n")[2])
    assert "1 component: nothing is wrong" in shown
    assert "asset_ref_acceptable: true" in shown
    assert "word_count can be constructed" in run_lines(counting, BUILD)
    assert "ok" in run_lines(counting, RUN).splitlines()
    note = {"tool": "disk_storage_write", "arguments": {"file_path": "a.txt", "content": "one two"}}
    counted = {"tool": "word_count_count", "arguments": {"text": "to be or not", "least": 3}}
    wrong = {"tool": "word_count_count", "arguments": {"text": 3}}
    steps = ({"calls": [counted, note]}, {"calls": [wrong], "expect": '"words": 1.*"status": true'})
    last = {"text": "done, but 3 could not be counted", "expect": "not of type 'string'"}
    how = ("--profile", "counting", "--model", counting.script(*steps, last), "--sandbox", "full")
    done = counting.run("run", *how, "count", env={"HOME": str(counting.home)})
    assert (done.returncode, done.stdout) == (0, "done, but 3 could not be counted\n"), done.stderr
    assert (counting.work / "notes" / "a.txt").read_text() == "one two"
    copies = counting.work / ".runtime/org/concopilot/basic/storage/disk-storage/0.0.1/notes"
    assert (copies / "config.yaml").is_file()
    assert not (counting.work / ".runtime/org/example").exists()


def test_the_copilot(counting: Place):
    assert "Good-bye" not in run_lines(counting, COPILOT, "hello\nexit\n")
    file = counting.work / "talk/.config/config.yaml"
    (plugins,) = (block for block in find_blocks(PAGE, "yaml") if block.startswith("# talk/.config/config.yaml\n"))
    config, count = re.subn(r"^ *plugins: \[\].*\n", plugins.partition("\n")[2], file.read_text(), flags=re.MULTILINE)
    assert count == 1
    file.write_text(config)
    (greeting,) = re.findall(r"greeting: (.*)", config)
    assert greeting in run_lines(counting, TALK, "to be or not\n")
    call = {"tool": "word_count_count", "arguments": {"text": "to be or not"}}
    answer = {"text": "It has 4 words.", "expect": '^{"words": 4}$'}  # the result of the call, not a text about it
    model = counting.script({"calls": [call]}, answer)
    (counting.home / "config/profiles.yaml").write_text(f"mine: {{processor: '{model}', toolkits: []}}\n")
    how = ("--profile", "mine", "--sandbox", "full")
    env = {"HOME": str(counting.home)}
    done = counting.run("component", "run", "talk", *how, env=env, input="count it\nexit\n")
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1), done.stderr
    assert done.stdout.splitlines() == [greeting, "It has 4 words."]


def test_the_repositories(counting: Place):
    run_lines(counting, COPILOT.partition("goose-like component run")[0])
    write_block(counting, SETTINGS)
    output = run_lines(counting, REPOSITORIES)
    assert "org.example:talk-interactor:0.1.0-SNAPSHOT installed in" in output
    assert "Usage: conpack deploy" in output
    assert (counting.home / "components/org/example/word-count/1.0.0/__COMPLETED").is_file()


def test_the_page_names_what_there_is(place: Place):
    page = (ROOT / PAGE).read_text()
    from_config = Path(ROOT / "toolkits/goose_like_toolkits/components/config.py").read_text()
    fields = set(re.findall(r"^    (\w+): .*=", from_config.partition("class Config")[2], re.MULTILINE))
    table = page.partition("| key of `config` | |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))) == fields
    listed = place.run("component", "list", "--json", env={"HOME": str(place.home)}).stdout
    there = {f"{one['group']}:{one['artifact']}:{one['version']}" for one in json.loads(listed)}
    assert set(re.findall(r"`(goose_like:[\w:.-]+)`", page)) == {one for one in there if one.startswith("goose_like:")}
