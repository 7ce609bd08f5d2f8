"""Source files as syntax trees."""

import ast
from functools import cache
from pathlib import Path


@cache
def parse(path: Path) -> ast.Module:
    """Parse a file once for all tests. Nobody may change the tree."""
    return ast.parse(path.read_text())
