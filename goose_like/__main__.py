"""The entry point of the process."""

import os
import sys
from pathlib import Path

if __name__ == "__main__" and sys.path[0] != str(Path(__file__).parents[1]):
    # `python -m` puts the current folder first: a project's own `openai.py` would replace the SDK.
    del sys.path[0]

from . import __version__
from .core.gc_pause import delay_gc


def main() -> None:
    """Run goose-like. The version and most sessions in a terminal skip the slow import of all commands."""
    delay_gc()
    from goose_like.launch.exit import run_guarded

    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.exit(run_guarded(lambda: print(f"goose-like {__version__}")))
    from goose_like.cli.chat.startup import has_prompt, parse_session_command, start_session

    arguments = parse_session_command(sys.argv[1:])
    if arguments is not None and has_prompt() and "_GOOSE_LIKE_COMPLETE" not in os.environ:
        sys.exit(run_guarded(lambda: start_session(**arguments)))
    from goose_like.cli.app import run_command_line

    sys.exit(run_command_line())


if __name__ == "__main__":
    main()
