"""The command `goose-like eval`. It imports what it needs when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from goose_like.jobs.batch.command import OutputOption, TotalCostOption, TotalTokensOption, WorkersOption
from goose_like.launch.command_line import list_model_prefixes, list_profile_names
from goose_like.launch.options import SandboxOption

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},  # no command follows
)

MaxCostOption = Annotated[float | None, typer.Option(min=0.0001, metavar="USD", help="Most that a trial costs.")]


@app.callback(
    invoke_without_command=True, epilog="Example: goose-like eval suite -P default -P mine --trials 3 -o r.jsonl"
)
def measure(
    suite: Annotated[Path, typer.Argument(help="Folder of tasks, each a folder with task.yaml and check.py.")],
    output: OutputOption,
    profiles: Annotated[
        list[str] | None,
        typer.Option("--profile", "-P", help="Profile to measure; repeatable.", autocompletion=list_profile_names),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="Model to measure, as PROVIDER:MODEL, in each profile; repeatable.",
            autocompletion=list_model_prefixes,
        ),
    ] = None,
    tasks: Annotated[list[str] | None, typer.Option("--task", help="Only this task; repeatable.")] = None,
    sizes: Annotated[list[str] | None, typer.Option("--size", help="Only tasks of this size; repeatable.")] = None,
    is_held_out: Annotated[bool, typer.Option("--held-out", help="Only the tasks that are held out.")] = False,
    trials: Annotated[int, typer.Option(min=1, metavar="N", help="Trials of each task.")] = 1,
    workers: WorkersOption = None,
    sandbox: SandboxOption = None,
    max_steps: Annotated[int | None, typer.Option(min=1, metavar="N", help="Most model requests of a trial.")] = None,
    max_cost: MaxCostOption = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="Most tokens of a trial.")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.001, metavar="SECONDS", help="Most seconds of a trial.")
    ] = None,
    total_cost: TotalCostOption = None,
    total_tokens: TotalTokensOption = None,
) -> None:
    """Measure how many tasks of a suite profiles and models solve. The trials are a batch.

    Exit codes: 0 all trials measured, 1 some ended by an error, 2 usage, 4 total cost, 5 total tokens, 130 SIGINT.
    """
    from .actions import TaskChoice, list_columns, start_eval

    limits = {"steps": max_steps, "cost_usd": max_cost, "tokens": max_tokens, "time_s": timeout}
    options = {"sandbox": sandbox} if sandbox else {}
    code = start_eval(
        suite,
        TaskChoice(tasks or (), sizes or (), is_held_out),
        list_columns(profiles or (), models or ()),
        trials,
        output,
        limits={name: value for name, value in limits.items() if value is not None},
        totals={"cost_usd": total_cost, "tokens": total_tokens},
        options=options,
        workers=workers or 4,
    )
    raise typer.Exit(code)
