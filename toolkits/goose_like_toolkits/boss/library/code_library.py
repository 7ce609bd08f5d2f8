"""The code library: one Python file of functions, classes and constants, each defined once, and its outline."""

import ast
import copy
import keyword
import re
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
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


class _Edit(NamedTuple):
    """A text in place of the lines `start` to `end` (exclusive)."""

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
    old = _split(text, "the library")
    new = _split_draft(draft)
    definitions = [one for one in new if one.name]
    if not definitions:
        raise ToolError(f"the draft defines nothing; {_ADVICE}")
    imports = _find_new_imports(old, new, module)
    replaced = _find_replaced(old, definitions)
    if replaced and not replace:
        names = ", ".join(map(repr, replaced))
        raise ToolError(f"the library has another {names}; call save_code with replace=true to replace, or rename it")
    edits, added = _place_definitions(old, definitions, replaced)
    if not (edits or added or imports):
        return source
    lines = text.rstrip("\n").split("\n")
    edits += _place_imports(lines, old, imports)
    edits.sort(key=lambda edit: (edit.start, edit.end))
    # From the end, so that the numbers of the lines above stay true. Imports of `__future__` end up above the others.
    for edit in reversed(edits):
        lines[edit.start : edit.end] = [edit.text]
    body = "\n".join(lines).rstrip("\n")
    result = "\n\n\n".join(filter(None, [body, *added])) + "\n"
    parse_source(result, "the library would be wrong: it")
    replaced_text = "\n".join(one.text for one in replaced.values())
    wanted = {one.text for one in _list_all_imports(new)}
    result = _drop_unused_imports(result, replaced_text, wanted, tests)
    return mark + result.replace("\n", newline)


def _find_replaced(old: Sequence[_Statement], definitions: Sequence[_Statement]) -> dict[str, _Statement]:
    """Return the statements of the library that define something else under a name of the draft, by that name."""
    known = {one.name: one for one in old}
    replaced = {}
    for one in definitions:
        if one.name in known and known[one.name].text != one.text:
            replaced[one.name] = known[one.name]
    return replaced


def _place_definitions(
    old: Sequence[_Statement], definitions: Sequence[_Statement], replaced: Mapping[str, _Statement]
) -> tuple[list[_Edit], list[str]]:
    """Return edits that replace definitions, and the texts to add below the library."""
    known = {one.name for one in old}
    edits = []
    added: list[str] = []
    for one in definitions:
        if one.name not in known:
            added.append(one.text)
        elif one.name in replaced:
            was = replaced[one.name]
            # A definition may need the new ones, so they go above it.
            edits.append(_Edit(was.start, was.end, "\n\n\n".join([*added, one.text])))
            added = []
    return edits, added


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
    lines = source.split("\n")
    statements = []
    names: set[str] = set()
    end = 0
    for node in parse_source(source, what).body:
        name = _get_name(node)
        start = _find_start(node)
        if start < end:
            raise ToolError(f"line {end} of {what} holds two statements; give each a line of its own")
        if name in names:
            raise ToolError(f"{what} defines {name!r} twice, in line {node.lineno} again; leave one of them")
        if name:
            names.add(name)
        while start > end and _is_movable_comment(lines[start - 1]):
            start -= 1
        end = node.end_lineno or node.lineno
        statements.append(_Statement(node, name, start, end, "\n".join(lines[start:end])))
    return statements


def _find_start(node: ast.stmt) -> int:
    """Return the index of the first line of a statement, which may be that of a decorator."""
    number = node.lineno
    if isinstance(node, _Definition) and node.decorator_list:
        number = node.decorator_list[0].lineno
    return number - 1


def _is_movable_comment(line: str) -> bool:
    return line.startswith("#") and not _HEADER.match(line)


def _split_draft(draft: str) -> list[_Statement]:
    """Split a draft. Raise ToolError if a top-level statement is neither an import nor a definition."""
    text = draft.removeprefix("\ufeff").replace("\r\n", "\n")
    statements = _split(text, "the draft")
    for one in statements:
        node = one.node
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (one.name or is_import or is_text):
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


def _place_imports(lines: Sequence[str], old: Sequence[_Statement], imports: Sequence[_Import]) -> Iterator[_Edit]:
    """Yield edits that put new imports below the existing ones, and those of `__future__` below the docstring."""
    future_place, place = _find_import_places(lines, old)
    future_texts = []
    texts = []
    for one in imports:
        if one.meaning.startswith("__future__."):
            future_texts.append(one.text)
        else:
            texts.append(one.text)
    if future_texts:
        yield _insert_imports(lines, future_place, future_texts)
    if texts:
        yield _insert_imports(lines, place, texts)


def _find_import_places(lines: Sequence[str], old: Sequence[_Statement]) -> tuple[int, int]:
    """Return the indexes of the lines above which imports of `__future__` belong, and other imports."""
    place = 0
    while place < min(len(lines), 2) and _HEADER.match(lines[place]):
        place += 1
    future_place = place
    for number, one in enumerate(old):
        if number == 0 and isinstance(one.node, ast.Expr):
            future_place = one.end
            place = one.end
        elif isinstance(one.node, ast.Import | ast.ImportFrom):
            place = one.end
        else:
            break
    return future_place, place


