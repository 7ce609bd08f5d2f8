"""Check of type annotations in text form, which libraries evaluate when they resolve types."""

import ast
from collections.abc import Callable

_NAMES = (ast.Expression, ast.Name, ast.Load, ast.Subscript, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.BitOr)
_STRIPPED = "* \t\r\n\f"  # typing strips these characters before it evaluates the text


def check_annotation(annotation: str | ast.expr, refuse: Callable[[str], object]) -> None:
    """Refuse an annotation that does more than name types, because no guard runs when a library evaluates it."""
    try:
        tree: ast.AST
        if isinstance(annotation, str):
            tree = ast.parse(f"({annotation.strip(_STRIPPED)}\n)", mode="eval")
        else:
            tree = annotation
    except (SyntaxError, ValueError, RecursionError):
        return  # no library can evaluate the text
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_shallow = isinstance(node.value, ast.Name) or ast.unparse(node.value) == "collections.abc"
            is_plain = is_shallow and not node.attr.startswith("_")
        else:
            is_plain = isinstance(node, _NAMES)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            check_annotation(node.value, refuse)
        if not is_plain:
            refuse("an annotation names types, one dot deep: compute nothing in it")
            return
