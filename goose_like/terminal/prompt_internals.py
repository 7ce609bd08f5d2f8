"""Private names of prompt_toolkit that the input needs, because no public name does the same.

`tests/terminal/test_prompt_internals.py` fails if a new version changes them.
"""

import asyncio
from typing import Any

from prompt_toolkit.application import Application


def is_suspended(app: Application[Any]) -> bool:
    """Return whether another program, such as an editor, has the terminal."""
    return app._running_in_terminal


async def wait_until_resumed(app: Application[Any]) -> None:
    """Wait until no other program has the terminal."""
    # The public `in_terminal` waits, too, but then it erases the prompt.
    resumed = app._running_in_terminal_f
    if resumed:
        await asyncio.wait([resumed])


def redraw_now(app: Application[Any]) -> None:
    """Draw the prompt before this call returns."""
    # The public `invalidate` draws later: rows that were erased meanwhile would flicker.
    app._redraw()
