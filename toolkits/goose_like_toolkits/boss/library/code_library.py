"""The code library: one Python file that grows by functions, classes and constants, each there once."""

import ast
import io
import keyword
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from goose_like.toolkit import ToolError

from .outline import parsed

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_DECLARED = re.compile(r"#!|#.*coding[:=]")  # what must stay in the first two lines
_NEXT = "save imports, functions, classes and constants; what is to be run give to run_code"


@dataclass(frozen=True, slots=True)
class _Block:
    """A definition and its lines, from `start` (its first decorator) to before `end`; `above` is where its comments
    begin. `text` are those lines."""

    name: str
    node: ast.stmt
    above: int
    start: int
    end: int
    text: str
    comments: str


@dataclass(frozen=True, slots=True)
class _Import:
    """One name that is imported: `of` are its module, what is imported and as what; `name` is what that gives."""

    of: tuple[str, str, str | None]
    name: str
    line: int
    text: str

    @property
    def is_package(self) -> bool:
        return not self.of[0] and self.of[2] is None


class _Source:
    """A source text by its lines. `blocks` are the definitions at its top, by their names; `faults` tell why one of
    them can't be told from what stands around it."""

    def __init__(self, text: str, what: str) -> None:
        self.lines = io.StringIO(text, newline="").readlines()  # at the same places as Python's own parser
        self.body = parsed(text, what).body
        self.blocks: dict[str, _Block] = {}
        self.faults: dict[str, str] = {}
        self.imports = [node for node in self.body if isinstance(node, ast.Import | ast.ImportFrom)]
        self._what = what
        before, end = "", 0
        for node in self.body:
            name, first = _defined(node), _first(node)
            for one in (before, name):
                if one and end == first:
                    self.faults[one] = f"line {first} of {what} holds two statements; give each a line of its own"
            if name in self.blocks:
                self.faults[name] = f"{what} defines {name!r} twice, in line {first} again; leave one of them"
            elif name:
                self.blocks[name] = self._block(name, node, end)
            before, end = name, node.end_lineno or first

    def _block(self, name: str, node: ast.stmt, floor: int) -> _Block:
        start, end = _first(node) - 1, node.end_lineno or node.lineno
        while start > floor and _decorators(node) and self.lines[start].lstrip()[:1] != "@":
            start -= 1  # the name may stand below its "@("
        above = start
        while above > floor and self.lines[above - 1].startswith("#") and not _DECLARED.match(self.lines[above - 1]):
            above -= 1
        text, comments = "".join(self.lines[start:end]), "".join(self.lines[above:start])
        return _Block(name, node, above, start, end, text.rstrip("\r\n"), comments)

    def refuse_others(self) -> None:
        """Raises: ToolError: something at the top is neither an import nor a definition."""
        for node in self.body:
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not is_text and not _defined(node) and node not in self.imports:
                line = self.lines[node.lineno - 1].strip()[:80]
                raise ToolError(f"line {node.lineno} of {self._what}, `{line}`, defines nothing; leave it out: {_NEXT}")


def saved(source: str, draft: str, *, replace: bool = False, module: str = "") -> str:
    """The library with what the draft defines; all else in it stays as it is.

    A definition that is there already, word for word, stays; of another one of that name, with `replace`, exactly its
    lines are replaced. What the draft imports from the library itself, `module`, is left out.

    Raises:
        ToolError: a syntax error, something in the draft that defines nothing, or a name that is taken.
    """
    mark = "\ufeff" if source.startswith("\ufeff") else ""
    old = _Source(source.removeprefix(mark), "the library")
    new = _Source(draft.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), "the draft")
    new.refuse_others()
    faults = [*new.faults.values(), *(why for name, why in old.faults.items() if name in new.blocks)]
    if faults or not new.blocks:
        raise ToolError(faults[0] if faults else f"the draft defines nothing; {_NEXT}")
    imports = list(_new_imports(old, new, module))
    _refuse_taken(old, new, imports)
    changed = [name for name, block in new.blocks.items() if name in old.blocks and not _is_same(old, block)]
    if changed and not replace:
        names = ", ".join(map(repr, changed))
        raise ToolError(f"the library has another {names}; call save_code with replace=true to replace, or rename it")

    edits = list(_import_edits(old, imports))
    waiting: list[_Block] = []
    for name, block in new.blocks.items():
        if name not in old.blocks:
            waiting.append(block)
        elif name in changed:  # it may need what is new before it
            was = old.blocks[name]
            edits += [(was.above, was.above, f"{one.comments}{one.text}\n{_gap(one)}") for one in reversed(waiting)]
            edits.append((was.above if block.comments else was.start, was.end, f"{block.comments}{block.text}\n"))
            waiting = []
    if not edits and not waiting:
        return source
    lines, newline = list(old.lines), "\r\n" if old.lines and old.lines[0].endswith("\r\n") else "\n"
    if lines and not lines[-1].endswith(("\r", "\n")):
        lines[-1] += newline
    for start, end, text in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        lines[start:end] = [text.replace("\n", newline)]
    for block in waiting:
        gap = _gap(block) if any(line.strip() for line in lines) else ""
        lines.append(f"{gap}{block.comments}{block.text}\n".replace("\n", newline))
    parsed("".join(lines), "the library would be wrong: it")
    return mark + "".join(lines)


