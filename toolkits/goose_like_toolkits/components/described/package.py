"""Package: whether a component's code, where it lies beside its config.yaml, is what `setup.package` promises."""

import ast
from collections.abc import Iterator
from pathlib import Path

from goose_like.sdk.diagnostics import MAX_FILE_BYTES, Diagnostic

from .definition import Definition

CONSTRUCTOR = "constructor"

_HIDING = {"__getattr__", "globals", "exec"}
"""What a module may use to have names that nobody sees in its text."""


def package_faults(definition: Definition) -> Iterator[Diagnostic]:
    """What can be said without importing; nothing where the code lies elsewhere, as with an installed component."""
    folder = definition.file.absolute().parent.parent
    code = folder / "__init__.py"
    if definition.file.parent.name != ".config" or not definition.package or not code.is_file():
        return
    names = tuple(definition.package.split("."))
    if folder.parts[-len(names) :] != names:
        text = (
            f"setup.package: {definition.package!r} is not the package in this folder, {folder.name!r}; unless pip or "
            "a `path` brings it, nothing can be loaded"
        )
        yield definition.document.fault(("setup", "package"), text, is_remark=True)
    else:
        yield from _code_faults(definition.file.parent.parent / code.name)


def _code_faults(file: Path) -> Iterator[Diagnostic]:
    try:
        source = file.read_bytes()
        if len(source) > MAX_FILE_BYTES or _may_have(CONSTRUCTOR, ast.parse(source)):
            return
    except SyntaxError as error:
        yield Diagnostic(file=file, line=error.lineno, text=f"this is no Python: {error.msg}")
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        yield Diagnostic(file=file, text=f"can't be read: {error or type(error).__name__}")
    else:
        yield Diagnostic(file=file, text=f"there is no function `{CONSTRUCTOR}`; add one that takes `config`")


def _may_have(name: str, tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=bound) | ast.AsyncFunctionDef(name=bound) | ast.ClassDef(name=bound):
                pass
            case ast.alias(name=whole, asname=other):
                bound = other or whole
            case ast.Name(id=bound, ctx=ctx) if isinstance(ctx, ast.Store) or bound in _HIDING:
                pass
            case _:
                continue
        if bound in (name, "*", *_HIDING):
            return True
    return False
