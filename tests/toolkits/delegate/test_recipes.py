"""Sub recipes: tools of the model, whose helpers get the values, tools and form of answer of their recipe."""

from pathlib import Path
from typing import Any

import pytest

from goose_like.config.profile import Limits
from goose_like.config.yaml_reader import format_document
from goose_like.launch.agent import RunResult
from goose_like.launch.recipe_run import make_recipe_agent, run_recipe
from goose_like.recipes.recipe import load_recipe
from tests.workspace.workspace_harness import needs_sandbox

PARENT = """
title: P
description: d
prompt: look around
extensions: []
sub_recipes:
  - {name: find files, path: ./subs/find.yaml, values: {depth: "{{ deep }}", style: short}}
parameters: [{key: deep}]
"""
CHILD = """
title: C
description: Finds files.
instructions: You find in {{ style }}.
prompt: find {{ what }} to depth {{ depth }}
parameters:
  - {key: what, description: a pattern}
  - {key: depth, input_type: number}
  - {key: style}
  - {key: notes, input_type: file, requirement: optional}
extensions: [{type: builtin, name: developer}]
settings: {max_turns: 3}
retry: {max_retries: 1, checks: [{type: shell, command: "echo {{ what }} {{ notes }}"}]}
response: {json_schema: {type: object, required: [files]}}
"""


def use(**arguments: Any) -> dict[str, Any]:
    return {"calls": [{"tool": "recipe_find_files", "arguments": arguments}]}


class Work:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[Any] = []

    async def run(self, *steps: Any, **options: Any) -> tuple[RunResult, Any]:
        (self.folder / "script.yaml").write_text(format_document(list(steps)))
        filled = load_recipe(self.folder / "p.yaml").fill({"deep": "2"})
        (self.folder / "subs/find.yaml").write_text("changed after the answer")
        work = self.folder / "work"
        work.mkdir()
        agent = make_recipe_agent(filled, cwd=work, model=f"scripted:{self.folder}/script.yaml", **options)
        async with agent:
            done = await run_recipe(filled, agent)
            return done, agent.conversation.exchange


@pytest.fixture
def work(tmp_path: Path, home: Path) -> Work:
    (tmp_path / "subs").mkdir()
    (tmp_path / "subs/find.yaml").write_text(CHILD)
    (tmp_path / "p.yaml").write_text(PARENT)
    return Work(tmp_path)


def list_results(exchange: Any) -> list[str]:
    return [result.output for message in exchange.history.messages for result in message.tool_results]


@needs_sandbox
async def test_a_helper_works_on_a_sub_recipe(work: Work) -> None:
    child = {"text": '{"files": []}', "expect": "^find a.py to depth 2.*JSON"}
    done, exchange = await work.run(use(what="a.py"), child, {"text": "done", "expect": "files"})
    assert (done.exit_code, done.result, done.steps) == (0, "done", 1 + 1)
    tool = exchange.tools["recipe_find_files"]
    assert sorted(tool.spec.schema["properties"]) == ["notes", "what"]
    assert tool.spec.schema["required"] == ["what"]
    assert list_results(exchange)[0].startswith('{"files": []}')
    assert sorted(exchange.tools) == ["delegate", "recipe_find_files"]


@needs_sandbox
async def test_it_draws_from_the_budget_of_the_run(work: Work) -> None:
    steps = [use(what="a.py"), '{"files": []}', use(what="b.py"), '{"files": []}', "done"]
    done, _ = await work.run(*steps, limits=Limits(steps=3))
    assert done.exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "--param what="),
        ({"what": "a", "depth": "7"}, ""),
        ({"what": "a; id"}, "one plain word"),
        ({"what": "a", "other": 1}, "no parameter 'other'"),
        ({"what": "a", "notes": "~/.ssh/id_rsa"}, "id_rsa"),
    ],
)
async def test_values_of_the_model_are_checked(
    work: Work, monkeypatch: pytest.MonkeyPatch, arguments: Any, problem: str
) -> None:
    monkeypatch.setenv("HOME", str(work.folder))
    (work.folder / ".ssh").mkdir()
    (work.folder / ".ssh/id_rsa").write_text("CANARY")
    steps = [use(**arguments), "done"] if problem else [use(**arguments), '{"files": []}', "done"]
    done, exchange = await work.run(*steps)
    assert done.result == "done"
    (result,) = list_results(exchange)
    assert problem in result
    assert "CANARY" not in result
