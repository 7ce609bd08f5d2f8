"""`/receipt`: what the newest turn did, and which checks ran on the files as they are."""

import os
from pathlib import Path

from goose_like.agent.receipt import format_receipt, make_receipt, write_receipt
from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.config.paths import expand_home
from goose_like.core.errors import UsageError
from goose_like.terminal.escape import escape_controls


@command(usage="[FILE]")
async def receipt(context: SlashContext, words: str) -> None:
    """Show what the last turn changed, ran and checked, or write it to a file: .md or .json."""
    exchange = context.exchange
    if not exchange.history.turns:
        raise UsageError("there is nothing to show yet")
    file = _find_file(words, exchange.workspace.root) if words else None
    made = await make_receipt(exchange)
    if file is None:
        context.show(escape_controls(format_receipt(made, is_json=False)))
        return
    write_receipt(file, made)
    context.show(f"written: {file}")


def _find_file(name: str, root: Path) -> Path:
    file = root / expand_home(name)
    if file.suffix not in (".json", ".md"):
        raise UsageError("the name must end with .json or .md")
    if os.path.lexists(file):
        raise UsageError(f"{file} already exists; choose another name")
    return file
