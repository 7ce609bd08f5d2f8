"""The outline of a Python file: signatures and docstrings of what it defines."""

import ast
import copy
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from goose_like.core.tool import ToolError

Detail = Literal["docstrings", "signatures", "names"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef


def parse_source(source: str, what: str) -> ast.Module:
    """Parse and compile Python source. `what` names the source in errors.

    Raises:
        ToolError: the source does not compile. The message has the line.
    """
    try:
        return _parse(source)
    except SyntaxError as error:
        line = f" in line {error.lineno}" if error.lineno else ""
        raise ToolError(f"{what} has a syntax error{line}: {error.msg}; correct it") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ToolError(f"{what} can't be read as Python: {error}; correct it") from error


@lru_cache(maxsize=2)
def _parse(source: str) -> ast.Module:
    # Cached: each round parses the same library several times, and nothing modifies the tree.
    with warnings.catch_warnings(action="ignore"):  # Python warns again when the code runs
        tree = ast.parse(source)
        compile(tree, "<library>", "exec", dont_inherit=True)
    return tree


@lru_cache(maxsize=4)
def build_outline(source: str, detail: Detail = "docstrings") -> tuple[str, ...]:
    """Describe each public top-level function, class and constant of a file, one text per definition.

    Docstrings are cut to their first paragraph. A class shows its fields and public methods. For source that does not
    compile, the only text is the error.
    """
    try:
        tree = parse_source(source.removeprefix("\ufeff"), "the file")
        return tuple(text for node in tree.body for text in _describe(node, detail))
    except (ToolError, RecursionError) as error:
        return (f"[{error}]",)


def _describe(node: ast.stmt, detail: Detail) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            if not name.startswith("_"):
                text = name if detail == "names" else ast.unparse(_shorten(node, detail))
                yield "\n".join(filter(None, text.split("\n")))
        case ast.Assign():
            names = "\n".join(one.id for one in ast.walk(node) if isinstance(one, ast.Name) and _is_public(one))
            if names:
                yield names if detail == "names" else names.replace("\n", " = ...\n") + " = ..."
        case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
            yield name if detail == "names" else f"{name}: {ast.unparse(node.annotation)}"


def _shorten(node: _Definition, detail: Detail, indent: str = "    ") -> ast.stmt:
    """Return a copy of a definition without code: only the docstring, and in a class the fields and public methods."""
    short, body = copy.copy(node), list[ast.stmt]()
    if detail == "docstrings" and (docstring := ast.get_docstring(node)):
        first, *more = docstring.split("\n\n")[0].split("\n")
        text = "\n".join([first, *(f"{indent}{line}" for line in more), indent]) if more else first
        body.append(ast.Expr(ast.Constant(text)))
    for child in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(child, _Function) and (child.name == "__init__" or not child.name.startswith("_")):
            body.append(_shorten(child, detail, indent * 2))
        elif isinstance(child, ast.AnnAssign) and _is_public(child.target):
            body.append(child)
    short.body = body
    return short


def _is_public(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not node.id.startswith("_")
