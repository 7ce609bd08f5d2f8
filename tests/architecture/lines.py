"""Measures of readable lines: syntax nodes on a line, conditional expressions, comprehensions, McCabe."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_MAX_CASE_STATEMENTS = 3


@dataclass
class Figures:
    """What was counted in the files of a package. `heavy` and `packed` are places; `complex` are functions."""

    lines: int = 0
    functions: int = 0
    heavy: list[str] = field(default_factory=list)  # more than 15 nodes
    packed: list[str] = field(default_factory=list)  # more than 20 nodes
    conditionals: int = 0
    comprehensions: int = 0
    tuple_assignments: list[str] = field(default_factory=list)
    complex: list[str] = field(default_factory=list)

    def per_thousand(self, count: int) -> float:
        """Return a count per 1,000 code lines."""
        return 1000 * count / max(self.lines, 1)


def measure_files(files: list[Path]) -> Figures:
    """Measure the code of some files together. Docstrings and comments do not count."""
    figures = Figures()
    for file in files:
        tree = ast.parse(file.read_text())
        _measure_lines(tree, file, figures)
        for node in ast.walk(tree):
            _measure_node(node, file, figures)
    return figures


def _measure_lines(tree: ast.Module, file: Path, figures: Figures) -> None:
    """Count the nodes that start on each line, and the lines with code."""
    docstrings = {id(node) for node in _iterate_docstrings(tree)}
    counts: Counter[int] = Counter()
    code_lines: set[int] = set()
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if id(node) in docstrings:
            continue
        stack += ast.iter_child_nodes(node)
        number = getattr(node, "lineno", None)
        if number is None:
            continue
        counts[number] += 1
        code_lines.add(number)
        code_lines.add(node.end_lineno or number)  # type: ignore[attr-defined]
    figures.lines += len(code_lines)
    for number, count in sorted(counts.items()):
        if count > 15:
            figures.heavy.append(f"{file.name}:{number}")
        if count > 20:
            figures.packed.append(f"{file.name}:{number}")


def _iterate_docstrings(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements that are a docstring, or a text below a constant."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", None) if isinstance(getattr(node, "body", None), list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield statement


def _measure_node(node: ast.AST, file: Path, figures: Figures) -> None:
    if isinstance(node, ast.IfExp):
        figures.conditionals += 1
    if isinstance(node, _COMPREHENSIONS):
        figures.comprehensions += 1
    if isinstance(node, ast.Assign) and _packs_values(node):
        figures.tuple_assignments.append(f"{file.name}:{node.lineno}")
    if isinstance(node, _FUNCTIONS):
        figures.functions += 1
        complexity = measure_complexity(node)
        if complexity > 10:
            figures.complex.append(f"{file.name}:{node.lineno} {node.name} {complexity}")


def _packs_values(node: ast.Assign) -> bool:
    """Return whether an assignment packs unrelated values, as in `a, b = 1, 2`. A swap is none."""
    target = node.targets[0]
    if not (isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)):
        return False
    names = {ast.unparse(each) for each in target.elts}
    values = {ast.unparse(each) for each in node.value.elts}
    return names != values


def measure_complexity(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return McCabe's complexity of a function. Boolean operators and conditional expressions do not count.

    An exhaustive `match` counts as one branch if no case has more than three statements.
    """
    return 1 + sum(map(_count_branches, function.body))


def _count_branches(node: ast.AST) -> int:
    if isinstance(node, ast.Match) and _is_plain_match(node):
        return 1
    count = 0
    if isinstance(node, ast.If | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.match_case):
        count = 1
    if isinstance(node, _FUNCTIONS):
        count = 1
    if isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.Try) and node.orelse:
        count += 1
    return count + sum(map(_count_branches, ast.iter_child_nodes(node)))


def _is_plain_match(node: ast.Match) -> bool:
    is_exhaustive = "assert_never" in ast.unparse(node.cases[-1])
    return is_exhaustive and all(len(case.body) <= _MAX_CASE_STATEMENTS for case in node.cases)
