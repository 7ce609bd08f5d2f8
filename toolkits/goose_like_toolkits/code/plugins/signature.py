"""Signature: how the registered class or function of a plugin's source can be called, read without importing it."""

import ast
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from goose_like.core.message import FrozenModel
from goose_like.sdk.diagnostics import MAX_FILE_BYTES, Diagnostic, ParseResult

_REGISTER = "register_plugin"
_NO_PLUGINS = {"object", "ABC"}
_WITHOUT_CALL = {"Plugin", *_NO_PLUGINS}

_WITH_BLOCKS = ast.If | ast.Try | ast.TryStar | ast.With | ast.For | ast.While

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Accepted(FrozenModel):
    """One parameter of the call. `default` is its source; None: it must be given."""

    name: str
    by: Literal["position", "either", "name"] = "either"
    default: str | None = None


class Signature(FrozenModel):
    """What can be called: `called` is its name in the source, `line` where it begins."""

    called: str
    line: int
    accepted: tuple[Accepted, ...] = ()
    takes_more_by_position: bool = False
    takes_more_by_name: bool = False


def _open(called: str, line: int) -> Signature:
    """Of what is defined elsewhere: all that is known is that there is something."""
    return Signature(called=called, line=line, takes_more_by_position=True, takes_more_by_name=True)


def read_signature(file: Path) -> ParseResult[Signature]:
    """The signature of the one thing that a Python file registers; never raises."""
    try:
        if not file.is_file():
            return _refused(file, None, "there is no such file; write it, or correct `name` or `code` in the YAML")
        if file.stat().st_size > MAX_FILE_BYTES:
            return _refused(file, None, f"this is larger than {MAX_FILE_BYTES:,} bytes, and no plugin")
        with warnings.catch_warnings(action="ignore"):  # a plugin's odd escapes are its author's to hear of
            return _found_in(ast.parse(file.read_bytes()), file)
    except SyntaxError as error:
        return _refused(file, error.lineno, f"this is no valid Python: {error.msg}")
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return _refused(file, None, f"can't be read: {' '.join(str(error).split()) or type(error).__name__}")


def _refused(file: Path, line: int | None, text: str) -> ParseResult[Signature]:
    return ParseResult(diagnostics=(Diagnostic(file=file, line=line, text=text),))


def _found_in(tree: ast.Module, file: Path) -> ParseResult[Signature]:
    statements = list(_statements(tree.body))
    names = {node.name: node for node, _ in statements if isinstance(node, Function | ast.ClassDef)}
    aliases = {name for node, _ in statements for name in _aliases(node)}
    for node, _ in statements:
        if call := _called_decorator(node, aliases):
            return _refused(file, call.lineno, f"@{_REGISTER} is given the class itself; write it without ()")
    registered = [(thing, sure) for node, sure in statements for thing in _registered(node, aliases)]
    if not registered:
        return _refused(file, None, f"nothing is registered here; put @{_REGISTER} before the plugin's class")
    certain = [thing for thing, sure in registered if sure]
    if len(certain) > 1:
        return _refused(file, certain[1].lineno, "a second plugin is registered here; give it a file of its own")
    thing = registered[0][0]
    if len(registered) > 1:  # `try` one class, `except ImportError` another
        return ParseResult(value=_open(_REGISTER, thing.lineno))
    target = names.get(thing.id, thing) if isinstance(thing, ast.Name) else thing
    if isinstance(target, Function):
        return ParseResult(value=_signature(target.name, target.lineno, target.args))
    if isinstance(target, ast.Lambda):
        return ParseResult(value=_signature("lambda", target.lineno, target.args))
    if not isinstance(target, ast.ClassDef):
        return ParseResult(value=_open(ast.unparse(target), thing.lineno))
    if not _is_plugin(target, names):
        text = f"class {target.name!r} is no Plugin, so that a call makes one of it; write class {target.name}(Plugin)"
        return _refused(file, target.lineno, text)
    signature = _of_class(target, names)
    if signature is None:
        return _refused(file, target.lineno, f"class {target.name!r} has no method __call__; it is what a call runs")
    return ParseResult(value=signature)


