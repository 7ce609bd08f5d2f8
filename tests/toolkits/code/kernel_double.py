"""Plays a kernel for tests: a real IPython shell with a Desk in a process of its own, as in the kernel.

Run with the folder of the package `goose_like_kernel`. Steps come as a JSON list on stdin: `{"take": MESSAGE}`,
`{"cell": CODE}`, or `{"write": [FILE, TEXT]}`. What happened goes to stdout as JSON: for each cell `{"out", "error",
"value"}`, and in `told` all that the desk told the host.
"""

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path


def main() -> None:
    sys.path.append(sys.argv[1])
    from goose_like_kernel.desk import Desk
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.ast_node_interactivity = "last_expr_or_assign"
    shell = InteractiveShell.instance(colors="nocolor", history_length=0)
    shell.history_manager.enabled = False
    told: list[dict] = []
    before = set(os.environ)
    desk = Desk(shell.user_ns, told.append)
    cells = []
    for step in json.load(sys.stdin):
        if "take" in step:
            with redirect_stdout(io.StringIO()):  # what a plugin's test prints
                desk.take(step["take"])
        elif "write" in step:
            Path(step["write"][0]).write_text(step["write"][1])
        else:
            cells.append(run(shell, desk, step["cell"]))
    json.dump({"cells": cells, "told": told, "environment": sorted(set(os.environ) - before)}, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # plugins may have left threads


def run(shell, desk, code: str) -> dict:
    out = io.StringIO()
    interrupted = None
    with redirect_stdout(out), redirect_stderr(out):
        try:
            desk.before_cell(code)
        except KeyboardInterrupt:
            interrupted = "KeyboardInterrupt: "
        result = None if interrupted else shell.run_cell(code)
        desk.after_cell()
    error = result and (result.error_before_exec or result.error_in_exec)
    told = f"{type(error).__name__}: {error}" if error else interrupted
    return {"out": out.getvalue(), "error": told, "value": repr(result.result) if result else None}


if __name__ == "__main__":
    main()
