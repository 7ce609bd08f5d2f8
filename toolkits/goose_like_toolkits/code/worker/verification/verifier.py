"""Verification: a cell that breaks the person's rules is refused before it runs, or at the step that would break them.

What it looks at is the syntax tree, as IPython is about to compile it, and at run time each attribute, import, builtin
and callee, by its value: a name or a path that leads somewhere by a detour comes to the same object. It lives in the
process that it watches, though. It promises nothing about what libraries and plugins do themselves, so that an allowed
library which runs text as code (a formula, a template), starts programs or reads files does that for a cell too; nor
about files that a cell writes and something else runs, packages that it installs, or a fault in an extension module.
What a cell may reach in the worst case is for the sandbox to say.
"""

import ast
import os
import sys
from typing import Any

from IPython.core.inputtransformer2 import leading_empty_lines, leading_indent
from IPython.core.interactiveshell import InteractiveShell

from .guards import Guards
from .rewriter import Cell
from .rules import Refused, Rules


def install(shell: InteractiveShell, config: dict[str, Any] | None) -> None:
    """From now on each cell of this shell is verified; with None nothing is done, and nothing costs anything.

    Raises:
        ValueError: The rules contradict each other.
    """
    if config is not None:
        shell.ast_transformers.append(Verification(shell, Rules(config)))


class Verification(ast.NodeTransformer):
    """What IPython gives the tree of each cell to."""

    def __init__(self, shell: InteractiveShell, rules: Rules) -> None:
        self._shell = shell
        self._rules = rules
        self._guards = Guards(shell, rules)
        self._lines: list[str] = []
        self._home = os.path.realpath(os.getcwd())
        for name in ("get_ipython", "exit", "quit", "open", "__builtin__"):
            shell.user_ns.pop(name, None)
        self._shut()
        # IPython takes blank lines at the top away, so that all lines that are told would be off by them.
        first = shell.input_transformer_manager.cleanup_transforms
        first[first.index(leading_empty_lines)] = self._read

    def _read(self, lines: list[str]) -> list[str]:
        self._lines = lines
        blank = next((index for index, line in enumerate(lines) if line.strip()), 0)
        rest: list[str] = leading_indent(lines[blank:])
        return ["\n"] * blank + rest

    def _shut(self) -> None:
        """Cells see the guards' builtins; nothing imports what they write into the workspace."""
        self._shell.user_ns["__builtins__"] = self._guards.builtins
        sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) != self._home]

    def visit(self, tree: ast.AST) -> ast.AST:
        """The tree with its guards.

        Raises:
            Refused: Each line that can't be right, and why. IPython would go on without us after any other exception.
        """
        try:
            self._shut()
            self._guards.forget()
            cell = Cell(self._rules, tree, self._shell)
            guarded: ast.AST = cell.visit(tree)
        except Exception as error:
            raise Refused(f"the code can't be verified ({type(error).__name__}: {error}): write it simpler") from None
        if cell.faults:
            raise Refused("\n".join(self._told(line, why) for line, why in sorted(cell.faults)))
        return ast.fix_missing_locations(guarded)

    def _told(self, line: int, why: str) -> str:
        text = self._lines[line - 1].strip() if line <= len(self._lines) else ""
        return f"Error on line {line}: {text} => {why}"
