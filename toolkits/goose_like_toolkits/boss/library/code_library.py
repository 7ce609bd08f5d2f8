"""The code library: one Python file of functions, classes and constants, each defined once."""

import ast
import copy
import io
import keyword
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from goose_like.core.tool import ToolError

from .outline import parse_source

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Edit = tuple[int, int, str]  # first line, line after the last one, new text

_HEADER = re.compile(r"#!|#.*coding[:=]")  # these comments must stay in the first two lines
_ADVICE = "save imports, functions, classes and constants; run other code with run_code"


@dataclass(frozen=True, slots=True)
class _Definition:
    """A top-level definition in lines `start` to `end` (exclusive). Comments above begin at line `comment_start`."""

    name: str
    node: ast.stmt
    comment_start: int
    start: int
    end: int
    text: str
    comments: str

    @property
    def gap(self) -> str:
        """The empty lines between this definition and its neighbours."""
        return "\n" if isinstance(self.node, ast.Assign | ast.AnnAssign) else "\n\n"


class _Import(NamedTuple):
    """One imported name: its statement, and the name that the statement defines. `module` is empty in `import NAME`."""

    text: str
    bound: str
    module: str
    alias: ast.alias
    line: int


class _Source:
    """Parsed source text. `definitions` are the top-level ones by name; `problems` are names that can't be replaced."""

    def __init__(self, text: str, what: str) -> None:
        self.lines = io.StringIO(text, newline="").readlines()  # splits lines exactly as Python's parser does
        self.body = parse_source(text, what).body
        self.definitions: dict[str, _Definition] = {}
        self.problems: dict[str, str] = {}
        self.import_nodes = [node for node in self.body if isinstance(node, ast.Import | ast.ImportFrom)]
        self.imports = [one for node in self.import_nodes for one in _list_imports(node)]
        self._what = what
        previous, end = "", 0
        for node in self.body:
            name, first = _get_name(node), _find_first_line(node)
            for one in (previous, name):
                if one and end == first:
                    self.problems[one] = f"line {first} of {what} holds two statements; give each a line of its own"
            if name in self.definitions:
                self.problems[name] = f"{what} defines {name!r} twice, in line {first} again; leave one of them"
            elif name:
                self.definitions[name] = self._cut_definition(name, node, end)
            previous, end = name, node.end_lineno or first

    def _cut_definition(self, name: str, node: ast.stmt, floor: int) -> _Definition:
        start, end = _find_first_line(node) - 1, node.end_lineno or node.lineno
        while start > floor and _get_decorators(node) and self.lines[start].lstrip()[:1] != "@":
            start -= 1  # the decorator's name may stand below its "@("
        above = start
        while above > floor and self.lines[above - 1].startswith("#") and not _HEADER.match(self.lines[above - 1]):
            above -= 1
        text, comments = "".join(self.lines[start:end]), "".join(self.lines[above:start])
        return _Definition(name, node, above, start, end, text.rstrip("\r\n"), comments)

    def refuse_statements(self) -> None:
        """Raise ToolError if a top-level statement is neither an import nor a definition."""
        for node in self.body:
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not is_text and not _get_name(node) and node not in self.import_nodes:
                line = self.lines[node.lineno - 1].strip()[:80]
                raise ToolError(
                    f"line {node.lineno} of {self._what}, `{line}`, defines nothing; leave it out: {_ADVICE}"
                )


def save_draft(source: str, draft: str, *, replace: bool = False, module: str = "") -> str:
    """Return the library source with the definitions of the draft added; all other lines stay unchanged.

    An identical definition stays as it is. A different definition of the same name is replaced only with `replace`.
    Imports from the library itself, `module`, are left out.

    Raises:
        ToolError: a syntax error, a statement that defines nothing, or a name with another meaning.
    """
    mark = "\ufeff" if source.startswith("\ufeff") else ""
    old = _Source(source.removeprefix(mark), "the library")
    new = _Source(draft.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), "the draft")
    new.refuse_statements()
    problems = [*new.problems.values(), *(text for name, text in old.problems.items() if name in new.definitions)]
    if problems or not new.definitions:
        raise ToolError(problems[0] if problems else f"the draft defines nothing; {_ADVICE}")
    imports = _find_new_imports(old, new, module)
    _refuse_conflicts(old, new, imports)
    changed = [name for name, one in new.definitions.items() if name in old.definitions and not _is_same(old, one)]
    if changed and not replace:
        names = ", ".join(map(repr, changed))
        raise ToolError(f"the library has another {names}; call save_code with replace=true to replace, or rename it")
    edits, added = _plan_edits(old, new, changed)
    edits += _plan_import_edits(old, imports)  # last, so that they end up above definitions in the same line
    if not edits and not added:
        return source
    return mark + _apply_edits(old, edits, added)


def list_definitions(draft: str) -> str:
    """List the names that a draft defines, separated by commas.

    Raises:
        ToolError: the draft does not compile, or a statement defines nothing.
    """
    new = _Source(draft, "the draft")
    new.refuse_statements()
    return ", ".join(new.definitions)


