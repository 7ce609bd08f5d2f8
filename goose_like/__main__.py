"""The process starts here; `--version` is answered before anything heavy is imported."""

import sys
from pathlib import Path

if __name__ == "__main__" and sys.path[0] != str(Path(__file__).parents[1]):
    # `python -m` puts the current folder first: a project's own `openai.py` would be imported in place of the SDK.
    del sys.path[0]

from . import __version__


def main() -> None:
    if sys.argv[1:] in (["--version"], ["-V"], ["version"]):
        print(f"goose-like {__version__}")
        return
    from goose_like.cli.chat.startup import has_prompt, open_session
    from goose_like.cli.exit import guarded

    if len(sys.argv) == 1 and has_prompt():  # a person waits for the prompt, not for typer
        sys.exit(guarded(open_session))
    from goose_like.cli.app import run_command_line

    sys.exit(run_command_line())


if __name__ == "__main__":
    main()
