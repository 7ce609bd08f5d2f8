"""The entry point of the process."""

import os
import sys
from collections.abc import Callable, Sequence

if __name__ == "__main__" and sys.path[0] != os.path.dirname(os.path.dirname(os.path.abspath(__file__))):
    # `python -m` puts the current folder first: a project's own `openai.py` would replace the SDK.
    del sys.path[0]

from .core.gc_pause import delay_gc


def main() -> None:
    """Run goose-like, and leave the process with its exit code."""
    delay_gc()
    try:
        from goose_like.launch.exit import leave

        code = _run(sys.argv[1:])
    except KeyboardInterrupt:  # Ctrl-C while modules are imported
        sys.exit(130)
    leave(code)


def _run(words: Sequence[str]) -> int:
    """Run a command line. The version, most runs and sessions skip the slow import of all commands."""
    from goose_like.launch.exit import run_guarded

    if words in (["--version"], ["-V"]):
        from goose_like.core.version import describe_version

        return run_guarded(lambda: print(f"goose-like {describe_version()}"))
    from goose_like.launch.pydantic_plugins import skip_plugin_search

    skip_plugin_search()
    act = None
    if "_GOOSE_LIKE_COMPLETE" not in os.environ:
        act = _find_act(words)
    if act is not None:
        return run_guarded(act)
    from goose_like.cli.app import run_command_line

    return run_command_line()


def _find_act(words: Sequence[str]) -> Callable[[], int] | None:
    """Find what a command line wants that needs no import of all commands."""
    from goose_like.cli.run_start import parse_run_command, start_run

    if run := parse_run_command(words):
        return lambda: start_run(**run)
    from goose_like.cli.chat.startup import has_prompt, parse_session_command, start_session

    session = parse_session_command(words)
    if session is not None and has_prompt():
        return lambda: start_session(**session)
    return None


if __name__ == "__main__":
    main()
