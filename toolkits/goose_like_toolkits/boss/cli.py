"""The command `goose-like boss`."""

from pathlib import Path
from typing import Annotated

import typer

from goose_like.launch.command_line import OutputFormat, ProfileOptions
from goose_like.launch.options import add_profile_options

app = typer.Typer(
    rich_markup_mode=None,
    subcommand_metavar="",
)


MemoryOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=FILE",
        help="Memory file: plan, logs, code_library, or a name of your own. Repeatable. "
        "[default: these three, in the session's folder]",
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option(help="YAML file that describes the boss: branches, sub-bosses, memory files.")
]
SessionOption = Annotated[
    str | None, typer.Option(help="Name of the new session, or with --resume of the session to continue.")
]
TimeOption = Annotated[
    float | None, typer.Option("--timeout", "--max-time", min=0.001, metavar="SECONDS", help="Maximum time in seconds.")
]


@app.callback(
    invoke_without_command=True,
    context_settings={"allow_interspersed_args": True},
    epilog='Example: goose-like boss "write a library of date functions, with tests" --max-round 40',
)
@add_profile_options
def boss(
    options: ProfileOptions,
    goal: Annotated[list[str] | None, typer.Argument(help="The goal. A final - adds standard input.")] = None,
    file: Annotated[str | None, typer.Option("-i", "--input", help="Read the goal from a file.")] = None,
    memory: MemoryOption = None,
    max_round: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Maximum number of rounds. [default: 30]")
    ] = None,
    config: ConfigOption = None,
    review_plan: Annotated[bool, typer.Option("--review-plan", help="Ask me about the plan before using it.")] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", "-r", help="Continue the run NAME, given instead of GOAL. [default: newest here]"),
    ] = False,
    session: SessionOption = None,
    output_format: Annotated[OutputFormat, typer.Option(help="Format of stdout.")] = "text",
    max_cost: Annotated[
        float | None, typer.Option(min=0.0001, metavar="USD", help="Maximum cost in US dollars.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Maximum number of input and output tokens.")
    ] = None,
    timeout: TimeOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress on stderr.")] = False,
) -> None:
    """Work on a long goal: draw progress on stderr, print the result on stdout.

    Ctrl-C stops the sub-boss at work, if there is one, and lets you leave a note for its caller. Ctrl-C again stops the
    run. `--resume` continues a stopped run in the same round.

    Exit codes: 0 finished, 1 failed, 2 usage, 3 rounds, 4 cost, 5 tokens, 6 denied, 124 time, 130 SIGINT, 143 SIGTERM.
    """
    from goose_like.core.errors import UsageError
    from goose_like.launch.exit import run_async
    from goose_like.launch.output import report_failure
    from goose_like.launch.run_options import RunOptions, read_task
    from goose_like.launch.start import SessionRequest

    from .run import check_new_name, create_job, find_run, run_command

    has_goal = bool(goal or file)
    with report_failure(output_format):
        if resume and session is None and goal and _is_name(goal):
            session = goal[0]
            has_goal = file is not None
        if resume and (has_goal or memory or config or review_plan):
            raise UsageError(
                "a run keeps its goal and configuration; leave out GOAL, --memory, --config and --review-plan"
            )
        text = ""
        name = session
        job = None
        if resume:
            name = find_run(session)
        else:
            text, _ = read_task(goal or [], file, 'boss "write a parser for dates, with tests"')
            job = create_job(config, memory or [], max_round, review_plan=review_plan)
            check_new_name(session)
    limits = {"cost_usd": max_cost, "tokens": max_tokens, "time_s": timeout}
    run_options = RunOptions(text, limits, output_format, quiet)
    wanted = SessionRequest(options, name, is_resumed=resume, keep_open_turn=resume)
    raise typer.Exit(run_async(run_command(run_options, wanted, job, max_round)))


def _is_name(goal: list[str]) -> bool:
    """Tell whether a goal is a single word, which `--resume` takes for the name of a session."""
    return len(goal) == 1 and len(goal[0].split()) <= 1
