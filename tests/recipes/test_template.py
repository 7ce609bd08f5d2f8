"""Templates of recipes: what they fill in, and what a hostile one cannot do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.errors import UsageError
from goose_like.recipes.template import fill_template, find_templates, find_variables


def fill(text, texts=None, **values):
    texts = {"r": text, **(texts or {})}
    for name, each in texts.items():
        find_templates(name, each)
    filling = fill_template("r", texts, values)
    return filling.resolve(filling.text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ x }} {{ x | upper }}", "a<b A<B"),
        ("{% if x == 'a<b' %}yes{% else %}no{% endif %}", "yes"),
        ("{% for each in items %}{{ each }};{% endfor %}", "1;2;"),
        ("{{ items }} {{ items | join('-') }} {{ o.k }}", "[1, 2] 1-2 v"),
        ("{{'{{x}}'}} {{ 'a<b' }}", "{{x}} a<b"),
        ("{{your name}} and {{ x }}", "{{your name}} and a<b"),
        ("{{ y }} {{ y | default('d') }}", "{{ y }} d"),
        ("{% if y | int > 3 or y < 4 %}a{% else %}b{% endif %}", "b"),
        ("{{ x | safe }}{{ x | e }}{{ x | tojson }}", 'a<ba<b"a<b"'),
        ("{{ x | indent(2) }}{{ x | replace('<', '&') }}", "a<ba&b"),
        ("{# gone #}{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
    ],
)
def test_a_template_is_filled_in_as_in_goose(text, expected):
    assert fill(text, x="a<b", items=[1, 2], o={"k": "v"}) == expected


def test_a_parent_has_blocks():
    parent = "<{% block a %}old {{ x }}{% endblock %}>"
    child = '{% extends "p" %}{% block a %}{{ super() }} & new{% endblock %}'
    assert fill(child, {"p": parent}, x="1") == "<old 1 & new>"


@pytest.mark.parametrize(
    "text",
    [
        "{{ x.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ lipsum(n=100000) }}",
        "{{ range(99999999) | list }}",
        "{{ 'a' * 999999999 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ '%999999999d' % 1 }}",
        "{{ 'a' | center(999999999) }}",
        "{{ '{:>999999999}'.format('a') }}",
        "{{ ['a'] | map('center', 999999999) }}",
        "{% for a in x %}{% for b in x %}{% endfor %}{% endfor %}",
        "{% set a = x %}{% set a = a ~ a %}",
        "{% set a = [x, x] | join %}",
        "{% set a %}{{ x }}{{ x }}{% endset %}",
        "{% macro m() %}{% endmacro %}",
        "{% import 'x' as y %}",
        "{% include x %}",
        "{% extends x %}",
        "{% block a %}{{ super() }}{{ super() }}{% endblock %}",
        "{% for a in x %}{% include 'y' %}{% endfor %}",
        "\ue0000\ue001",
        "{{ x",
        "{{" * 50_000,
        "{{ x }}" * 3_000,
        "{{ " + "(" * 500 + "x" + ")" * 500 + " }}",
    ],
)
def test_a_hostile_template_is_refused_before_it_runs(text):
    with pytest.raises(UsageError, match=r"r.*: "):
        fill(text, {"y": ""}, x="xxxx")


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in x %}{{ super() }}{% endfor %}",
        "{% for a in [super()] %}{{ a }}{{ a }}{% endfor %}",
        "{% set a = super() %}{{ a }}{{ a }}",
        "{{ super()|replace('0', '9') }}",
        "{{ 'aaaaaaaa'|replace('a', super()) }}",
    ],
)
def test_the_text_of_a_parent_is_there_once_and_unchanged(text):
    with pytest.raises(UsageError, match=r"r, line 1: .*(stands alone|in a loop)"):
        find_templates("r", f"{{% block a %}}{text}{{% endblock %}}")


@pytest.mark.parametrize(
    "text",
    [
        "{% set a='\"' %}" + "{% set a = a|tojson %}" * 40,
        "{{ [" + "x," * 50 + "]|join }}",
        "{% for each in x %}{{ x + x }}{% endfor %}",
    ],
)
def test_a_template_that_grows_is_refused(text):
    with pytest.raises(UsageError, match=r"r: .* characters"):
        fill(text, x="x" * 30_000)


@pytest.mark.parametrize("text", [r"{{ '\ue0000\ue001' }}", r"{{ '\ue0001\ue001' }}{{ x }}", "{{ x + x }}\\ue000"])
def test_a_mark_in_a_constant_is_removed(text):
    filling = fill_template("r", {"r": text}, {"x": "v"})
    assert "\ue000" not in filling.resolve(filling.text)


def test_an_unknown_mark_is_refused():
    filling = fill_template("r", {"r": "{{ x }}"}, {"x": "v"})
    for text in ("\ue0001\ue001", filling.text * 2):
        with pytest.raises(UsageError, match=r"U\+E000"):
            filling.resolve(text)


@pytest.mark.parametrize(
    "text", ["{{ x|truncate(1) }}", "{{ x|replace(old='a', old='b', new='c') }}", "{{ x|sort }}{{ [1, x]|sort }}"]
)
def test_an_error_that_nobody_foresaw_is_one_of_the_recipe(text):
    with pytest.raises(UsageError, match="r: "):
        fill(text, x="abc")


@pytest.mark.parametrize("text", ["{% block a %}{% endblock %}{% block a %}{% endblock %}", "{{ x is nothing }}"])
def test_a_file_that_is_not_filled_in_has_no_other_errors(text):
    with pytest.raises(UsageError, match="r, line 1: "):
        find_variables("r", text)


@pytest.mark.parametrize("text", ["{{ 'ab' | replace('', big) }}", "{{ items | join(big) }}", "{{ big }}" * 5])
def test_a_long_text_is_refused(text):
    big = "x" * 600_000
    if text.startswith("{{ big"):
        assert len(fill(text, big=big)) == 5 * len(big)  # the values of a person may be long
        return
    with pytest.raises(UsageError, match="characters"):
        fill(text, big=big, items=[1, 2, 3, 4])


def test_a_template_that_includes_itself_ends():
    with pytest.raises(UsageError, match="recursion"):
        fill("{% include 'r' %}{% include 'r' %}")


def test_variables_have_their_first_line():
    text = "a\n{{ x }} {{ y.z }}\n{% set w = 1 %}{{ w }} {{ x }}\n{% if q is defined %}{% endif %}"
    assert find_variables("r", text) == {"x": 2, "y": 2, "q": 4}


@given(st.text())
def test_a_value_stays_whole(value):
    expected = value.replace("\ue000", "").replace("\ue001", "")
    assert fill("[{{ x }}]", x=value) == f"[{expected}]"
