"""Compare cells of `run_python` with jupyter_client alone. `python bench/kernel.py [--rounds N]`.

First cell: from the call to its answer, including the import of jupyter_client. The floor starts a kernel with
AsyncKernelManager and runs a first cell, once with the import and once without. Round trip: the cell `1`, compared with
AsyncKernelClient.execute and the same messages. Each round starts new kernels.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

CELLS, WARM_UP = 300, 50
TARGET_FIRST, TARGET_ROUND_TRIP = 1.15, 1.3


async def measure_round_trip_s(cell: Callable[[], Awaitable[object]]) -> float:
    """Return the median seconds of a cell."""
    took = []
    for number in range(WARM_UP + CELLS):
        began = time.perf_counter()
        await cell()
        if number >= WARM_UP:
            took.append(time.perf_counter() - began)
    return statistics.median(took)


async def measure_bare() -> dict[str, float]:
    """Measure jupyter_client as its documentation shows it."""
    before = time.perf_counter()
    from jupyter_client.manager import start_new_async_kernel

    began = time.perf_counter()
    manager, client = await start_new_async_kernel()

    async def cell() -> None:
        sent = client.execute("1")
        while True:
            message = await client.get_iopub_msg()
            is_ours = message["parent_header"].get("msg_id") == sent
            if is_ours and message["content"].get("execution_state") == "idle":
                break
        while (await client.get_shell_msg())["parent_header"]["msg_id"] != sent:
            pass

    await cell()
    first = time.perf_counter()
    trip = await measure_round_trip_s(cell)
    client.stop_channels()
    await manager.shutdown_kernel(now=True)
    return {"first": first - began, "first with import": first - before, "trip": trip}


async def measure_ours(mode: str) -> dict[str, float]:
    """Measure the toolkit, called as the exchange calls it."""
    import tempfile
    from pathlib import Path

    from tests.toolkits.code.cell_harness import open_harness

    with tempfile.TemporaryDirectory() as folder:
        async with open_harness(Path(folder), mode) as made:  # type: ignore[arg-type]
            await made.workspace.run_internal(["true"])  # a session has entered its sandbox before the first cell
            began = time.perf_counter()
            await made.run("1")
            first = time.perf_counter() - began
            trip = await measure_round_trip_s(lambda: made.run("1"))
    return {"first": first, "trip": trip}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asyncio.run(measure_bare() if options.one == "bare" else measure_ours(options.one))))
        return
    kinds = ("bare", "workspace", "full")
    results: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        for kind in kinds:
            command = [sys.executable, __file__, "--one", kind]
            ended = subprocess.run(command, capture_output=True, text=True, check=True)
            results[kind].append(json.loads(ended.stdout.splitlines()[-1]))

    def median(kind: str, name: str) -> float:
        return statistics.median(one[name] for one in results[kind])

    first, imported, trip = (median("bare", name) for name in ("first", "first with import", "trip"))
    print(f"bare: first cell {first:.2f} s ({imported:.2f} s with the import), round trip {trip * 1000:.2f} ms")
    for kind in kinds[1:]:
        mine, round_trip = median(kind, "first"), median(kind, "trip")
        print(
            f"{kind}: first cell {mine:.2f} s, {mine / first:.2f}x ({mine / imported:.2f}x with the import; "
            f"wanted: {TARGET_FIRST}x), round trip {round_trip * 1000:.2f} ms, {round_trip / trip:.2f}x "
            f"(wanted: {TARGET_ROUND_TRIP}x)"
        )


if __name__ == "__main__":
    main()
