"""Recipes in the process of a program: the same turn as on the command line, with checks and a form of the answer."""

import json

import pytest

from goose_like.config.yaml_reader import format_document
from goose_like.launch.recipe_run import make_recipe_agent, run_recipe
from goose_like.recipes.recipe import load_recipe
from tests.workspace.workspace_harness import needs_sandbox

RECIPE = """
title: T
description: d
instructions: Be kind.
prompt: write {{ name }} and @notes.txt
parameters: [{key: name}]
extensions: [{type: builtin, name: developer}]
settings: {max_turns: 9}
retry:
  max_retries: 1
  checks: [{type: shell, command: "test -f {{ name }}"}, {type: shell, command: "true"}]
  on_failure: "touch failed; echo fresh start"
response: {json_schema: {type: object, required: [file]}}
"""
WRITE = {"calls": [{"tool": "write_file", "arguments": {"path": "a.md", "content": "x"}}]}
ANSWER = json.dumps({"file": "a.md"})


@pytest.fixture
def run(tmp_path, home):
    async def start(*steps, **options):
        (tmp_path / "r.yaml").write_text(RECIPE)
        (tmp_path / "script.yaml").write_text(format_document(list(steps)))
        work = tmp_path / "work"
        work.mkdir()
        (work / "notes.txt").write_text("not asked for")
        filled = load_recipe(tmp_path / "r.yaml").fill({"name": "a.md"})
        agent = make_recipe_agent(filled, cwd=work, model=f"scripted:{tmp_path}/script.yaml", **options)
        async with agent:
            done = await run_recipe(filled, agent)
            exchange = agent.conversation.exchange
        return done, exchange, work

    return start


@needs_sandbox
async def test_a_failed_check_goes_back_to_the_model(run):
    retry = {"expect": "(?s)test -f a.md.*failed with exit code 1.*Then `touch failed.*fresh start", **WRITE}
    done, exchange, work = await run({"text": ANSWER, "expect": "^write a.md and @notes.txt"}, retry, ANSWER)
    assert (done.exit_code, done.structured) == (0, {"file": "a.md"})
    assert (work / "failed").exists()
    assert exchange.budget.limits.steps == 9
    assert exchange.system.endswith("Be kind.")
    assert "not asked for" not in exchange.history.messages[0].text


@needs_sandbox
async def test_a_recipe_whose_checks_fail_has_failed(run):
    done, *_ = await run(ANSWER, ANSWER)
    assert (done.exit_code, done.reason) == (8, "stop")
    assert "test -f a.md" in done.detail