def _statements(body: list[ast.stmt], *, is_sure: bool = True) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of a block and of the blocks in it, but for functions and classes; those run for sure or not."""
    for statement in body:
        if isinstance(statement, ast.If) and "__name__" in {getattr(n, "id", "") for n in ast.walk(statement.test)}:
            continue  # for who runs the file itself
        yield statement, is_sure
        if isinstance(statement, _WITH_BLOCKS):
            for block in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, block, []), is_sure=False)
            for handler in getattr(statement, "handlers", ()):
                yield from _statements(handler.body, is_sure=False)


def _aliases(node: ast.stmt) -> Iterator[str]:
    """The names that `register_plugin` goes by."""
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            if alias.name in (_REGISTER, "*"):
                yield alias.asname or _REGISTER
    if isinstance(node, ast.Assign) and _last(node.value) == _REGISTER:
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _last(node: ast.expr) -> str:
    """`c` of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_meant(node: ast.expr, aliases: set[str]) -> bool:
    return node.id in aliases if isinstance(node, ast.Name) else _last(node) == _REGISTER


def _called_decorator(node: ast.stmt, aliases: set[str]) -> ast.Call | None:
    decorators = node.decorator_list if isinstance(node, Function | ast.ClassDef) else []
    return next((each for each in decorators if isinstance(each, ast.Call) and _is_meant(each.func, aliases)), None)


def _registered(node: ast.stmt, aliases: set[str]) -> Iterator[Any]:
    """What a statement registers: a definition below the decorator, or the argument of a call."""
    if isinstance(node, Function | ast.ClassDef):
        yield from (node for each in node.decorator_list if _is_meant(each, aliases))
    elif isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign):
        call = node.value
        if isinstance(call, ast.Call) and _is_meant(call.func, aliases) and call.args:
            yield call.args[0]


def _is_plugin(kind: ast.ClassDef, names: Mapping[str, Any], seen: frozenset[str] = frozenset()) -> bool:
    """Whether it derives from Plugin, or from something of another file that may."""
    bases = [(base, names.get(_last(base)) if isinstance(base, ast.Name) else None) for base in kind.bases]
    return any(
        _is_plugin(within, names, seen | {kind.name})
        if isinstance(within, ast.ClassDef) and within.name not in seen
        else _last(base) not in _NO_PLUGINS and not isinstance(within, ast.ClassDef)
        for base, within in bases
    )


def _of_class(kind: ast.ClassDef, names: Mapping[str, Any], seen: frozenset[str] = frozenset()) -> Signature | None:
    """The signature of `__call__`, which may be a base's in the same file; None: there is none."""
    called, found = f"{kind.name}.__call__", None
    for node, _ in _statements(kind.body):
        if isinstance(node, Function) and node.name == "__call__":
            found = _signature(called, node.lineno, node.args, is_method=not _has_no_self(node))
        elif isinstance(node, ast.Assign) and any(_last(target) == "__call__" for target in node.targets):
            found = _open(called, node.lineno)
    if found:
        return found
    for base in kind.bases:
        within = names.get(_last(base)) if isinstance(base, ast.Name) else None
        if isinstance(within, ast.ClassDef) and within.name not in seen:
            found = _of_class(within, names, seen | {kind.name})
        elif _last(base) not in _WITHOUT_CALL and not isinstance(within, ast.ClassDef):
            found = _open(called, kind.lineno)
        if found:
            return found
    return None


def _has_no_self(function: Function) -> bool:
    return any(_last(each) == "staticmethod" for each in function.decorator_list)


def _signature(called: str, line: int, written: ast.arguments, *, is_method: bool = False) -> Signature:
    positional = [*written.posonlyargs, *written.args]
    without = [None] * (len(positional) - len(written.defaults))
    accepted = [
        Accepted(name=arg.arg, by="position" if at < len(written.posonlyargs) else "either", default=_source(default))
        for at, (arg, default) in enumerate(zip(positional, [*without, *written.defaults], strict=True))
    ]
    by_name = [
        Accepted(name=arg.arg, by="name", default=_source(default))
        for arg, default in zip(written.kwonlyargs, written.kw_defaults, strict=True)
    ]
    return Signature(
        called=called,
        line=line,
        accepted=(*accepted[1 if is_method else 0 :], *by_name),
        takes_more_by_position=written.vararg is not None,
        takes_more_by_name=written.kwarg is not None,
    )


def _source(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Constant):
        return repr(node.value)
    return ast.unparse(node) if node else None
