"""`plugin test` and `plugin run` as a person types them: what they print, what they leave, how they end."""

import sys
from importlib.util import find_spec

import pytest

from tests.e2e.command import Place

pytestmark = pytest.mark.skipif(find_spec("ipykernel") is None, reason="the extra `kernel` is not installed")

GREET_YAML = """
name: greet
description: Greets somebody.
parameters:
  - {name: name, type: str, required: true, description: Whom.}
  - {name: times, type: int, required: false, description: How often.}
configurations: {word: Hello}
"""
GREET = """
from taskweaver.plugin import Plugin, register_plugin, test_plugin


@register_plugin
class Greet(Plugin):
    def __call__(self, name, times=1):
        if name == "nobody":
            raise ValueError("nobody is no name")
        print("greeting", name)
        text = " ".join([f"{self.config['word']} {name}!"] * times)
        self.ctx.add_artifact("greeting", "greeting.txt", "txt", text, "as a file")
        return text


@test_plugin(name="hello", description="says hello")
def test_hello(greet):
    assert greet("Ada") == "Hello Ada!"
"""
WRONG = """

@test_plugin(name="bye", description="says good bye")
def test_bye(greet):
    assert greet("Ada") == "Bye Ada!"
"""


@pytest.fixture
def project(place: Place) -> Place:
    """A project beside the folder that the person is in: one plugin is fine, one drifts, one can't be read."""
    plugins = place.home / "project" / "plugins"
    plugins.mkdir(parents=True)
    files = {
        "greet.yaml": GREET_YAML,
        "greet.py": GREET,
        "drifts.yaml": "name: drifts\ndescription: d\nparameters: [{name: b, type: int}]\n",
        "drifts.py": "from taskweaver.plugin import register_plugin\n\n@register_plugin\ndef drifts(a): ...\n",
        "broken.yaml": "name: broken\ndescription: [\n",
        "unloadable.yaml": "name: unloadable\ndescription: d\n",
        "unloadable.py": "import not_installed_here\n\n\nfrom taskweaver.plugin import register_plugin\n"
        "\n\n@register_plugin\ndef unloadable(): ...\n",
    }
    for name, text in files.items():
        (plugins / name).write_text(text)
    return place


def plugin(place: Place, *words: str):
    return place.run("plugin", "--project", str(place.home / "project"), *words)


def test_plugin_run_prints_result_and_saves_files(project):
    done = plugin(project, "run", "greet", "name=Ada", "times=2")
    (file,) = (project.work / "artifacts").iterdir()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"greeting Ada\n'Hello Ada! Hello Ada!'\n[artifact greeting: artifacts/{file.name} (as a file)]\n"
    )
    assert file.read_text() == "Hello Ada! Hello Ada!"
    assert plugin(project, "run", "greet", "name=1", "--output", "there").returncode == 0
    assert [each.read_text() for each in (project.work / "there").iterdir()] == ["Hello 1!"]


def test_plugin_run_takes_a_data_frame_from_a_file(project):
    plugins = project.home / "project" / "plugins"
    (plugins / "count.yaml").write_text(
        "name: count\ndescription: d\nparameters: [{name: df, type: DataFrame, required: true}]\n"
    )
    (plugins / "count.py").write_text(
        "from taskweaver.plugin import register_plugin\n\n@register_plugin\ndef count(df):\n    return len(df.town)\n"
    )
    (project.work / "orders.csv").write_text("town\nKiel\nBonn\n")
    done = plugin(project, "run", "count", "df=@orders.csv")
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    for word, problem in (("@gone.csv", "there is no file 'gone.csv'"), ("@orders", "use one of .csv, .tsv")):
        done = plugin(project, "run", "count", f"df={word}")
        assert (done.returncode, problem in done.stderr) == (2, True), done.stderr


