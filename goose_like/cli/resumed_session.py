"""The session that the options `--resume`, `--continue` and `--session` of `run` name, and the words of the task."""

import shlex

from goose_like.core.errors import SessionError, UsageError
from goose_like.sessions.index import find_session, iterate_sessions


def check_no_name(words: list[str]) -> None:
    """Check that the task for the newest session does not begin with the name of a session.

    Raises:
        UsageError: it does.
    """
    if len(words) < 2:
        return
    first, *others = words
    if all(first != info.name for info in iterate_sessions()):
        return
    name = shlex.quote(first)
    task = shlex.quote(" ".join(others))
    raise UsageError(f"--continue takes no name; for the session {first!r}: goose-like run --resume {name} {task}")


def split_session_name(
    resume: str, session: str | None, words: list[str], *, has_file: bool
) -> tuple[str | None, list[str]]:
    """Return the session to resume, and the words of the task. `resume` is the word after `--resume`, or empty.

    Raises:
        UsageError: the options name two sessions.
        SessionError: a single word names no session, so it may have been meant as the task.
    """
    if not resume or resume == session:
        return session, words
    has_task = bool(words) or has_file
    if session is None:
        if not has_task:
            _check_is_session(resume)
        return resume, words
    if has_task:
        raise UsageError("--resume and --session name two sessions; name one: --resume NAME")
    return session, [resume]  # the older form: --session NAME --resume TASK


def _check_is_session(word: str) -> None:
    try:
        find_session(word)
    except SessionError as error:
        as_task = f"goose-like run --continue {shlex.quote(word)}"
        raise SessionError(f"{error}; as a task for the newest session: {as_task}") from error
