"""Hints: annotations that are text, which libraries run as code when they look for a type."""

import ast
from collections.abc import Callable

_HINTS = (ast.Expression, ast.Name, ast.Load, ast.Subscript, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.BitOr)
_STARS = "* \t\r\n\f"  # which typing takes before a name


def check_hint(text: str | ast.expr, refuse: Callable[[str], object]) -> None:
    """Refuse an annotation that is text, or becomes it, and does more than to name types: no guard is in it."""
    try:
        tree: ast.AST = ast.parse(f"({text.strip(_STARS)}\n)", mode="eval") if isinstance(text, str) else text
    except (SyntaxError, ValueError, RecursionError):
        return  # it can't run
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_shallow = isinstance(node.value, ast.Name) or ast.unparse(node.value) == "collections.abc"
            is_plain = is_shallow and not node.attr.startswith("_")
        else:
            is_plain = isinstance(node, _HINTS)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            check_hint(node.value, refuse)
        if not is_plain:
            refuse("an annotation names types, one dot deep: compute nothing in it")
            return
