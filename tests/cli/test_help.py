"""The pages of `help`: each command has one, and what their tables say is so."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import goose_like_toolkits
import pytest
from typer.main import get_command

import goose_like
from goose_like.cli import app as app_module
from goose_like.cli.app import add_groups, app, run
from goose_like.cli.help import find_docs_folder, find_page, list_topics, list_topics_below
from goose_like.config.entry_points import BUILTIN_ENTRY_POINTS
from goose_like.config.profile import build_profiles_schema
from goose_like.core import errors
from goose_like.core.errors import UsageError
from goose_like.core.events import Event

DOCS = find_docs_folder()

add_groups()
COMMANDS = [[name] for name in get_command(app).commands] + [
    [group, name] for group, below in get_command(app).commands.items() for name in getattr(below, "commands", ())
]


@pytest.mark.parametrize("words", [[], *COMMANDS], ids=" ".join)
def test_each_command_has_a_page(words):
    text = find_page(app, words)
    assert text.startswith(f"Usage: {' '.join(['goose-like', *words])} [OPTIONS]")
    for section in ("Options:", "Exit codes:", "Files:", "Environment:", "See also:"):
        assert f"\n{section}\n" in text
    page = text.partition("\n# ")[0]  # a topic of the same name can follow, `help boss`
    assert max(map(len, page.splitlines())) <= 100


@pytest.mark.parametrize("name", sorted(path.stem for path in DOCS.glob("*.md")))
def test_each_page_of_the_docs_is_a_topic(name):
    assert name in list_topics()
    assert name in list_topics_below(app, [])
    shown, file = find_page(app, [name]), (DOCS / f"{name}.md").read_text()
    assert re.findall("^#.*", shown, re.MULTILINE) == re.findall("^#.*", file, re.MULTILINE)
    assert "](" not in shown
    assert set(re.findall(r"\]\(([\w-]+)[.]md", file)) <= set(re.findall(r"goose-like help ([\w-]+)", shown))


def test_the_reference_names_each_command_key_and_event():
    commands = find_page(app, ["all-commands"])
    for words in COMMANDS:
        assert f"\n## {' '.join(['goose-like', *words])}\n" in commands
    keys = find_page(app, ["profile-keys"])
    for name, definition in build_profiles_schema()["$defs"].items():
        assert f"\n## {name}\n" in keys
        for key in definition["properties"]:
            assert f"\n| `{key}` |" in keys
    events = find_page(app, ["events"])
    for event in get_args(Event):
        assert f"\n## {event.__name__}\n" in events
        assert f"| `{event.model_fields['type'].default}` |" in events
    for page in (keys, events):
        assert "](" not in page


@pytest.mark.parametrize("word", ["shells", "delegate", "trust-free"])
def test_other_words_are_looked_for_in_headings(word):
    if word == "shells":
        assert "## Completion in shells" in find_page(app, [word])
    elif word == "delegate":
        assert find_page(app, [word]).startswith("## delegate")
    else:
        with pytest.raises(UsageError, match="no help for 'trust-free'"):
            find_page(app, [word])


@pytest.mark.parametrize(
    ("words", "report"),
    [
        (["profil"], r"no help for 'profil'; did you mean 'profiles?'\?"),
        (["profile", "chek"], r"no help for 'profile chek'; did you mean 'check'\?"),
        (["run", "fast"], "no help for 'run fast'; there are none"),
        (["nothing"], r"no help for 'nothing'; there are: "),
    ],
)
def test_what_there_is_no_page_for(words, report):
    with pytest.raises(UsageError, match=report):
        find_page(app, words)


def rows(name: str) -> list[str]:
    return re.findall(r"^\| `([^|]+)` \|", (DOCS / f"{name}.md").read_text(), re.MULTILINE)


def test_the_exit_codes_are_those_of_the_code():
    """The page lists the codes of all errors, and exactly the codes in the help of `run`."""
    kinds = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)}
    listed = {int(row) for row in rows("exit-codes")}
    assert {kind.exit_code for kind in kinds} <= listed
    _, _, sentence = run.__doc__.partition("Exit codes: ")
    assert listed == {int(code) for code in re.findall(r"\b\d+\b", sentence)}


def test_the_environment_is_what_the_code_reads():
    package = Path(goose_like.__file__).parent
    files = [*package.rglob("*.py"), *Path(goose_like_toolkits.__file__).parent.rglob("*.py")]
    texts = [path.read_text() for path in [*files, package / "providers/presets.yaml"]]
    read = {name for text in texts for name in re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', text)}
    named = {name for row in rows("environment") for name in re.findall(r"[A-Z_]{3,}", row)}
    assert read - named == {"PATH", "CARGO_HOME", "GIT_CONFIG_GLOBAL"}  # variables of other programs
    assert sorted(name for name in named - {"PAGER"} if not any(name in text for text in texts)) == []


def test_a_command_and_a_topic_of_one_name_share_a_page():
    text = find_page(app, ["boss"])
    assert text.startswith("Usage: goose-like boss [OPTIONS]")
    assert "\n# Long goals" in text


def test_each_built_in_group_has_its_help_without_an_import():
    assert app_module._GROUPS.keys() == BUILTIN_ENTRY_POINTS["goose_like.cli"].keys()
    program = """
import sys
from goose_like.cli.app import run_command_line
sys.argv[1:] = ["--help"]
run_command_line()
print([name for name in sys.modules if name.endswith((".groups", ".session", ".cli.app", ".boss.cli"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "['goose_like.cli.app']"
    assert {line.split()[0] for line in lines if line.startswith("  ")} > app_module._GROUPS.keys()
