"""Trust in recipes: bound to their texts, and to the values that change what they bring."""

import pytest

from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer
from goose_like.core.notifier import Recorder
from goose_like.recipes.recipe import load_recipe
from goose_like.recipes.trust import find_risky_values, list_effects, settle_recipe_trust, trust_recipe

HEAD = "title: T\ndescription: d\nprompt: go {{ x }}\nparameters: [{key: x, requirement: optional}]\n"
CHECK = "retry: {max_retries: 1, checks: [{type: shell, command: 'test -f {{ x }}'}]}\n"
SERVER = "extensions: [{type: streamable_http, name: s, uri: 'https://{{ x }}/mcp'}]\n"
CODE = """extensions: [{type: inline_python, name: c, env_keys: [KEY], code: "import os\\nX = '{{ x }}'"}]\n"""
ALWAYS = Answer(choice="allow_always", by="person")
ONCE = Answer(choice="allow", by="person")
NO = Answer(choice="deny", by="person")


@pytest.fixture
def fill(tmp_path, home):
    def write(more="", **values):
        (tmp_path / "r.yaml").write_text(HEAD + more)
        return load_recipe(tmp_path / "r.yaml").fill(values)

    return write


async def ask(filled, answer=Answer(), **how):
    recorder = Recorder(answer)
    await settle_recipe_trust(filled, recorder, **how)
    return [question.text for question in recorder.questions]


async def test_an_answer_holds_for_the_same_texts(fill, tmp_path):
    assert len(await ask(fill(), ONCE)) == 1
    assert len(await ask(fill(), ALWAYS)) == 1
    assert await ask(fill(x="other words; here")) == []
    with pytest.raises(DeniedError, match="nobody has agreed"):
        await ask(fill(CHECK))
    assert await ask(fill(CHECK), is_trusted_now=True) == []
    with pytest.raises(DeniedError):
        await ask(fill(CHECK), NO)
    with pytest.raises(DeniedError, match="you refused"):
        await ask(fill(CHECK), ALWAYS)


async def test_a_changed_sub_recipe_or_parent_needs_another_answer(fill, tmp_path):
    sub = tmp_path / "sub.yaml"
    sub.write_text(HEAD)
    more = "sub_recipes: [{name: s, path: sub.yaml}]\n"
    (question,) = await ask(fill(more), ALWAYS)
    assert "lets the model run the recipe s (sub.yaml)" in question
    assert await ask(fill(more)) == []
    sub.write_text(HEAD + CHECK)
    (question,) = await ask(fill(more), ONCE)
    assert "s runs the check: test -f" in question


def test_the_question_shows_everything_that_a_recipe_brings(fill):
    more = f"""
settings: {{goose_provider: openai, goose_model: gpt}}
extensions:
  - {{type: stdio, name: a, cmd: sh, args: [-c, "id; id"], env_keys: [TOKEN]}}
  - {{type: streamable_http, name: b, uri: "https://host.example/mcp", headers: {{Authorization: "Bearer ${{KEY}}"}}}}
  - {{type: inline_python, name: c, code: "import os\\nprint()"}}
instructions: see {{{{ recipe_dir }}}}
{CHECK}"""
    effects = "\n".join(effect.text for effect in list_effects(fill(more, x="y")))
    assert "model openai:gpt" in effects
    assert "starts the server a: sh -c 'id; id' (with TOKEN=${TOKEN})" in effects
    assert "server b at host.example" in effects
    assert "Authorization=Bearer ${KEY}" in effects
    assert "server c: " in effects
    assert "runs the check: test -f y" in effects
    assert "lets commands read" in effects


@pytest.mark.parametrize(
    ("more", "value", "is_risky"),
    [
        ("", "a; b", False),
        (CHECK, "src/a-b.py", False),
        (CHECK, "", False),
        (CHECK, "a b", True),
        (CHECK, "-rf", True),
        (CHECK, "$(id)", True),
        (CHECK, "a\nb", True),
        (SERVER, "evil.example", True),
        (CODE, "a", True),
        (CODE, "';import os;print()#", True),
        ("settings: {goose_model: '{{ x }}'}\n", "gpt", True),
        ("{% if x == 'a' %}" + CHECK + "{% endif %}", "a", False),
    ],
)
def test_values_that_change_more_than_the_text_are_risky(fill, more, value, is_risky):
    assert find_risky_values(fill(more, x=value)) == ({"x": value} if is_risky else {})


def test_a_wrong_address_is_shown_whole(fill):
    more = SERVER.replace("https://{{ x }}/mcp", "http://[")
    (effect,) = list_effects(fill(more))
    assert effect.text == "sends calls to the server s at http://[: http://["


async def test_a_risky_value_needs_an_answer_of_its_own(fill):
    assert await ask(fill(CHECK, x="plain"), ALWAYS) != []
    assert await ask(fill(CHECK, x="other")) == []
    (question,) = await ask(fill(CHECK, x="a; id"), ALWAYS)
    assert "Values become a part of that: x." in question
    assert await ask(fill(CHECK, x="a; id")) == []
    with pytest.raises(DeniedError):
        await ask(fill(CHECK, x="b; id"))


async def test_a_recipe_that_goose_like_wrote_needs_no_answer(fill):
    trust_recipe(fill())
    assert await ask(fill()) == []
