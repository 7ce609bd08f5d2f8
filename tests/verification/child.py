"""Runs sessions of cells in IPython shells and tells what came of them; a process of its own for the tests.

Each line of stdin is JSON, {"rules": {...} | null, "sessions": {name: [cell, ...]}}, and is answered by a line
{name: {"output", "errors", "reached"}}. What calls os.system or opens the
file `f` is stopped and noted.
"""

import json
import os
import random
import sys
import types
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

from goose_like_kernel.verification import install
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

reached: list[str] = []


class Stopped(BaseException):
    pass


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.system" or (event == "open" and arguments[0] == "f"):
        reached.append(event)
        raise Stopped(event)


class Base:
    pass


class Doubled(Base):
    system = staticmethod(os.system)

    def __call__(self, n: int) -> int:
        return 2 * n


Base.__module__ = "goose_like_kernel.context"
Doubled.__module__ = "taskweaver_ext.plugin.doubled"


class Shell(InteractiveShell):
    def showtraceback(self, *_: object, **__: object) -> None:
        print(sys.exc_info()[1])


def run(cells: list[str], rules: dict[str, object] | None) -> dict[str, object]:
    config = Config()
    config.InteractiveShell.ast_node_interactivity = "last_expr_or_assign"
    config.HistoryManager.enabled = False
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    shell = Shell(config=config, user_module=module)
    Shell._instance = InteractiveShell._instance = shell
    shell.user_ns["doubled"] = Doubled()
    path = list(sys.path)
    sys.path.insert(0, "")
    install(shell, rules)
    reached.clear()
    random.seed(0)
    errors = []
    with redirect_stdout(StringIO()) as output, redirect_stderr(output):
        for cell in cells:
            result = shell.run_cell(cell, store_history=True)
            if error := result.error_before_exec or result.error_in_exec:
                errors.append(f"{type(error).__name__}: {error}")
    sys.path[:] = path
    for name in [name for name in sys.modules if name.startswith("evil")]:
        del sys.modules[name]
    return {"output": output.getvalue(), "errors": errors, "reached": list(reached)}


def main() -> None:
    answers = sys.stdout
    sys.addaudithook(watch)
    for line in sys.stdin:
        given = json.loads(line)
        told = {name: run(cells, given["rules"]) for name, cells in given["sessions"].items()}
        print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main()
