"""Outline: what a Python file defines, as far as one must know it to use it."""

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from goose_like.toolkit import ToolError

Detail = Literal["docstrings", "signatures", "names"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def parsed(source: str, what: str) -> ast.Module:
    """The tree of a source text that compiles; `what` it is, for the error.

    Raises:
        ToolError: it does not, with the line.
    """
    try:
        return _tree(source)
    except SyntaxError as error:
        line = f" in line {error.lineno}" if error.lineno else ""
        raise ToolError(f"{what} has a syntax error{line}: {error.msg}; mend it") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ToolError(f"{what} can't be read as Python: {error}; mend it") from error


@lru_cache(maxsize=2)
def _tree(source: str) -> ast.Module:
    """Asked several times in a round, of a text that few of them change; nobody changes the tree."""
    with warnings.catch_warnings(action="ignore"):  # odd escapes are told to who runs it
        tree = ast.parse(source)
        compile(tree, "<library>", "exec", dont_inherit=True)
    return tree


def outline(source: str, detail: Detail = "docstrings") -> str:
    """The functions, classes and constants at a file's top, but for private ones; of one that does not compile, why.

    Of docstrings the first paragraph is shown, of classes their fields and public methods.
    """
    return "\n".join(entries(source, detail))


@lru_cache(maxsize=4)
def entries(source: str, detail: Detail = "docstrings") -> tuple[str, ...]:
    """The same, one text for each of them."""
    try:
        tree = parsed(source.removeprefix("\ufeff"), "the file")
        return tuple("\n".join(lines) for node in tree.body if (lines := list(_shown(node, detail))))
    except (ToolError, RecursionError) as error:
        return (f"[{error}]",)


def _shown(node: ast.stmt, detail: Detail) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node.name.startswith("_"):
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _function(node, detail)
        case ast.ClassDef():
            yield from _class(node, detail)
        case ast.Assign():
            names = (one.id for one in ast.walk(node) if isinstance(one, ast.Name) and _is_public(one))
            yield from (name if detail == "names" else f"{name} = ..." for name in names)
        case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
            yield name if detail == "names" else f"{name}: {ast.unparse(node.annotation)}"


def _function(node: _Function, detail: Detail) -> Iterator[str]:
    if detail == "names":
        yield node.name
        return
    yield from (f"@{ast.unparse(one)}" for one in node.decorator_list)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    yield f"{word} {node.name}({ast.unparse(node.args)}){returns}:"
    if detail == "docstrings":
        yield from _docstring(node)


def _class(node: ast.ClassDef, detail: Detail) -> Iterator[str]:
    if detail == "names":
        yield node.name
        return
    yield from (f"@{ast.unparse(one)}" for one in node.decorator_list)
    given = ", ".join(map(ast.unparse, [*node.bases, *node.keywords]))
    yield f"class {node.name}({given}):" if given else f"class {node.name}:"
    if detail == "docstrings":
        yield from _docstring(node)
    for below in node.body:
        if isinstance(below, _Function) and (below.name == "__init__" or not below.name.startswith("_")):
            yield from (f"    {line}" for line in _function(below, detail))
        elif isinstance(below, ast.AnnAssign) and _is_public(below.target):
            yield f"    {ast.unparse(below)}"


def _docstring(node: _Function | ast.ClassDef) -> Iterator[str]:
    if text := ast.get_docstring(node):
        first, *more = text.split("\n\n")[0].split("\n")
        if not more:
            yield f'    """{first}"""'
        else:
            yield from (f'    """{first}', *(f"    {line}" for line in more), '    """')


def _is_public(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not node.id.startswith("_")
