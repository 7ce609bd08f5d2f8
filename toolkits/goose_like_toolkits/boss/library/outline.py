"""The outline of a Python file: signatures and docstrings of what it defines."""

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from goose_like.core.tool import ToolError

Detail = Literal["docstrings", "signatures", "names"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef


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
        return tuple("\n".join(lines) for node in tree.body if (lines := list(_describe(node, detail))))
    except (ToolError, RecursionError) as error:
        return (f"[{error}]",)


def _describe(node: ast.stmt, detail: Detail) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node.name.startswith("_"):
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _describe_function(node, detail)
        case ast.ClassDef():
            yield from _describe_class(node, detail)
        case ast.Assign():
            names = (one.id for one in ast.walk(node) if isinstance(one, ast.Name) and _is_public(one))
            yield from (name if detail == "names" else f"{name} = ..." for name in names)
        case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
            yield name if detail == "names" else f"{name}: {ast.unparse(node.annotation)}"


def _describe_function(node: _Function, detail: Detail) -> Iterator[str]:
    if detail == "names":
        yield node.name
        return
    yield from (f"@{ast.unparse(one)}" for one in node.decorator_list)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    keyword = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    yield f"{keyword} {node.name}({ast.unparse(node.args)}){returns}:"
    if detail == "docstrings":
        yield from _quote_docstring(node)


def _describe_class(node: ast.ClassDef, detail: Detail) -> Iterator[str]:
    if detail == "names":
        yield node.name
        return
    yield from (f"@{ast.unparse(one)}" for one in node.decorator_list)
    bases = ", ".join(map(ast.unparse, [*node.bases, *node.keywords]))
    yield f"class {node.name}({bases}):" if bases else f"class {node.name}:"
    if detail == "docstrings":
        yield from _quote_docstring(node)
    for child in node.body:
        if isinstance(child, _Function) and (child.name == "__init__" or not child.name.startswith("_")):
            yield from (f"    {line}" for line in _describe_function(child, detail))
        elif isinstance(child, ast.AnnAssign) and _is_public(child.target):
            yield f"    {ast.unparse(child)}"


def _quote_docstring(node: _Function | ast.ClassDef) -> Iterator[str]:
    if text := ast.get_docstring(node):
        first, *more = text.split("\n\n")[0].split("\n")
        if more:
            yield from (f'    """{first}', *(f"    {line}" for line in more), '    """')
        else:
            yield f'    """{first}"""'


def _is_public(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not node.id.startswith("_")
