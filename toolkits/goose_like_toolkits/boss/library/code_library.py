"""The code library: one Python file of functions, classes and constants, each defined once, and its outline."""

import ast
import copy
import keyword
import re
import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from goose_like.core.tool import ToolError

Detail = Literal["docstrings", "signatures", "names"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef

_HEADER = re.compile(r"#!|#.*coding[:=]")  # these comments must stay in the first two lines
_ADVICE = "save imports, functions, classes and constants; run other code with run_code"


class _Statement(NamedTuple):
    """A top-level statement in the lines `start` to `end` (exclusive), with the comments directly above it.

    `name` is the one name that it defines, or empty.
    """

    node: ast.stmt
    name: str
    start: int
    end: int
    text: str


class _Import(NamedTuple):
    """One imported name: its statement, the name that it binds, and the full name of the imported thing."""

    text: str
    bound: str
    meaning: str


def save_draft(source: str, draft: str, *, replace: bool = False, module: str = "", tests: str = "") -> str:
    """Return the library source with the definitions of the draft added; all other definitions stay unchanged.

    A different definition of the same name is replaced only with `replace`; then imports go that only the old one used,
    unless the `tests` use them. Imports from the library itself, `module`, are left out. Raise ToolError for a syntax
    error, a statement that defines nothing, or a name with another meaning.
    """
    mark = "\ufeff" if source.startswith("\ufeff") else ""
    newline = "\r\n" if "\r\n" in source else "\n"
    text = source.removeprefix(mark).replace("\r\n", "\n")
    old, new = _split(text, "the library"), _split_draft(draft)
    known = {one.name: one for one in old if one.name}
    definitions = [one for one in new if one.name]
    if not definitions:
        raise ToolError(f"the draft defines nothing; {_ADVICE}")
    imports = _find_new_imports(old, new, module)
    changed = [one.name for one in definitions if one.name in known and known[one.name].text != one.text]
    if changed and not replace:
        names = ", ".join(map(repr, changed))
        raise ToolError(f"the library has another {names}; call save_code with replace=true to replace, or rename it")
    lines, added = text.rstrip("\n").split("\n"), list[str]()
    edits = []
    for one in definitions:
        if one.name not in known:
            added.append(one.text)
        elif one.name in changed:  # it may need the new ones, so they go above it
            was = known[one.name]
            edits.append((was.start, was.end, "\n\n\n".join([*added, one.text])))
            added = []
    if not (edits or added or imports):
        return source
    for start, end, replacement in sorted([*edits, *_place_imports(lines, old, imports)], reverse=True):
        lines[start:end] = [replacement]
    result = "\n\n\n".join(filter(None, ["\n".join(lines).rstrip("\n"), *added])) + "\n"
    parse_source(result, "the library would be wrong: it")
    replaced = "\n".join(known[name].text for name in changed)
    wanted = {one.text for each in new for one in _list_imports(each.node)}
    result = _drop_unused_imports(result, replaced, wanted, tests)
    return mark + result.replace("\n", newline)


def list_definitions(draft: str) -> list[str]:
    """List the names that a draft defines. Raise ToolError if the draft can't be saved."""
    return [one.name for one in _split_draft(draft) if one.name]


def get_module_name(path: str | Path) -> str:
    """Return the module name of a file. Raise ToolError if it has none, or that of a standard library module."""
    file = Path(path)
    name = file.stem
    if file.suffix != ".py" or not name.isidentifier() or keyword.iskeyword(name) or name == "__main__":
        raise ToolError(f"{file.name!r} can't be imported; name the library's file like `library.py`")
    if name in sys.stdlib_module_names:
        raise ToolError(f"{file.name!r} has the name of a standard library module; rename it, like `library.py`")
    return name


def _split(source: str, what: str) -> list[_Statement]:
    lines, statements, end = source.split("\n"), list[_Statement](), 0
    names: set[str] = set()
    for node in parse_source(source, what).body:
        name = _get_name(node)
        start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]) - 1
        if start < end:
            raise ToolError(f"line {end} of {what} holds two statements; give each a line of its own")
        if name in names:
            raise ToolError(f"{what} defines {name!r} twice, in line {node.lineno} again; leave one of them")
        if name:
            names.add(name)
        while start > end and lines[start - 1].startswith("#") and not _HEADER.match(lines[start - 1]):
            start -= 1
        end = node.end_lineno or node.lineno
        statements.append(_Statement(node, name, start, end, "\n".join(lines[start:end])))
    return statements


def _split_draft(draft: str) -> list[_Statement]:
    """Split a draft. Raise ToolError if a top-level statement is neither an import nor a definition."""
    text = draft.removeprefix("\ufeff").replace("\r\n", "\n")
    statements = _split(text, "the draft")
    for node, name, *_ in statements:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not name and not isinstance(node, ast.Import | ast.ImportFrom):
            line = text.split("\n")[node.lineno - 1].strip()[:80]
            raise ToolError(f"line {node.lineno} of the draft, `{line}`, defines nothing; leave it out: {_ADVICE}")
    return statements


