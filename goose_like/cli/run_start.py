"""Start of a one-shot run: from the command line to the task and the session that it wants.

The usual command lines need no import of Typer, so this file imports what a run needs when one starts.
"""

from collections.abc import Sequence
from typing import Any

from goose_like.launch.command_line import (
    InputOptions,
    ProfileOptions,
    SessionOptions,
    TaskOptions,
    find_run_conflict,
    read_options,
    take_fields,
)

_COMMANDS = ("run", "-p", "--print")


def parse_run_command(words: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments for `start_run`, or None for another command, or one that Typer has to judge."""
    if not words or words[0] not in _COMMANDS:
        return None
    read = read_options(words[1:], ProfileOptions, SessionOptions, TaskOptions, InputOptions)
    if read is None:
        return None
    values, texts = read
    given = take_fields(InputOptions, values)
    wanted = take_fields(TaskOptions, values)
    chosen = take_fields(SessionOptions, values)
    if find_run_conflict(wanted, chosen):
        return None
    options = ProfileOptions(**values)
    return {"texts": texts, "given": given, "wanted": wanted, "chosen": chosen, "options": options}


def start_run(
    texts: list[str], given: InputOptions, wanted: TaskOptions, chosen: SessionOptions, options: ProfileOptions
) -> int:
    """Run a task to its end and return the exit code. `texts` are the words on the command line that are no options."""
    from goose_like.launch.exit import run_async
    from goose_like.launch.output import report_failure
    from goose_like.launch.run_options import (
        RunOptions,
        find_output_file,
        find_receipt_file,
        list_limits,
        read_schema,
        read_task,
    )
    from goose_like.launch.start import SessionRequest

    from .resumed_session import check_no_name, split_session_name
    from .run import run_command

    with report_failure(wanted.output_format):
        if chosen.is_continued and not chosen.resume:
            check_no_name(texts)
        has_file = given.file is not None
        name, texts = split_session_name(chosen.resume or "", wanted.session, texts, has_file=has_file)
        example = 'run "fix the failing test"'
        if chosen.is_resumed:
            example = 'run --resume NAME "continue"'
        schema = read_schema(given.json_schema) if given.json_schema is not None else None
        answer_file = find_output_file("-o", wanted.answer_file)
        receipt_file = find_receipt_file(wanted.receipt)
        task, is_typed = read_task(texts, given.file, example)
    run_options = RunOptions(
        task,
        list_limits(wanted),
        wanted.output_format,
        wanted.is_quiet,
        is_typed,
        answer_schema=schema,
        answer_file=answer_file,
        receipt_file=receipt_file,
    )
    request = SessionRequest(
        options,
        name,
        is_resumed=chosen.is_resumed,
        is_forked=chosen.is_forked,
        worktree=chosen.worktree,
        is_saved=not wanted.is_unsaved,
    )
    return run_async(run_command(run_options, request))
