"""Names that the code of a cell reads and binds."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator


def find_names(code: str, candidates: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the candidates that the code reads, and those that it binds.

    If the code is not plain Python, every candidate that occurs as a word counts as read and bound.
    """
    words = set(re.findall(r"\w+", code)).intersection(candidates)
    if not words:
        return set(), set()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compilation of the cell reports them
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return words, set(words)
    read = set()
    bound = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id not in words:
            continue
        if isinstance(node.ctx, ast.Load):
            read.add(node.id)
        else:
            bound.add(node.id)
    return read, bound


def list_parents(dotted: str) -> set[str]:
    """Return a dotted name and the names around it: `a.b.c`, `a.b` and `a`."""
    parts = dotted.split(".")
    return {".".join(parts[:count]) for count in range(1, len(parts) + 1)}


def list_bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a cell binds anywhere; such a name need not be a builtin."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            yield node.name or ""
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


def list_imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that a cell imports, with its full name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        home = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            root = alias.name.partition(".")[0]
            if alias.asname:
                yield alias.asname, home + alias.name
            else:
                yield root, home + root