def defined(draft: str) -> str:
    """The names that a draft defines, as people and models read them. Raises: ToolError: it can't be saved anywhere."""
    new = _Source(draft, "the draft")
    new.refuse_others()
    return ", ".join(new.blocks)


def module_name(path: str | Path) -> str:
    """The name under which a file is imported.

    Raises:
        ToolError: it can't be, or Python itself has a module of that name.
    """
    file = Path(path)
    name = file.stem
    if file.suffix != ".py" or not name.isidentifier() or keyword.iskeyword(name) or name == "__main__":
        raise ToolError(f"{file.name!r} can't be imported; name the library's file like `library.py`")
    if name in sys.stdlib_module_names:
        raise ToolError(f"{file.name!r} has the name of a module of Python's own; rename it, like `library.py`")
    return name


def _defined(node: ast.stmt) -> str:
    """The one name that a statement defines; empty where it is another kind of statement."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return ""


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, _Function | ast.ClassDef) else []


def _first(node: ast.stmt) -> int:
    """The line on which it begins, counted from 1."""
    return min([node.lineno, *(one.lineno for one in _decorators(node))])


def _is_same(old: _Source, block: _Block) -> bool:
    return old.blocks[block.name].text.replace("\r\n", "\n") == block.text


def _new_imports(old: _Source, new: _Source, module: str) -> Iterator[_Import]:
    known = {one.of for one in _imports(old)}
    for one in _imports(new):
        where, name, alias = one.of
        if module and module == (where or name):
            if not where or alias or name not in {*old.blocks, *new.blocks}:
                raise ToolError(
                    f"line {one.line} of the draft imports the library, of which it becomes a part; leave that out, "
                    "and call what is in there by its name"
                )
        elif one.of not in known:
            known.add(one.of)
            yield one


def _refuse_taken(old: _Source, new: _Source, imports: Sequence[_Import]) -> None:
    """No name may come to mean two things."""
    taken = {
        name: statement.lineno for statement in old.body if not _defined(statement) for name in _bound_within(statement)
    }
    for name in new.blocks:
        if line := taken.get(name):
            raise ToolError(f"the library has a {name!r} in line {line} that is no definition; take another name")
    meant = {one.name: one for one in _imports(old)}
    for one in imports:
        if one.name == "*":
            continue
        before = meant.setdefault(one.name, one)
        is_one_package = before.is_package and one.is_package  # `import os` and `import os.path`
        is_taken = one.name in taken and one.name not in {known.name for known in _imports(old)}
        if (before is not one and not is_one_package) or is_taken or one.name in old.blocks or one.name in new.blocks:
            raise ToolError(f"`{one.text}` takes the name {one.name!r}, which is something else already; use `as`")


def _bound_within(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of any kind may give a value to."""
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from (_bound(alias, node) for alias in node.names)


def _bound(alias: ast.alias, node: ast.Import | ast.ImportFrom) -> str:
    return alias.asname or (alias.name.split(".")[0] if isinstance(node, ast.Import) else alias.name)


def _imports(source: _Source) -> list[_Import]:
    found = []
    for node in source.imports:
        for alias in node.names:
            if isinstance(node, ast.Import):
                where, text = "", ast.unparse(ast.Import([alias]))
            else:
                where = "." * node.level + (node.module or "")
                text = ast.unparse(ast.ImportFrom(node.module, [alias], node.level))
            found.append(_Import((where, alias.name, alias.asname), _bound(alias, node), node.lineno, text))
    return found


def _import_edits(old: _Source, imports: Sequence[_Import]) -> Iterator[tuple[int, int, str]]:
    """New imports go below those at the top, else below the docstring; those of `__future__` above all others."""
    top = next((n for n, line in enumerate(old.lines[:2]) if not _DECLARED.match(line)), len(old.lines[:2]))
    places = {"__future__": top, "": top}
    for number, node in enumerate(old.body):
        is_docstring = number == 0 and isinstance(node, ast.Expr)
        if not is_docstring and node not in old.imports:
            break
        places[""] = top = node.end_lineno or top
        if is_docstring or (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            places["__future__"] = top
    for where in ("", "__future__"):  # the one that is inserted last stands above
        text = "".join(f"{one.text}\n" for one in imports if (one.of[0] == "__future__") == bool(where))
        place = places[where]
        if text:
            beside = {node.end_lineno for node in old.imports} | {_first(node) - 1 for node in old.imports}
            if place not in beside:
                text = "\n" * bool(place) + text + "\n" * bool(old.lines[place:] and old.lines[place].strip())
            yield place, place, text


def _gap(block: _Block) -> str:
    """The empty lines between it and what stands around it."""
    return "\n" if isinstance(block.node, ast.Assign | ast.AnnAssign) else "\n\n"
