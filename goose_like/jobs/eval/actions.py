"""The work of the command `goose-like eval`: it makes a batch of the trials of a suite."""

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goose_like.agent.profile_choice import choose_profile
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import ProfileError, UsageError
from goose_like.jobs.batch.actions import make_batch_name, run_new_batch
from goose_like.jobs.batch.driver import BatchPlan
from goose_like.jobs.batch.job import BatchInput
from goose_like.jobs.batch.spending import Totals
from goose_like.launch.option_paths import anchor_model
from goose_like.providers.registry import check_model, choose_models
from goose_like.recipes.recipe import load_recipe
from goose_like.recipes.trust import digest_texts

from .suite import EvalTask, choose_tasks, load_suite

_RECIPE = """title: A task
description: The prompt of a task
prompt: "{{ prompt }}"
parameters:
  - key: prompt
    input_type: string
    requirement: required
    description: the text of the task
"""


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """The tasks of a suite that somebody wants, by name and size."""

    names: Sequence[str]
    sizes: Sequence[str]
    is_held_out: bool


def start_eval(
    suite: Path,
    choice: TaskChoice,
    columns: Sequence[Mapping[str, str]],
    trial_count: int,
    output: Path,
    *,
    limits: dict[str, float],
    totals: Mapping[str, Any],
    options: dict[str, Any],
    workers: int,
) -> int:
    """Check everything, then run the trials as a batch. Return the exit code.

    A column is what differs between the rows of the table: fields of `ProfileOptions`.

    Raises:
        UsageError: the suite, a profile or an option is wrong; nothing has run.
        GooseLikeError: a model cannot be used: a key or a package is missing.
    """
    suite = Path(os.path.abspath(suite))
    tasks = choose_tasks(load_suite(suite), choice.names, choice.sizes, is_held_out=choice.is_held_out)
    for column in columns:
        _check_column(column)
    inputs = []
    # A trial of all tasks by all columns, then the next one: if the batch stops early, the columns stay comparable.
    for trial, task, column in itertools.product(range(1, trial_count + 1), tasks, columns):
        inputs.append(_make_input(task, trial, column))
    recipe = suite / "eval.yaml"
    texts = {recipe.name: _RECIPE}
    filled = load_recipe(recipe, texts).fill(inputs[0].parameters)
    plan = BatchPlan(
        name=make_batch_name(output.stem),
        recipe=str(recipe),
        texts=texts,
        digest=digest_texts(filled),
        inputs=tuple(inputs),
        limits=limits,
        totals=Totals(**totals),
        workers=workers,
        retries=3,
        engine="local",
        address=None,
        cpus=1.0,
        options=options,
        is_comparison=True,
    )
    return run_new_batch(plan, output)


def _check_column(column: Mapping[str, str]) -> None:
    choice = choose_profile(column.get("profile"), column.get("model"))
    try:
        for model in choose_models(choice.profile):
            check_model(model)
    except ProfileError as error:
        raise choice.locate_error(error) from None


def _make_input(task: EvalTask, trial: int, column: Mapping[str, str]) -> BatchInput:
    limits = {}
    if task.content.timeout:
        limits["time_s"] = task.content.timeout
    options = dict(column)
    if "model" in column:
        options["model"] = anchor_model(column["model"], Path.cwd())
    return BatchInput(
        row={"task": task.name, "trial": trial, **column},
        parameters={"prompt": task.content.prompt.strip()},
        place="copy",
        source=str(task.files or ""),
        options=options,
        limits=limits,
        scripts=task.make_scripts(),
    )


def list_columns(profiles: Sequence[str], models: Sequence[str]) -> list[dict[str, str]]:
    """List the columns of each profile with each model. Without either, the one column is the default profile.

    Raises:
        UsageError: a profile or a model is there twice.
    """
    for names in (profiles, models):
        for name in names:
            if list(names).count(name) > 1:
                raise UsageError(f"{name} is there twice; compare different profiles or models")
    columns = []
    for profile, model in itertools.product(profiles or [""], models or [""]):
        given = {"profile": profile, "model": model}
        columns.append({key: value for key, value in given.items() if value})
    return columns
