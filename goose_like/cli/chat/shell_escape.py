"""`!command`: what the person runs, shown to them at once and to the model with the next message."""

import asyncio
import codecs
from collections.abc import AsyncIterator

from goose_like.agent.slash_context import Desk
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Reminded
from goose_like.core.output_limit import Output
from goose_like.workspace.workspace import Process

STOP_GRACE_S = 0.07


async def run_own_command(desk: Desk, command: str) -> None:
    """Runs it in the workspace with the person's own rights; what it printed is recorded for the model."""
    exchange = desk.exchange
    desk.show(f"! {command}")
    number = len(exchange.history.messages)
    output = Output(exchange.session.outputs / f"own-{number}.txt", exchange.limits.output_bytes)
    end = "interrupted"
    try:
        process = await exchange.workspace.spawn(["bash", "-c", command], access="full", is_own=True)
        try:
            async for lines in _lines(process, output):
                desk.show(lines)
            end = f"exit code {await process.wait()}"
        except BaseException:
            await asyncio.shield(process.stop(STOP_GRACE_S))
            raise
    except GooseLikeError as error:
        end = str(error)
    finally:
        output.close()
        if end != "exit code 0":
            desk.show(f"[{end}]")
        exchange.journal.emit(Reminded(text=f"The person ran `{command}`:\n{output.for_model()}\n[{end}]"))


async def _lines(process: Process, output: Output) -> AsyncIterator[str]:
    """The output as whole lines, as many as there are; at the end the last one, whole or not."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    while chunk := await process.read():
        output.write(chunk)
        lines, _, rest = (rest + decoder.decode(chunk)).rpartition("\n")
        if lines:
            yield lines
    if rest := rest + decoder.decode(b"", final=True):
        yield rest