def _get_name(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return ""


def _place_imports(
    lines: list[str], old: Sequence[_Statement], imports: Sequence[_Import]
) -> Iterator[tuple[int, int, str]]:
    """Yield edits that put new imports below the existing ones, and those of `__future__` below the docstring."""
    place = next((number for number, line in enumerate(lines[:2]) if not _HEADER.match(line)), len(lines[:2]))
    future_place = place
    for number, (node, _, _, end, _) in enumerate(old):
        if number == 0 and isinstance(node, ast.Expr):
            place = future_place = end
        elif isinstance(node, ast.Import | ast.ImportFrom):
            place = end
        else:
            break
    for is_future, line in ((True, future_place), (False, place)):
        texts = [one.text for one in imports if one.meaning.startswith("__future__.") == is_future]
        if texts:
            above = [""] if line and not lines[line - 1].startswith(("import ", "from ")) else []
            below = [""] if lines[line:] and lines[line].strip() else []
            yield line, line, "\n".join([*above, *texts, *below])


def _find_new_imports(old: Sequence[_Statement], new: Sequence[_Statement], module: str) -> list[_Import]:
    """Return the imports of the draft that the library lacks. Raise ToolError if a name would get a second meaning."""
    defined = {one.name for one in (*old, *new) if one.name}
    meanings = {one.bound: one.meaning for each in old for one in _list_imports(each.node)}
    known = {one.text for each in old for one in _list_imports(each.node)}
    if taken := [one.name for one in new if one.name in meanings]:
        raise ToolError(f"the library imports another {taken[0]!r}; choose another name")
    found: dict[str, _Import] = {}
    for line, one in ((each.node.lineno, one) for each in new for one in _list_imports(each.node)):
        owner, _, name = one.meaning.rpartition(".")
        if module and module in (owner, one.meaning):
            if owner and one.bound == name and name in defined:
                continue
            raise ToolError(
                f"line {line} of the draft imports the library, but becomes part of it; remove that import and use the "
                "names of the library directly"
            )
        if one.bound in defined or meanings.setdefault(one.bound, one.meaning) != one.meaning:
            raise ToolError(f"`{one.text}` takes the name {one.bound!r}, which means something else; use `as`")
        if one.text not in known:
            found[one.text] = one
    return list(found.values())


def _drop_unused_imports(source: str, replaced: str, wanted: Collection[str], tests: str) -> str:
    """Drop the imports that `replaced` definitions used, and that are neither `wanted` nor used any more."""
    statements = _split(source, "the library")
    others = [one.text for one in statements if not isinstance(one.node, ast.Import | ast.ImportFrom)]
    rest = "\n".join([*others, tests])
    lines = source.split("\n")
    has_changed = False
    for one in reversed(statements):
        kept = []
        for each in _list_imports(one.node):
            is_used = each.text in wanted or _has_name(rest, each.bound)
            if is_used or not _has_name(replaced, each.bound):
                kept.append(each.text)
        if len(kept) < len(list(_list_imports(one.node))):
            lines[one.node.lineno - 1 : one.end] = kept
            has_changed = True
    return "\n".join(lines).lstrip("\n") if has_changed else source


def _has_name(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _list_imports(node: ast.stmt) -> Iterator[_Import]:
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            meaning = f"{module}.{alias.name}"
            bound = meaning if alias.name == "*" else alias.asname or alias.name
            yield _Import(f"from {module} import {ast.unparse(alias)}", bound, meaning)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.partition(".")[0]
            yield _Import(f"import {ast.unparse(alias)}", alias.asname or root, alias.name if alias.asname else root)


def parse_source(source: str, what: str) -> ast.Module:
    """Parse and compile Python source, named `what` in errors. Raise ToolError with the line if it does not compile."""
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
            if _is_public(name):
                text = name if detail == "names" else ast.unparse(_shorten(node, detail))
                yield "\n".join(filter(None, text.split("\n")))
        case ast.Assign(targets=targets):
            for name in filter(_is_public, (name for target in targets for name in _list_targets(target))):
                yield name if detail == "names" else f"{name} = ..."
        case ast.AnnAssign(target=ast.Name(id=name)) if _is_public(name):
            yield name if detail == "names" else f"{name}: {ast.unparse(node.annotation)}"


def _shorten(node: _Definition, detail: Detail) -> ast.stmt:
    """Return a copy of a definition without code: only the docstring, and in a class the fields and public methods."""
    short, body = copy.copy(node), list[ast.stmt]()
    if detail == "docstrings" and (docstring := ast.get_docstring(node)):
        body.append(ast.Expr(ast.Constant(" ".join(docstring.split("\n\n")[0].split()))))
    for child in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(child, _Function) and (child.name == "__init__" or _is_public(child.name)):
            body.append(_shorten(child, detail))
        elif isinstance(child, ast.AnnAssign) and any(map(_is_public, _list_targets(child.target))):
            body.append(child)
    short.body = body
    return short


def _list_targets(target: ast.expr) -> list[str]:
    """List the names that an assignment defines. An item or attribute, such as `table["x"]`, defines none."""
    match target:
        case ast.Name(id=name):
            return [name]
        case ast.Starred(value=value):
            return _list_targets(value)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [name for part in parts for name in _list_targets(part)]
        case _:
            return []


def _is_public(name: str) -> bool:
    return not name.startswith("_")