def get_module_name(path: str | Path) -> str:
    """Return the module name under which Python imports a file.

    Raises:
        ToolError: the file name is no module name, or belongs to the standard library.
    """
    file = Path(path)
    name = file.stem
    if file.suffix != ".py" or not name.isidentifier() or keyword.iskeyword(name) or name == "__main__":
        raise ToolError(f"{file.name!r} can't be imported; name the library's file like `library.py`")
    if name in sys.stdlib_module_names:
        raise ToolError(f"{file.name!r} has the name of a standard library module; rename it, like `library.py`")
    return name


# --- edits


def _plan_edits(old: _Source, new: _Source, changed: Sequence[str]) -> tuple[list[_Edit], list[_Definition]]:
    """Return the edits of changed definitions, and the new definitions that go to the end of the file."""
    edits: list[_Edit] = []
    waiting: list[_Definition] = []
    for name, one in new.definitions.items():
        if name not in old.definitions:
            waiting.append(one)
        elif name in changed:  # the changed definition may need the new ones, so they go above it
            was = old.definitions[name]
            above = was.comment_start
            edits += [(above, above, f"{each.comments}{each.text}\n{each.gap}") for each in reversed(waiting)]
            edits.append((above if one.comments else was.start, was.end, f"{one.comments}{one.text}\n"))
            waiting = []
    return edits, waiting


def _plan_import_edits(old: _Source, imports: Sequence[_Import]) -> Iterator[_Edit]:
    # New imports go below the existing ones, else below the docstring. `__future__` imports go above all others.
    top = next((n for n, line in enumerate(old.lines[:2]) if not _HEADER.match(line)), len(old.lines[:2]))
    future_line = other_line = top
    for number, node in enumerate(old.body):
        is_docstring = number == 0 and isinstance(node, ast.Expr)
        if not is_docstring and node not in old.import_nodes:
            break
        other_line = top = node.end_lineno or top
        if is_docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            future_line = top
    occupied = {line for node in old.import_nodes for line in (node.end_lineno, _find_first_line(node) - 1)}
    for is_future, line in ((False, other_line), (True, future_line)):  # the last insertion ends up above
        text = "".join(f"{one.text}\n" for one in imports if (one.module == "__future__") == is_future)
        if text:
            if line not in occupied:
                text = "\n" * bool(line) + text + "\n" * bool(old.lines[line:] and old.lines[line].strip())
            yield line, line, text


def _apply_edits(old: _Source, edits: list[_Edit], added: Sequence[_Definition]) -> str:
    lines, newline = list(old.lines), "\r\n" if old.lines and old.lines[0].endswith("\r\n") else "\n"
    if lines and not lines[-1].endswith(("\r", "\n")):
        lines[-1] += newline
    for start, end, text in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        lines[start:end] = [text.replace("\n", newline)]
    for one in added:
        gap = one.gap if any(line.strip() for line in lines) else ""
        lines.append(f"{gap}{one.comments}{one.text}\n".replace("\n", newline))
    result = "".join(lines)
    parse_source(result, "the library would be wrong: it")
    return result


# --- names


def _get_name(node: ast.stmt) -> str:
    """Return the one name that a statement defines, or an empty string."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return ""


def _get_decorators(node: ast.stmt) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, _Function | ast.ClassDef) else []


def _find_first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(one.lineno for one in _get_decorators(node))])


def _is_same(old: _Source, one: _Definition) -> bool:
    return old.definitions[one.name].text.replace("\r\n", "\n") == one.text


def _find_new_imports(old: _Source, new: _Source, module: str) -> list[_Import]:
    found = {one.text: one for one in new.imports}
    for text, one in list(found.items()):
        name = one.alias.name
        if module and module == (one.module or name):
            if not one.module or one.alias.asname or name not in {*old.definitions, *new.definitions}:
                raise ToolError(
                    f"line {one.line} of the draft imports the library, but becomes part of it; remove that import "
                    "and use the names of the library directly"
                )
            del found[text]
    return [found[text] for text in found if text not in {one.text for one in old.imports}]


def _refuse_conflicts(old: _Source, new: _Source, imports: Sequence[_Import]) -> None:
    """Raise ToolError if a name would get a second meaning."""
    taken = {
        name: statement.lineno
        for statement in old.body
        if not _get_name(statement)
        for name in _list_bound_names(statement)
    }
    for name in new.definitions:
        if line := taken.get(name):
            raise ToolError(f"the library has a {name!r} in line {line} that is no definition; choose another name")
    meanings = {one.bound: one for one in old.imports}
    taken_elsewhere = taken.keys() - meanings.keys() | old.definitions.keys() | new.definitions.keys()
    for one in imports:
        before = meanings.setdefault(one.bound, one)
        is_one_package = not any(each.module or each.alias.asname for each in (before, one))  # like `import os.path`
        is_new = (before is one or is_one_package) and one.bound not in taken_elsewhere
        if not is_new and one.bound != "*":
            raise ToolError(f"`{one.text}` takes the name {one.bound!r}, which means something else; use `as`")


def _list_bound_names(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of any kind may bind."""
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from (one.bound for one in _list_imports(node))


def _list_imports(node: ast.Import | ast.ImportFrom) -> Iterator[_Import]:
    for alias in node.names:
        single = copy.copy(node)
        single.names = [alias]
        module = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        bound = alias.asname or alias.name.partition(".")[0]
        yield _Import(ast.unparse(single), bound, module, alias, node.lineno)
