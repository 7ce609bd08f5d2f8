"""Tests of task files: kickoff message, tasks, variables and errors."""

import re
import resource

import pytest

from goose_like.config.task_file import parse_arguments, read_task_file
from goose_like.core.errors import UsageError

MARKDOWN = """# Port {{ name }}

- not a task: text stands after it

Do it well. See {{ url }}.

- write {{ name }}.py
  with tests
{% for part in parts.split() -%}
- check {{ part }}
{% endfor %}
"""
YAML = """
kickoff_message: |
  Port {{ name }}.
  - not a task
tasks:
  - "write {{ name }}.py"
  - check it
"""


def read_text(tmp_path, text, file_name="plan.md", **arguments):
    file = tmp_path / file_name
    file.write_text(text)
    return read_task_file(str(file), arguments)


def test_markdown(tmp_path):
    plan = read_text(tmp_path, MARKDOWN, name="lexer", url="http://x:80/?a=b", parts="this that")
    assert plan.kickoff_message == (
        "# Port lexer\n\n- not a task: text stands after it\n\nDo it well. See http://x:80/?a=b."
    )
    assert plan.tasks == ("write lexer.py with tests", "check this", "check that")
    assert plan.first_message.endswith("a=b.\n\nThe plan:\n- write lexer.py with tests\n- check this\n- check that")


def test_indented_lines_before_the_tasks_are_no_tasks(tmp_path):
    plan = read_text(tmp_path, "Run\n    make\n- once\n  more\n")
    assert (plan.kickoff_message, plan.tasks) == ("Run\n    make", ("once more",))


def test_tasks_without_a_blank_after_the_dash(tmp_path):
    plan = read_text(tmp_path, "Do it.\n\n---\n\n-Step 1\n-Step 2\n")
    assert (plan.kickoff_message, plan.tasks) == ("Do it.\n\n---", ("Step 1", "Step 2"))


@pytest.mark.parametrize("name", ["plan.yaml", "plan.YML"])
def test_yaml(tmp_path, name):
    plan = read_text(tmp_path, YAML, name, name="a: b\n- c")
    assert plan.kickoff_message == "Port a: b\n- c.\n- not a task"
    assert plan.tasks == ("write a: b - c.py", "check it")


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (["a=1,b:2"], {"a": "1", "b": "2"}),
        (["url=http://x:80/"], {"url": "http://x:80/"}),
        (["url:http://x:80/?q=1,name:y"], {"url": "http://x:80/?q=1", "name": "y"}),
        (["list=a,b", "c=d"], {"list": "a,b", "c": "d"}),
        (["a=http://x,http://y"], {"a": "http://x,http://y"}),
        (["a=", "größe= 3 "], {"a": "", "größe": "3"}),
        ([], {}),
    ],
)
def test_arguments(given, values):
    assert parse_arguments(given) == values


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["abc"], "--args 'abc': 'abc' has no name; write NAME=VALUE, others after a comma"),
        (["=1"], "has no name"),
        (["1a=1"], "has no name"),
        (["a=1,a=2"], "'a' is given twice"),
        (["a=1", "a=2"], "'a' is given twice"),
    ],
)
def test_invalid_arguments(given, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_arguments(given)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("{{ a }}\n- b", {}, "'a' is undefined; none were given: --args NAME=VALUE"),
        ("{{ a }}{{ b }}\n- b", {"b": "1"}, "'a' is undefined; given were b"),
        ("{{ a }}\n- b", {"a": "1", "c": "1"}, "has no variable 'c'; it has a"),
        ("a\n- b", {"c": "1"}, "has no variable 'c'; it has none"),
        ("a\n{% if %}\n- b", {}, "plan.md, line 2: "),
        ("{{ ''.__class__.__mro__ }}\n- b", {}, "is unsafe"),
        ("{{ 1 / 0 }}\n- b", {}, "division by zero"),
        ("{{ " + "[" * 3_000 + "]" * 3_000 + " }}\n- b", {}, "nests too deep"),
        ("only words", {}, "has no tasks: give a list whose lines begin with '-'"),
        ("---\nonly words\n---", {}, "has no tasks"),
        ("- a\n- b", {}, "has no text before its tasks"),
        ("a\n- b\nc", {}, "after its tasks: 'c' is neither one nor stands before them"),
    ],
)
def test_invalid_markdown(tmp_path, text, arguments, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        read_text(tmp_path, text, **arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kickoff_message: [", "plan.yaml, line 1: "),
        ("tasks: [a]", "plan.yaml, line 1: kickoff_message: this key is missing"),
        ("{kickoff_message: a, tasks: [{x: y}]}", "tasks.0: expected text, not {'x': 'y'}"),
        ("{kickoff_message: a, tasks: []}", "has no tasks"),
        ("[]", "the plan: expected a mapping, not []"),
        ("{kickoff_message: a, task: [b]}", "unknown key 'task'; did you mean 'tasks'?"),
    ],
)
def test_invalid_yaml(tmp_path, text, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        read_text(tmp_path, text, "plan.yaml")


def test_a_missing_file(tmp_path):
    with pytest.raises(UsageError, match=r"the plan '.*none.md' can't be read: .*; give a Markdown or YAML file"):
        read_task_file(str(tmp_path / "none.md"), {})


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a' * 3000000000 }}",
        "{{ name * 3000000000 }}",
        "{{ '%3000000000d' % 1 }}",
        "{{ name|center(3000000000) }}",
        "{{ '{:3000000000}'.format(name) }}",
        "{% for i in range(99999) %}{{ name * 1000 }}{% endfor %}",
        "{% set x = namespace(all='aaaaaaaa') %}{% for i in range(40) %}{% set x.all = x.all ~ x.all %}{% endfor %}",
        "{{ [name] * 3000000000 }}",
    ],
)
def test_a_template_cannot_take_all_memory(tmp_path, template):
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(UsageError, match=r"plan\.md: "):
        read_text(tmp_path, f"Do {{{{ name }}}}. {template}\n\n- a\n", name="x")
    assert resource.getrlimit(resource.RLIMIT_AS) == before