def _insert_imports(lines: Sequence[str], place: int, texts: Sequence[str]) -> _Edit:
    """Insert imports, with an empty line between them and other code."""
    inserted = list(texts)
    if place and not lines[place - 1].startswith(("import ", "from ")):
        inserted.insert(0, "")
    if place < len(lines) and lines[place].strip():
        inserted.append("")
    return _Edit(place, place, "\n".join(inserted))


def _find_new_imports(old: Sequence[_Statement], new: Sequence[_Statement], module: str) -> list[_Import]:
    """Return the imports of the draft that the library lacks. Raise ToolError if a name would get a second meaning."""
    defined = {one.name for one in (*old, *new) if one.name}
    old_imports = _list_all_imports(old)
    meanings = {one.bound: one.meaning for one in old_imports}
    known = {one.text for one in old_imports}
    for each in new:
        if each.name in meanings:
            raise ToolError(f"the library imports another {each.name!r}; choose another name")
    found: dict[str, _Import] = {}
    for each in new:
        for one in _list_imports(each.node):
            owner, _, name = one.meaning.rpartition(".")
            is_own = bool(module) and module in (owner, one.meaning)
            if is_own and owner and one.bound == name and name in defined:
                continue
            if is_own:
                raise ToolError(
                    f"line {each.node.lineno} of the draft imports the library, but becomes part of it; remove that "
                    "import and use the names of the library directly"
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
        imports = _list_imports(one.node)
        kept = []
        for each in imports:
            is_used = each.text in wanted or _has_name(rest, each.bound)
            if is_used or not _has_name(replaced, each.bound):
                kept.append(each.text)
        if len(kept) < len(imports):
            lines[one.node.lineno - 1 : one.end] = kept
            has_changed = True
    if not has_changed:
        return source
    return "\n".join(lines).lstrip("\n")


def _has_name(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _list_all_imports(statements: Sequence[_Statement]) -> list[_Import]:
    imports = []
    for one in statements:
        imports += _list_imports(one.node)
    return imports


def _list_imports(node: ast.stmt) -> list[_Import]:
    """List the names that an import statement imports. Other statements import none."""
    imports = []
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            text = f"from {module} import {ast.unparse(alias)}"
            meaning = f"{module}.{alias.name}"
            bound = alias.asname or alias.name
            if alias.name == "*":
                bound = meaning
            imports.append(_Import(text, bound, meaning))
    elif isinstance(node, ast.Import):
        for alias in node.names:
            text = f"import {ast.unparse(alias)}"
            if alias.asname:
                imports.append(_Import(text, alias.asname, alias.name))
            else:
                root = alias.name.partition(".")[0]
                imports.append(_Import(text, root, root))
    return imports


def parse_source(source: str, what: str) -> ast.Module:
    """Parse and compile Python source, named `what` in errors. Raise ToolError with the line if it does not compile."""
    try:
        return _parse(source)
    except SyntaxError as error:
        if error.lineno:
            raise ToolError(f"{what} has a syntax error in line {error.lineno}: {error.msg}; correct it") from error
        raise ToolError(f"{what} has a syntax error: {error.msg}; correct it") from error
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
        texts: list[str] = []
        for node in tree.body:
            texts += _describe(node, detail)
    except (ToolError, RecursionError) as error:
        return (f"[{error}]",)
    return tuple(texts)


def _describe(node: ast.stmt, detail: Detail) -> Iterator[str]:
    """Yield a text for each public name that a top-level statement defines."""
    names = list(filter(_is_public, _list_names(node)))
    if detail == "names" or not names:
        yield from names
        return
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            lines = ast.unparse(_shorten(node, detail)).split("\n")
            yield "\n".join(filter(None, lines))
        case ast.AnnAssign():
            yield f"{names[0]}: {ast.unparse(node.annotation)}"
        case _:
            for name in names:
                yield f"{name} = ..."


def _list_names(node: ast.stmt) -> list[str]:
    """List the names that a top-level statement defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            return list(chain.from_iterable(map(_list_targets, targets)))
        case _:
            return []


def _shorten(node: _Definition, detail: Detail) -> ast.stmt:
    """Return a copy of a definition without code: only the docstring, and in a class the fields and public methods."""
    body: list[ast.stmt] = []
    docstring = ast.get_docstring(node)
    if docstring and detail == "docstrings":
        paragraph = docstring.split("\n\n")[0]
        body.append(ast.Expr(ast.Constant(" ".join(paragraph.split()))))
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            if isinstance(child, _Function) and (child.name == "__init__" or _is_public(child.name)):
                body.append(_shorten(child, detail))
            elif isinstance(child, ast.AnnAssign) and any(map(_is_public, _list_targets(child.target))):
                body.append(child)
    short = copy.copy(node)
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
            return list(chain.from_iterable(map(_list_targets, parts)))
        case _:
            return []


def _is_public(name: str) -> bool:
    return not name.startswith("_")