def test_plugins_run_with_a_chosen_interpreter(project):
    python = project.work / "python"
    python.write_text(f'#!/bin/sh\nCHOSEN=Ada exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (project.home / "project" / "plugins" / "greet.py").write_text(
        "import os\n" + GREET.replace('greet("Ada")', 'greet(os.environ["CHOSEN"])')
    )
    done = plugin(project, "test", "greet", "--python", str(python))
    assert (done.returncode, "1 passed, 0 failed" in done.stdout) == (0, True), done.stderr
    done = plugin(project, "run", "greet", "name=Ada", "--python", "gone")
    assert (done.returncode, "gone" in done.stderr) == (1, True), done.stderr


def test_plugin_show_prints_everything(project):
    done = plugin(project, "show", "greet")
    assert done.returncode == 0
    for line in ("def greet(\n", "    name: str,\n", "# configured: word = 'Hello'", "plugins/greet.yaml"):
        assert line in done.stdout
    assert "# off: " in plugin(project, "show", "drifts").stdout
    assert plugin(project, "show", "gret").returncode == 2


def test_failed_plugin_run_exits_with_1(project):
    done = plugin(project, "run", "greet", "name=nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert "plugins/greet.py line 9, in __call__\n" in done.stderr
    assert "ValueError: nobody is no name\n" in done.stderr
    done = plugin(project, "run", "unloadable")
    assert (done.returncode, "not_installed_here" in done.stderr) == (1, True), done.stderr


def test_plugin_test_prints_each_test(project):
    done = plugin(project, "test", "greet")
    assert (done.returncode, done.stdout) == (0, "✓ hello: says hello\n\n1 passed, 0 failed\n"), done.stderr
    with (project.home / "project" / "plugins" / "greet.py").open("a") as file:
        file.write(WRONG)
    done = plugin(project, "test", "greet")
    assert done.returncode == 1
    assert done.stdout.startswith("✓ hello: says hello\n✗ bye: says good bye\n")
    assert 'assert greet("Ada") == "Bye Ada!"' in done.stdout
    assert done.stdout.endswith("\n1 passed, 1 failed\n")
    assert not (project.work / "artifacts").exists()
    done = plugin(project, "test", "unloadable")
    assert (done.returncode, "unloadable can't be loaded:" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run greet", "'name' is missing; greet takes name=... times=..."),
        ("run greet Ada", "write arguments as NAME=VALUE, not 'Ada'; greet takes name=... times=..."),
        ("run greet nam=Ada", "greet takes no 'nam'; did you mean 'name'?"),
        ("run greet name=Ada name=Bo", "'name' is given twice; give it once"),
        ("run greet name=Ada times=two", "times: expected a valid integer"),
        ("run gret", "did you mean 'greet'?"),
        ("test gret", "did you mean 'greet'?"),
        ("run drifts a=1", "the plugin 'drifts' is off: drifts (drifts.py:4) takes no parameter 'b'"),
        ("test broken", "broken.yaml:2: this is not valid YAML"),
        ("run", "Missing argument 'name'"),
        ("run greet name=Ada --sandbox tight", "not one of 'read-only'"),
    ],
)
def test_wrong_arguments_are_usage_errors(project, words, expected):
    done = plugin(project, *words.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert list(project.work.iterdir()) == []


def test_missing_libraries_are_named(project):
    hide = "import sys\nsys.modules[{!r}] = None\n"
    (project.home / "sitecustomize.py").write_text(hide.format("jupyter_client"))
    env = {"PYTHONPATH": str(project.home)}
    script = project.script("hi")
    plugin_command = ("plugin", "--project", str(project.home / "project"))
    for words in (
        (*plugin_command, "test", "greet"),
        (*plugin_command, "run", "greet", "name=Ada"),
        ("run", "--profile", "analyst", "--model", script, "hi"),
    ):
        done = project.run(*words, env=env)
        assert (done.returncode, "pip install 'goose-like[kernel]'" in done.stderr) == (2, True), done.stderr
        assert "Traceback" not in done.stderr
    (project.home / "sitecustomize.py").write_text(hide.format("pandas"))
    done = project.run("run", "--profile", "analyst", "--model", script, "hi", env=env)
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert "pip install 'goose-like[analyst]'" in done.stderr
