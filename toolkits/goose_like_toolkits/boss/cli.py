"""`goose-like boss`. Imported at every start, so it is light."""

from pathlib import Path
from typing import Annotated

import typer

from goose_like.cli.app import ApprovalOption, ModelOption, OutputFormat, ProfileOption, SandboxOption, TrustOption

app = typer.Typer(
    rich_markup_mode=None,
    subcommand_metavar="",  # it has none
    help="Work on a long goal: plan it, then act round by round, with memory in files.",
)


@app.callback(
    invoke_without_command=True,
    context_settings={"allow_interspersed_args": True},
    epilog='Example: goose-like boss "write a library of date functions, with tests" --max-round 40',
)
def boss(
    goal: Annotated[list[str] | None, typer.Argument(help="The goal; - at its end adds standard input.")] = None,
    file: Annotated[str | None, typer.Option("-i", "--input", help="Read the goal from a file.")] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="A memory file: plan, logs, code_library, or one of your own; repeat it "
            "[default: those three, beside the session].",
        ),
    ] = None,
    max_round: Annotated[int | None, typer.Option(min=1, help="Rounds at most [default: 30].")] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML that describes the boss: its branches, bosses below it, its memory.")
    ] = None,
    review_plan: Annotated[bool, typer.Option("--review-plan", help="Ask me about the plan before it counts.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run [default: the newest here].")] = False,
    session: Annotated[
        str | None, typer.Option(help="Name of the session to write, or with --resume to go on.")
    ] = None,
    profile: ProfileOption = None,
    model: ModelOption = None,
    output_format: Annotated[OutputFormat, typer.Option(help="What stdout carries.")] = OutputFormat.text,
    max_cost: Annotated[float | None, typer.Option(min=0.000001, help="US dollars at most.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Input and output tokens at most.")] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", "--max-time", min=0.001, help="Seconds at most.")
    ] = None,
    sandbox: SandboxOption = None,
    approval: ApprovalOption = None,
    trust: TrustOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No picture on stderr.")] = False,
) -> None:
    """Work on a goal that outlasts one conversation: its progress is drawn on stderr, the result goes to stdout.

    Ctrl-C ends the boss at work below yours and lets you leave a note; again, or without one, the run. `--resume` goes
    on in the same round.

    Exit codes: 0 finished, 1 failed, 2 usage, 3 rounds, 4 cost, 5 tokens, 6 denied, 124 time, 130 SIGINT, 143 SIGTERM.
    """
    from goose_like.cli.options import begin, finish
    from goose_like.cli.run import read_task
    from goose_like.core.errors import UsageError

    from .job import commissioned, recommissioned, to_begin, to_resume
    from .run import Errand, run_errand

    how = (profile, model, sandbox, approval)
    if resume:
        if memory or config or review_plan:
            raise UsageError("a run goes on with what it was told; leave out --memory, --config and --review-plan")
        said = read_task(goal or [], file) if goal or file else ""
        chosen, kept = begin(*how, session=to_resume(session), is_resumed=True, goes_on=True, is_trusted=trust)
    else:
        said = read_task(goal or [], file, 'boss "write a parser for dates, with tests"')
        commission = commissioned(config, memory or [], max_round, is_reviewed=review_plan)
        chosen, kept = begin(*how, session=to_begin(session), is_resumed=False, is_trusted=trust)
    try:
        spec = recommissioned(kept, said, max_round) if resume else commission.kept_in(kept)
    except BaseException:
        kept.close()
        raise
    limits = {"cost_usd": max_cost, "tokens": max_tokens, "time_s": timeout}
    asked = Errand(
        goal="" if resume else said,
        spec=spec,
        profile=chosen.profile,
        limits=chosen.profile.limits.model_copy(
            update={name: value for name, value in limits.items() if value is not None}
        ),
        session=kept,
        output_format=output_format.value,
        is_quiet=quiet,
    )
    raise typer.Exit(finish(run_errand(asked), chosen, kept))
