"""The command `run`."""

from typing import Annotated

import typer

from goose_like.cli.options import (
    ApprovalOption,
    ModelOption,
    OutputFormat,
    ProfileOption,
    ProfileOptions,
    SandboxOption,
    TrustOption,
    list_session_names,
)


def run(
    text: Annotated[list[str] | None, typer.Argument(help="The task; - at the end adds standard input.")] = None,
    file: Annotated[str | None, typer.Option("-i", "--input", help="Read the task from a file.")] = None,
    profile: ProfileOption = None,
    model: ModelOption = None,
    output_format: Annotated[OutputFormat, typer.Option(help="Format of standard output.")] = "text",
    max_steps: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many model requests [default: 128].")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(min=0.000001, help="Stop at this cost in US dollars.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Stop after this many input and output tokens.")] = None,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Stop after this many seconds.")] = None,
    session: Annotated[
        str | None,
        typer.Option(
            help="Name of the new session; with --resume, of the old one.",
            autocompletion=list_session_names,
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a session [default: newest here].")] = False,
    no_session: Annotated[bool, typer.Option("--no-session", help="Do not save a session.")] = False,
    sandbox: SandboxOption = None,
    approval: ApprovalOption = None,
    trust: TrustOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress on standard error.")] = False,
) -> None:
    """Do one task. Progress goes to standard error, the answer to standard output.

    Exit codes: 0 done, 1 error, 2 usage, 3 steps, 4 cost, 5 tokens, 6 denied, 7 no sandbox, 75 rate limit,
    76 key, 77 model unavailable, 124 time, 130 SIGINT, 143 SIGTERM.
    """
    from goose_like.cli.launch import open_session, run_and_close, settle_profile
    from goose_like.cli.run import RunRequest, read_task, run_once

    if no_session and (resume or session):
        raise typer.BadParameter("--no-session cannot be used with --session or --resume")
    task = read_task(text or [], file)
    options = ProfileOptions(profile, model, sandbox, approval, trust)
    if no_session:
        choice, saved = settle_profile(options), None
    else:
        choice, saved = open_session(options, session=session, is_resumed=resume)
    limits = {"steps": max_steps, "cost_usd": max_cost, "tokens": max_tokens, "time_s": timeout}
    request = RunRequest(
        text=task,
        profile=choice.profile,
        limits=choice.profile.limits.model_copy(
            update={name: value for name, value in limits.items() if value is not None}
        ),
        session=saved,
        output_format=output_format,
        is_quiet=quiet,
    )
    raise typer.Exit(run_and_close(run_once(request), choice, saved))
