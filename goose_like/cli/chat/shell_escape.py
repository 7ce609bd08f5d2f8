"""`!command` in a session: its output is shown to the person at once and to the model with the next message."""

import asyncio
from collections.abc import AsyncIterator

from goose_like.agent.slash_context import SlashContext
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Reminded
from goose_like.core.masking import mask_text
from goose_like.sessions.output_limit import LimitedOutput
from goose_like.workspace.processes.process import Process

STOP_GRACE_S = 0.07


async def run_shell_escape(context: SlashContext, command: str) -> None:
    """Run a command in the workspace with the person's own rights and record its output for the model."""
    exchange = context.exchange
    context.show(f"! {command}")
    number = len(exchange.history.messages)
    file = exchange.session.outputs / f"own-{number}.txt"
    output = LimitedOutput(file, exchange.budget.limits.output_bytes)
    end = "interrupted"
    try:
        process = await exchange.workspace.spawn(["bash", "-c", command], access="full", is_own=True)
        try:
            async for lines in _read_lines(process, output):
                context.show(lines)
            end = f"exit code {await process.wait()}"
        except BaseException:
            await asyncio.shield(process.stop(STOP_GRACE_S))
            raise
    except GooseLikeError as error:
        end = str(error)
    finally:
        output.close()
        if end != "exit code 0":
            context.show(f"[{end}]")
        text = f"The person ran `{command}`:\n{output.format_for_model()}\n[{end}]"
        exchange.journal.emit(Reminded(text=text, reason="shown"))


async def _read_lines(process: Process, output: LimitedOutput) -> AsyncIterator[str]:
    """Yield blocks of whole lines, and at the end the last line even without a line end."""
    rest = b""
    while chunk := await process.read():
        output.write(chunk)
        lines, _, rest = (rest + chunk).rpartition(b"\n")
        if lines:
            yield mask_text(lines.decode(errors="replace"))
    if rest:
        yield mask_text(rest.decode(errors="replace"))
