"""The work of the commands `goose-like batch`."""

import asyncio
import dataclasses
import hashlib
import os
import re
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from goose_like.config.paths import (
    create_private_folder,
    describe_read_error,
    read_user_file,
    replace_private_file,
    state_folder,
)
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.spelling import format_count
from goose_like.launch.command_line import ProfileOptions
from goose_like.launch.exit import run_async
from goose_like.launch.option_paths import anchor_model, anchor_options
from goose_like.launch.start_notifier import AbsentPerson, StartNotifier
from goose_like.recipes.places import find_recipe, list_places
from goose_like.recipes.recipe import FilledRecipe, Recipe, load_recipe, write_values
from goose_like.recipes.trust import digest_texts, find_risky_values, settle_recipe_trust
from goose_like.terminal.escape import escape_controls
from goose_like.terminal.interaction import handle_signals
from goose_like.terminal.progress_bar import ProgressBar

from .comparison import format_comparison, has_error
from .driver import BatchPlan, Driver, Progress
from .engine import Engine
from .inputs import InputReader, choose_place
from .job import BatchInput, PlaceKind, ResultLine
from .jsonl_file import JsonlFile
from .report import describe_lines, write_report
from .spending import Attempt, Spending, Totals

_PLAN = "batch.json"
_MAX_PLAN_BYTES = 1_000_000_000
_SHOWN_PROBLEMS = 5
_SHOWN_REASONS = 5
_REPORT_COLUMNS = 120


def start_batch(
    word: str,
    source: str,
    output: Path,
    options: ProfileOptions,
    *,
    place: PlaceKind | None,
    limits: dict[str, float],
    totals: Mapping[str, Any],
    **settings: Any,
) -> int:
    """Check everything, write the plan, and run it. Return the exit code. `settings` are other fields of the plan.

    Raises:
        UsageError: the recipe, an input or an option is wrong; nothing has run.
        DeniedError: the person does not trust the recipe.
    """
    here = Path.cwd()
    output = Path(os.path.abspath(output))
    _check_output(output)
    recipe = load_recipe(find_recipe(word, here, list_places(here)))
    reader = InputReader(here, place or choose_place(here))
    inputs = reader.read(source)
    options = anchor_options(options, here)
    if options.model:
        options = dataclasses.replace(options, model=anchor_model(options.model, here))
    filled = _fill_all(recipe, inputs)
    asyncio.run(_settle_trust(filled, options))
    given = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    plan = BatchPlan(
        name=make_batch_name(output.stem),
        recipe=os.path.abspath(recipe.file),
        texts=dict(recipe.texts),
        digest=digest_texts(filled[0]),
        inputs=tuple(inputs),
        limits=limits,
        totals=Totals(**totals),
        options={name: value for name, value in given.items() if value},
        **settings,
    )
    return run_new_batch(plan, output)


def run_new_batch(plan: BatchPlan, output: Path) -> int:
    """Write the plan of a batch, and run it. Return the exit code.

    Raises:
        UsageError: files of somebody else would be replaced.
    """
    output = Path(os.path.abspath(output))
    _check_output(output)
    record = _get_record(output)
    shutil.rmtree(record, ignore_errors=True)  # of a batch whose results somebody removed
    try:
        create_private_folder(record)
        replace_private_file(record / _PLAN, plan.model_dump_json(indent=1))
    except OSError as error:
        raise GooseLikeError(f"{error.filename} can't be written: {error.strerror}") from error
    return _run(plan, output)


def resume_batch(results: Path, totals: Mapping[str, Any], **settings: Any) -> int:
    """Run the inputs of a batch that are not finished. Return the exit code. `settings` are other fields of the plan.

    Raises:
        UsageError: there is no such batch, or another process works on it.
    """
    plan = _read_plan(results)
    given = {name: value for name, value in totals.items() if value is not None}
    changes = {name: value for name, value in settings.items() if value is not None}
    changes["totals"] = plan.totals.model_copy(update=given)
    return _run(plan.model_copy(update=changes), Path(os.path.abspath(results)))


def report_batch(results: Path) -> Path:
    """Write the report of a batch beside its results, and return its file."""
    plan = _read_plan(results)
    file = (Path(os.path.abspath(results))).with_suffix(".html")
    lines = JsonlFile(Path(os.path.abspath(results)), ResultLine)
    lines.read()
    comparison = ""
    if plan.is_comparison:
        comparison = format_comparison(lines.records, _REPORT_COLUMNS)
        print(escape_controls(comparison))
    summary = describe_lines(lines.records, len(plan.inputs))
    write_report(plan.name, summary, lines.records, file, comparison)
    return file


def _check_output(output: Path) -> None:
    """Check that all files of a batch would be new, so that none of somebody else is replaced."""
    if output.suffix in (".html", ".batch", ".transcripts"):
        raise UsageError(f"{output}: the name must not end with {output.suffix}; name it results.jsonl")
    if _get_record(output).exists() and output.exists():
        raise UsageError(f"{output} exists; go on with: goose-like batch resume {output}, or name another file")
    for path in (output, _get_folder(output), output.with_suffix(".html"), output.with_suffix(".transcripts")):
        if os.path.lexists(path):
            raise UsageError(f"{path} exists; name another file for the results, or remove it")


