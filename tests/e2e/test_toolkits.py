"""docs/toolkits.md from the first to the last command, and the names that `toolkit new` refuses."""

import re
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.e2e.pages import find_blocks, run_line
from tests.loopback import said, sse, threaded

PAGE = ROOT / "docs" / "toolkits.md"
EDITOR = """#!{python}
# Replace the new profile with the one that the page shows.
import sys
from pathlib import Path

_, wanted = Path("profiles.yaml").read_text().split("\\n", 1)
file = Path(sys.argv[1])
before, _, _ = file.read_text().partition("\\n" + wanted.split("\\n", 1)[0] + "\\n")
file.write_text(before + "\\n" + wanted)
"""


def test_the_page_from_beginning_to_end(place, newcomer):
    """Each block in order: a shell's lines are run, what begins with a file's name is written to it."""
    here, outputs = ".", []
    editor = place.home / "editor"
    editor.write_text(EDITOR.format(python=sys.executable))
    editor.chmod(0o755)
    with threaded([sse(said("seven"))]) as server:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url, "VISUAL": str(editor)}
        for language, block in re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE):
            if language == "sh":
                done = newcomer(f"cd {here}\n{block}pwd", **env)
                assert done.returncode == 0, done.stdout + done.stderr
                outputs.append(done.stdout + done.stderr)
                here = done.stdout.splitlines()[-1]
            else:
                name = block.splitlines()[0].removeprefix("# ")
                assert name != block.splitlines()[0], f"which file is this? {block}"
                (Path(here) / name).write_text(block)
    made, tested, checked, scripted, asked, _, played = outputs
    assert "2 passed" in made
    assert "add_note: Keep a note." in made
    assert "4 passed" in tested
    assert "    values ([integer]) The roll, one die or more.\n" in tested
    assert '    rule ("sum"|"highest"|"lowest", optional) How to count.\n' in tested
    assert "    at_most (integer, optional) The highest possible score.\n" in tested
    assert "arning" not in made + tested
    assert "roll, score, name_a_game\n" in checked
    assert "1 passed" in played
    assert "play\n" in played
    assert re.search(r"rolled \[\d, \d\]", scripted)
    assert "I rolled them." in scripted
    assert "seven" in asked
    listed = newcomer("goose-like toolkit list").stdout
    assert re.search(r"^dice +Rolls dice\. +dice-toolkit$", listed, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("My", "'My' is no valid toolkit name; use lowercase letters, digits and '-', such as my-tools"),
        ("../up", "'../up' is no valid toolkit name"),
        ("a--b", "'a--b' is no valid toolkit name"),
        ("x" * 41, "is no valid toolkit name"),
        ("developer", "the package 'goose-like' already has a toolkit 'developer'; choose another name"),
        ("taken", "taken already exists; choose another name or --path"),
    ],
)
def test_refused_names(place, name, words):
    (place.work / "taken").mkdir()
    done = place.run("toolkit", "new", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in place.work.iterdir()] == ["taken"]


def test_a_place_that_can_not_be_written(place):
    (place.work / "file").touch()
    done = place.run("toolkit", "new", "dice", "--path", "file/below")
    assert done.returncode == 2
    assert "cannot write file/below/dice: Not a directory; choose another --path" in done.stderr


def test_a_name_of_several_words(place):
    done = place.run("toolkit", "new", "my-sea_notes", "--path", "deep/folder")
    assert done.stdout == "wrote deep/folder/my-sea_notes; next: pip install -e 'deep/folder/my-sea_notes[test]'\n"
    folder = place.work / "deep/folder/my-sea_notes"
    assert "class MySeaNotesToolkit(Toolkit):" in (folder / "my_sea_notes_toolkit.py").read_text()
    assert 'my-sea_notes = "my_sea_notes_toolkit:MySeaNotesToolkit"' in (folder / "pyproject.toml").read_text()


def test_the_profile_with_the_toolkits_that_come_along(place):
    """Run the example of the page. Without a person to ask, the sandbox keeps the screen from the model."""
    profile, _, _ = find_blocks("docs/more-toolkits.md", "yaml")
    (place.home / "config/profiles").mkdir(parents=True)
    (place.home / "config/profiles/more.yaml").write_text(profile)
    done = run_line(place, "goose-like profile check more")
    assert done.returncode == 0, done.stderr
    tools = (
        "delegate, is_jira_issue, map_repository, summarize_current_project, take_screenshot, deep_reason, "
        "generate_code"
    )
    assert f"update_plan, {tools}\n" in done.stdout
    (place.home / "scrot").write_text("#!/bin/sh\n")
    (place.home / "scrot").chmod(0o755)
    model = place.script(
        {"calls": [{"tool": "take_screenshot", "arguments": {}}]}, {"text": "no", "expect": "not allowed"}
    )
    line = f"goose-like run --profile more --model {model} look"
    done = run_line(place, line, DISPLAY=":7")
    assert (done.returncode, done.stdout) == (6, "no\n"), done.stderr
    assert "a picture of your screen" in done.stderr


def test_the_delegate_of_its_page(place):
    """Run the command below the scripts, and find its effects in the session."""
    _, profile, script = find_blocks("docs/more-toolkits.md", "yaml")
    (line,) = re.findall(r"^    (goose-like run .*)$", (ROOT / "docs/more-toolkits.md").read_text(), re.MULTILINE)
    (place.home / "config/profiles").mkdir(parents=True)
    (place.home / "config/profiles/team.yaml").write_text(profile)
    (place.work / "delegating.yaml").write_text(script)
    (place.work / "a.txt").write_text("1\n2\n3\n")
    done = run_line(place, line)
    assert (done.returncode, done.stdout) == (0, "They have 3 lines in all.\n"), done.stderr
    assert (
        "▸ delegate  Count the lines of the text files. · profile=reviewer\n  │ ▸ shell cat *.txt | wc -l"
        in done.stderr
    )
    (name,) = re.findall(r"· session (\S+) ·", done.stderr)
    shown = place.run("session", "show", name).stdout
    (file,) = re.findall(r"^Count the lines of the text files\. +(\S+)$", shown, re.MULTILINE)
    assert "There are 3 lines." in Path(file).read_text()
    exported = place.run("session", "export", name).stdout
    assert "There are 3 lines.\n[took 2 steps, 1 call]" in exported
