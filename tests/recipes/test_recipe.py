"""Recipes: all layouts of files, parameters of all types, and values that never become YAML."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.errors import UsageError
from goose_like.recipes.recipe import load_recipe, write_values

HEAD = "title: T\ndescription: d\n"


@pytest.fixture
def load(tmp_path, home):
    def write(text, name="r.yaml", **others):
        for other, content in others.items():
            (tmp_path / f"{other}.yaml").write_text(content)
        (tmp_path / name).write_text(text)
        return load_recipe(tmp_path / name)

    return write


def declare(**types):
    lines = ["parameters:"]
    for key, more in types.items():
        lines.append(f"  - {{key: {key}, description: d, {more}}}")
    return "\n".join(lines) + "\n"


def test_json_yaml_and_the_desktop_layout_give_the_same(load):
    content = {
        "title": "T",
        "description": "d",
        "prompt": "a\tb 🦆 {{ x }}",
        "parameters": [{"key": "x"}],
        "retry": None,
    }
    wrapped = {"name": "N", "recipe": content, "isGlobal": True}
    texts = [json.dumps(content, indent="\t"), json.dumps(wrapped), json.dumps(content).replace('": ', '":')]
    for text in texts:
        filled = load(text, "r.json").fill({"x": "1"})
        assert filled.message == "a\tb 🦆 1"
    assert load(json.dumps(content, ensure_ascii=False)).fill({"x": "1"}).message == "a\tb 🦆 1"


def test_a_recipe_without_a_prompt_sends_its_instructions(load):
    filled = load(HEAD + "instructions: do it").fill({})
    assert (filled.message, filled.instructions) == ("do it", "")
    filled = load(HEAD + "instructions: be kind\nprompt: do it").fill({})
    assert (filled.message, filled.instructions) == ("do it", "be kind")


@pytest.mark.parametrize(
    ("more", "value", "shown"),
    [
        ("input_type: number", "2.5", "2.5"),
        ("input_type: boolean", "True", "true"),
        ("input_type: date", "2026-11-28", "2026-11-28"),
        ("input_type: select, options: [a, 2]", "2", "2"),
        ("input_type: object", '{"a": [1]}', '{"a": [1]}'),
        ("input_type: array", '["x"]', '["x"]'),
        ("requirement: optional", None, ""),
        ("requirement: optional, default: 15", None, "15"),
        ("input_type: boolean, requirement: optional, default: false", None, "false"),
        ("requirement: user_prompt", None, "{{ x }}"),
    ],
)
def test_values_of_each_type(load, more, value, shown):
    filled = load(HEAD + declare(x=more) + "prompt: '[{{ x }}]'").fill(write_values({"x": value}))
    assert filled.message == f"[{shown}]"
    assert bool(filled.warnings) == (shown == "{{ x }}")


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ("input_type: number", "two"),
        ("input_type: boolean", "maybe"),
        ("input_type: select, options: [a, b]", "c"),
        ("input_type: object", "[]"),
        ("input_type: array", "{"),
        ("input_type: file", "/nowhere/x"),
    ],
)
def test_wrong_values_are_named(load, more, value):
    with pytest.raises(UsageError, match=r"^x: "):
        load(HEAD + declare(x=more) + "prompt: '{{ x }}'").fill({"x": value})


def test_a_file_gives_its_text(load, tmp_path):
    (tmp_path / "notes.txt").write_text("one\ntwo: {{ x }}\n")
    recipe = load(HEAD + declare(x="input_type: file") + "prompt: |\n  Read: {{ x }}\n")
    assert recipe.fill({"x": str(tmp_path / "notes.txt")}).message == "Read: one\ntwo: {{ x }}"


def test_missing_and_unknown_values_are_named(load):
    recipe = load(HEAD + declare(aa="requirement: required", bb="requirement: required") + "prompt: '{{ aa }}{{ bb }}'")
    with pytest.raises(UsageError, match=r"(?s)--param aa=.*--param bb="):
        recipe.fill({})
    with pytest.raises(UsageError, match="did you mean 'aa'"):
        recipe.fill({"a": "1"})
    assert recipe.fill({}, keeps_missing=True).message == "{{ aa }}{{ bb }}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEAD, "line 1: the recipe: write `prompt` or `instructions`: there is nothing to send$"),
        ("title: T\nprompt: x", "line 1: description"),
        (HEAD + "prompt: {{ nme }}\n" + declare(name=""), "line 3: no parameter 'nme'; did you mean 'name'"),
        (HEAD + "prompt: a\nextensions:\n  - {name: a}", "line 5: extensions.0.type"),
        (HEAD + "prompt: a\nextensions:\n  - {name: a, type: stdo}", "line 5: extensions.0.type"),
        (HEAD + "prompt: [a", "line 3: .*YAML"),
        (HEAD + "prompt: a\nprompt: b", "line 4: "),
        (HEAD + "prompt: '{% foo %}'", "line 3: .*foo"),
        (
            HEAD + "prompt: a\nretry: {max_retries: 1, checks: []}",
            "line 4: retry.checks: expected at least 1 item, not ",
        ),
        (
            HEAD + declare(x="input_type: select") + "prompt: '{{ x }}'",
            "line 4: parameters.0: `select` needs",
        ),
        (HEAD + declare(x="input_type: file, default: /etc/passwd") + "prompt: '{{ x }}'", "line 4: .*no default"),
        (HEAD + "prompt: a\nparameters:\n- {key: x}\n- {key: x}", "'x' is there twice"),
    ],
)
def test_a_wrong_recipe_is_refused_with_its_line(load, text, problem):
    with pytest.raises(UsageError, match=problem):
        load(text).fill({}, keeps_missing=True)


def test_a_child_fills_the_blocks_of_its_parent(load):
    parent = HEAD + "prompt: |\n  {% block text %}\n  old {{ x }}\n  {% endblock %}\n" + declare(x="")
    recipe = load('{% extends "parent.yaml" %}\n{% block text %}\n  new {{ x }}\n{% endblock %}', parent=parent)
    assert sorted(recipe.texts) == ["parent.yaml", "r.yaml"]
    assert recipe.fill({"x": "1"}).message == "new 1"


@pytest.mark.parametrize("name", ["../secret.yaml", "/etc/passwd", ".ssh/id", "linked/secret.yaml", "missing.yaml"])
def test_a_template_takes_only_files_of_its_folder(tmp_path, home, name):
    folder = tmp_path / "a"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh/id").write_text("key")
    (tmp_path / "secret.yaml").write_text("key")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "r.yaml").write_text(f'{HEAD}prompt: |\n  {{% include "{name}" %}}')
    with pytest.raises(UsageError):
        load_recipe(folder / "r.yaml")


def test_the_folder_of_the_recipe_is_a_parameter(load, tmp_path):
    recipe = load(HEAD + "prompt: see {{ recipe_dir }}/style.md")
    assert recipe.fill({}).message == f"see {tmp_path}/style.md"
    assert recipe.named_folder == tmp_path
    assert load(HEAD + "prompt: see").named_folder is None


def test_conditions_choose_parts_of_the_file(load):
    text = HEAD + declare(db="") + "prompt: go\n{% if db == 'pg' %}\nsettings: {goose_model: {{ db }} }\n{% endif %}\n"
    recipe = load(text)
    assert recipe.fill({"db": "pg"}).content.settings.goose_model == "pg"
    assert recipe.fill({"db": "x"}).content.settings.goose_model == ""


@given(st.text())
def test_a_value_never_becomes_yaml(tmp_path_factory, value):
    file = tmp_path_factory.mktemp("r") / "r.yaml"
    keys = HEAD + declare(x="")
    file.write_text(
        keys + "settings: {max_turns: 3}\nprompt: |\n  a {{ x }}\ninstructions: b {{ x }}\nactivities: [{{ x }}]"
    )
    filled = load_recipe(file).fill({"x": value})
    shown = value.replace("\ue000", "").replace("\ue001", "")
    assert filled.content.model_fields_set == {
        *("title", "description", "parameters", "settings", "prompt", "instructions", "activities")
    }
    assert filled.content.prompt == f"a {shown}\n"
    assert filled.content.instructions == f"b {shown}"


def test_a_number_in_the_file_stays_one(load):
    text = HEAD + declare(n="input_type: number") + "prompt: go\nsettings: {max_turns: {{ n }} }\n"
    assert load(text).fill({"n": "7"}).content.settings.max_turns == 7
    assert load(text).fill({}, keeps_missing=True).message == "go"


def test_unknown_keys_are_named(load):
    (warning,) = load(HEAD + "prompt: a\nauthor: {contact: me}\npromts: b").warnings
    assert "line 5: the key 'promts' has no effect" in warning


def test_files_that_include_each_other_too_often_are_refused(load, tmp_path):
    for number in range(10):
        (tmp_path / f"f{number}.md").write_text(f"{{% include 'f{number + 1}.md' %}}" * 10)
    (tmp_path / "f10.md").write_text("")
    with pytest.raises(UsageError, match=r"r\.yaml: its files include each other more than 300 times"):
        load(HEAD + "prompt: |\n  a {% include 'f0.md' %}")
    with pytest.raises(UsageError, match="more than 300 times"):
        load(HEAD + "prompt: |\n  a {% if false %}{% include 'r.yaml' %}{% endif %}")


def test_marks_that_an_author_writes_with_escapes_are_refused(load):
    with pytest.raises(UsageError, match=r"r\.yaml: it has the characters U\+E000"):
        load(HEAD + 'prompt: "\\ue0007\\ue001"')