def make_batch_name(stem: str) -> str:
    """Make a name for sessions and branches from that of a file."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", stem)[:40].strip("-")
    return f"{plain or 'batch'}-{secrets.token_hex(2)}"


def _get_folder(results: Path) -> Path:
    """Return the folder of a batch: patches, receipts, and the folders of workers."""
    return results.with_suffix(".batch")


def _get_record(results: Path) -> Path:
    """Return the private folder of a batch: what will run, and what was spent. No command of an agent can write it."""
    digest = hashlib.sha256(os.fsencode(results)).hexdigest()[:16]
    return state_folder() / "batches" / digest


def _read_plan(results: Path) -> BatchPlan:
    file = _get_record(Path(os.path.abspath(results))) / _PLAN
    try:
        return BatchPlan.model_validate_json(read_user_file(file, _MAX_PLAN_BYTES))
    except FileNotFoundError as error:
        raise UsageError(f"{results} is no file of results of a batch that started there") from error
    except (OSError, ValidationError, ValueError) as error:
        reason = "it has another form"
        if not isinstance(error, ValidationError):
            reason = describe_read_error(error)
        raise UsageError(f"{file} can't be read: {reason}; start the batch anew, with another name") from error


def _fill_all(recipe: Recipe, inputs: Sequence[BatchInput]) -> list[FilledRecipe]:
    """Fill in the recipe for each input, so that no mistake is found in the middle of the batch.

    Raises:
        UsageError: some inputs do not fit; the text names the first ones.
    """
    filled = []
    problems = []
    for number, each in enumerate(inputs, 1):
        try:
            filled.append(recipe.fill(write_values(each.parameters)))
        except UsageError as error:
            problems.append(f"input {number}: {error}")
    if problems:
        shown = "\n".join(problems[:_SHOWN_PROBLEMS])
        total = format_count(len(inputs), "input")
        verb = "does" if len(problems) == 1 else "do"
        raise UsageError(f"{len(problems):,} of {total} {verb} not fit the recipe\n{shown}")
    return filled


async def _settle_trust(filled: Sequence[FilledRecipe], options: ProfileOptions) -> None:
    """Ask whether the recipe may run, and again for inputs whose values change what it brings."""
    notifier = AbsentPerson(StartNotifier(), lambda: options.approval == "unattended")
    for number, each in enumerate(filled):
        if number == 0 or find_risky_values(each):
            await settle_recipe_trust(each, notifier, is_trusted_now=options.is_trusted)


def _run(plan: BatchPlan, output: Path) -> int:
    folder = _get_folder(output)
    engine = _open_engine(plan, folder)
    with ExitStack() as stack:
        results = stack.enter_context(JsonlFile(output, ResultLine))
        folder.mkdir(exist_ok=True)
        attempts = stack.enter_context(JsonlFile(_get_record(output) / "attempts.jsonl", Attempt))
        bar = stack.enter_context(ProgressBar(len(plan.inputs), sys.stderr))
        spending = Spending(plan.totals, attempts)
        code = run_async(_drive(plan, engine, results, spending, bar))
    print(f"goose-like: {describe_lines(results.records, len(plan.inputs))}", file=sys.stderr)
    for reason in _list_reasons(results.records):
        print(f"  {escape_controls(reason)}", file=sys.stderr)
    if code in (0, 1):
        report = report_batch(output)
        print(f"goose-like: results in {output}, report in {report}", file=sys.stderr)
    return code


async def _drive(
    plan: BatchPlan, engine: Engine, results: JsonlFile[ResultLine], spending: Spending, bar: ProgressBar
) -> int:
    """Run the driver until its end or a signal. Return the exit code."""

    def show(progress: Progress) -> None:
        bar.update(progress.done + progress.failed, _describe_progress(progress), _list_reasons(results.records))

    driver = Driver(plan, _get_folder(results.path), results, spending, engine, show)
    work = asyncio.create_task(driver.run())
    try:
        with handle_signals(work.cancel) as signals:
            await work
    except asyncio.CancelledError:
        print(f"\ngoose-like: stopped; go on with: goose-like batch resume {results.path}", file=sys.stderr)
        return 128 + signals[0]
    finally:
        await engine.close()
    is_failure = has_error if plan.is_comparison else _has_failed
    return int(any(map(is_failure, results.records)))


def _has_failed(line: ResultLine) -> bool:
    return line.status == "failed"


def _open_engine(plan: BatchPlan, folder: Path) -> Engine:
    if plan.engine == "local":
        if plan.address:
            raise UsageError("only Ray has an address; add --engine ray to the start of the batch")
        from .local_engine import LocalEngine

        return LocalEngine(folder)
    from .ray_engine import RayEngine

    return RayEngine(plan.address, plan.cpus)


def _describe_progress(progress: Progress) -> str:
    parts = [f"{progress.running} running"]
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    parts.append(f"{progress.tokens:,} tokens")
    if progress.cost_usd:
        parts.append(f"${progress.cost_usd:.2f}")
    return " · ".join(parts)


def _list_reasons(lines: Sequence[ResultLine]) -> list[str]:
    """List the most frequent reasons of failures."""
    reasons = Counter(line.reason for line in filter(_has_failed, lines))
    return [f"{count:,}x {reason}" for reason, count in reasons.most_common(_SHOWN_REASONS)]
