"""A stand-in for the kernel: a real IPython shell with a plugin manager, in its own process.

The argument is the folder of the package `goose_like_kernel`. Standard input has a JSON list of steps:
`{"take": MESSAGE}`, `{"cell": CODE}` or `{"write": [FILE, TEXT]}`. Standard output gets JSON: `{"out", "error",
"value"}` for each cell, and the messages that the plugin manager sends to the host.

Without the argument, it imports the libraries for data, and forks for each line of standard input: a JSON object with
the package, the steps, the folder and the environment. The answer is a line of standard output.
"""

import gc
import importlib
import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

LIBRARIES = ("IPython.core.interactiveshell", "pandas", "matplotlib.figure", "matplotlib.font_manager", "duckdb")


def serve() -> tuple[str, list]:
    """Fork for each line of standard input, and return the package and the steps in the forked process."""
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        answer, output = os.pipe()
        child = os.fork()
        if not child:
            os.dup2(output, 1)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.stdin = io.StringIO()
            os.chdir(request["folder"])
            os.environ.clear()
            os.environ.update(request["env"])
            return request["package"], request["steps"]
        os.close(output)
        with open(answer) as file:
            text = file.read()
        os.waitpid(child, 0)
        print(text, flush=True)
    sys.exit()


def main(package: str, steps: list) -> None:
    sys.path.append(package)
    from goose_like_kernel.plugin_manager import PluginManager
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.ast_node_interactivity = "last_expr_or_assign"
    shell = InteractiveShell.instance(colors="nocolor", history_length=0)
    shell.history_manager.enabled = False
    messages: list[dict] = []
    before = set(os.environ)
    manager = PluginManager(shell.user_ns, messages.append)
    cells = []
    for step in steps:
        if "take" in step:
            with redirect_stdout(io.StringIO()):  # what a plugin's test prints
                manager.handle(step["take"])
        elif "write" in step:
            Path(step["write"][0]).write_text(step["write"][1])
        else:
            cells.append(run(shell, manager, step["cell"]))
    json.dump({"cells": cells, "messages": messages, "environment": sorted(set(os.environ) - before)}, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # plugins may have left threads


def run(shell, manager, code: str) -> dict:
    out = io.StringIO()
    interrupted = None
    with redirect_stdout(out), redirect_stderr(out):
        try:
            manager.before_cell(code)
        except KeyboardInterrupt:
            interrupted = "KeyboardInterrupt: "
        result = None if interrupted else shell.run_cell(code)
        manager.after_cell()
    error = result and (result.error_before_exec or result.error_in_exec)
    text = f"{type(error).__name__}: {error}" if error else interrupted
    return {"out": out.getvalue(), "error": text, "value": repr(result.result) if result else None}


if __name__ == "__main__":
    main(*(serve() if len(sys.argv) == 1 else (sys.argv[1], json.load(sys.stdin))))
