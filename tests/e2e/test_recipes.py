"""Recipes on the command line, as the page shows them: missing values, the question, checks, and a new recipe."""

import json

from tests.e2e.command import Place
from tests.e2e.pages import find_blocks
from tests.workspace.workspace_harness import needs_sandbox

WRITE = {"calls": [{"tool": "write_file", "arguments": {"path": "NOTES.md", "content": "2.1.0\n"}}]}


def write_recipe(place: Place) -> None:
    """Write the recipe of the page."""
    text = find_blocks("docs/recipes.md", "yaml")[0]
    name = text.partition("\n")[0].removeprefix("# ")
    file = place.work / name
    file.parent.mkdir(parents=True)
    file.write_text(text)


@needs_sandbox
def test_the_recipe_of_the_page_asks_once_and_passes_its_check(place: Place, open_screen) -> None:
    write_recipe(place)
    words = ("recipe", "run", "release-notes", "--model", place.script(WRITE, "done"))
    done = place.run(*words)
    assert (done.returncode, "--param version=" in done.stderr) == (2, True), done.stderr
    done = place.run(*words, "--param", "version=2.1.0", "--output-format", "json")
    assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (6, 6)
    assert "nobody has agreed to the recipe" in done.stderr
    terminal = open_screen(*words)
    terminal.see("version:")
    terminal.type("2.1.0\n")
    terminal.see("runs the check: grep -q 2.1.0 NOTES.md")
    terminal.type("a\n")
    terminal.see("passed after the last change")
    assert terminal.wait_exit() == 0
    assert place.list_messages() == ["Write the notes of version 2.1.0 into NOTES.md."]
    model = place.script("done", "no")
    done = place.run("recipe", "run", "release-notes", "--param=version=9", "--model", model, "--max-steps", "1")
    assert done.returncode == 8, done.stderr


def test_a_session_becomes_a_recipe(place: Place) -> None:
    model = place.script("fine", "fine")
    place.run("session", "start", "--model", model, input="Sort {{ files }}\nAnd more\n/recipe sorting\n/recipe\n")
    done = place.run("recipe", "run", "sorting", "--model", place.script({"text": "ok", "expect": "^Sort {{ files }}"}))
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert place.list_messages() == ["Sort {{ files }}\n\nAlso:\n- And more"]
    assert "sorting" in place.run("recipe", "list").stdout
    shown = place.run("recipe", "explain", "sorting", "--model", model).stdout
    assert "message:\n  Sort {{ files }}\n" in shown
    assert f"model {model}" in shown


def test_a_wrong_recipe_is_named_with_its_line(place: Place) -> None:
    (place.work / "r.yaml").write_text("title: T\ndescription: d\nprompt: '{{ nmae }}'\nparameters: [{key: name}]\n")
    for action in ("check", "show", "explain", "run"):
        done = place.run("recipe", action, "r.yaml")
        assert done.returncode == 2
        assert "r.yaml, line 3: no parameter 'nmae'; did you mean 'name'" in done.stderr
