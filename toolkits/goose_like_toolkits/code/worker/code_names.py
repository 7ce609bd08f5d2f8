"""Names that the code of a cell reads and binds."""

import ast
import re
import warnings
from collections.abc import Iterable


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
        return words, words
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in words]
    read = {node.id for node in nodes if isinstance(node.ctx, ast.Load)}
    return read, {node.id for node in nodes if not isinstance(node.ctx, ast.Load)}
