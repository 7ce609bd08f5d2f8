"""The verification of a shell's cells before and while they run."""

import ast
import os
import sys
from typing import Any

from IPython.core.inputtransformer2 import leading_empty_lines, leading_indent
from IPython.core.interactiveshell import InteractiveShell

from .guards import Guards
from .rewriter import CellRewriter
from .rules import Refused, Rules


def install_verification(shell: InteractiveShell, config: dict[str, Any] | None) -> None:
    """Verify each cell of this shell from now on; with None as config, do nothing."""
    if config is not None:
        shell.ast_transformers.append(Verifier(shell, Rules(config)))


class Verifier(ast.NodeTransformer):
    """A transformer to which IPython passes the tree of each cell."""

    def __init__(self, shell: InteractiveShell, rules: Rules) -> None:
        self._shell = shell
        self._rules = rules
        self._guards = Guards(shell, rules)
        self._lines: list[str] = []
        self._start_folder = os.path.realpath(os.getcwd())
        for name in ("get_ipython", "exit", "quit", "open", "__builtin__"):
            shell.user_ns.pop(name, None)
        self._restrict_shell()
        # IPython removes blank lines at the top, which would shift the reported line numbers.
        cleanup = shell.input_transformer_manager.cleanup_transforms
        cleanup[cleanup.index(leading_empty_lines)] = self._keep_empty_lines

    def _keep_empty_lines(self, lines: list[str]) -> list[str]:
        self._lines = lines
        blank = next((index for index, line in enumerate(lines) if line.strip()), 0)
        rest: list[str] = leading_indent(lines[blank:])
        return ["\n"] * blank + rest

    def _restrict_shell(self) -> None:
        """Give cells the guarded builtins, and keep files of the workspace from being imported."""
        self._shell.user_ns["__builtins__"] = self._guards.builtins
        sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) != self._start_folder]

    def visit(self, tree: ast.AST) -> ast.AST:
        """Return the tree with its guards.

        Raises:
            Refused: The cell breaks the rules. After any other exception IPython would drop this transformer.
        """
        try:
            self._restrict_shell()
            self._guards.forget()
            rewriter = CellRewriter(self._rules, tree, self._shell)
            guarded: ast.AST = rewriter.visit(tree)
        except Exception as error:
            raise Refused(f"the code can't be verified ({type(error).__name__}: {error}): write it simpler") from None
        if rewriter.faults:
            raise Refused("\n".join(self._format_fault(line, reason) for line, reason in sorted(rewriter.faults)))
        return ast.fix_missing_locations(guarded)

    def _format_fault(self, line: int, reason: str) -> str:
        text = self._lines[line - 1].strip() if line <= len(self._lines) else ""
        return f"Error on line {line}: {text} => {reason}"
