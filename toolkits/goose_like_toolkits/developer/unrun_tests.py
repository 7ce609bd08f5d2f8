"""Tests that a command seemed to run: `python test_x.py` runs nothing of a file that only defines tests."""

import ast
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from goose_like.core.errors import GooseLikeError
from goose_like.core.pattern import compile_later
from goose_like.toolkit import Workspace

MAX_FILE_BYTES = 200_000
_MAX_MODULES = 50  # of a folder
NO_TESTS_CODE = 5
"""The exit code of pytest, and of newer unittest, without any test."""

_SCRIPT = compile_later(r"(?:^|[\s;&|(])(\S*python[\d.]*)(?:\s+-[BEIOPSXsuv]+)*\s+([^\s;&|<>'\"-][^\s;&|<>'\"]*\.py)\b")
_TEST_FILE = compile_later(r"(^|/)(test_\w*|\w+_test)\.py$")
_REACHES_OUT = compile_later(
    r"\b(subprocess|create_subprocess_\w+|os\.(system|\w*popen|\w*spawn\w*|exec\w+)|runpy|pkgutil|importlib|__import__)\b"
    r"|\b(exec|open|Path|sys\.path|socket|urllib|http|ctypes|testfile|discover|loadTests\w+)\b"
)
_PYTHONPATH = compile_later(r"\bPYTHONPATH=([^\s;&|]+)")
_SOURCES = ("", "src", "lib")
_RAN_TESTS = compile_later(r"^Ran [1-9]\d* tests? in |\b[1-9]\d* (passed|failed)\b", re.MULTILINE)
_FOUND_NONE = compile_later(r"^(Ran 0 tests in |NO TESTS RAN|=* ?(no tests ran|\d+ deselected) in )", re.MULTILINE)


def find_unrun_tests(workspace: Workspace, command: str, text: str, folders: Sequence[str]) -> str:
    """Describe why a command ran no test, for the model; empty if it ran tests, or has nothing to do with any.

    `text` is its output, and `folders` are those in which it may have run.
    """
    has_run_tests = _RAN_TESTS.search(text) is not None
    for found in _SCRIPT.finditer(command):
        python = found[1]
        path = found[2]
        source = _read(workspace, path, folders)
        kind = _classify(source)
        if kind and has_run_tests:
            continue  # those are of another file
        module = "unittest" if "unittest" in source else "pytest"
        line = f"{python} -m {module} {path}"
        if kind == "only tests":
            return f"no test ran: {path} only defines tests; run them with `{line}`, or call them at its end"
        is_test_file = _TEST_FILE.search(path) is not None
        places = list(_list_import_folders(command, path, folders))
        if kind == "no tests" and is_test_file:
            what = _name_import(workspace, source, places) or "import what it shall check"
            return f"no test ran: {path} has none; {what}, assert what is right, and run it again"
        if is_test_file and _checks_only_itself(source, places):
            what = _name_import(workspace, source, places) or "import what it checks"
            return f"no test ran: {path} imports nothing of this project, so it checks only itself; {what}"
    if "test" in command and not has_run_tests and _FOUND_NONE.search(text):
        return "no test ran: none was found; name their file, and run tests that are plain functions with pytest"
    return ""


def _list_import_folders(command: str, script: str, folders: Sequence[str]) -> Iterator[Path]:
    """List the folders in which Python may look for modules of the project."""
    named = ":".join(_PYTHONPATH.findall(command)).split(":")
    for folder in folders:
        for place in (*_SOURCES, *named, str(Path(script).parent)):
            yield Path(folder, place)


def _name_import(workspace: Workspace, source: str, folders: Iterable[Path]) -> str:
    """Name the import of what a test file defines again; empty if no module of the project defines it."""
    own = _list_definitions(source)
    for folder in dict.fromkeys(folders):
        for file in itertools.islice(sorted(folder.glob("*.py")), _MAX_MODULES):
            if _TEST_FILE.search(file.name):
                continue
            for name in _list_definitions(_read(workspace, file.name, [str(folder)])):
                if name in own:
                    return f"write `from {file.stem} import {name}` in place of its own `{name}`"
    return ""


def _list_definitions(source: str) -> list[str]:
    """List the functions and classes that a module defines."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [statement.name for statement in statements if isinstance(statement, kinds)]


def _checks_only_itself(source: str, folders: Sequence[Path]) -> bool:
    """Check for a script that certainly imports no module of the project, and reaches none in another way.

    A module that is not Python's own may be the project's: where it is installed from is unknown here.
    """
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    if not nodes[1:] or _REACHES_OUT.search(source):
        return False
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or ".")
    for name in names:
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names or _is_in_project(top, folders):
            return False
    return True


def _is_in_project(module: str, folders: Sequence[Path]) -> bool:
    """Check for a module or package in one of the folders."""
    for folder in folders:
        place = folder / module
        if place.is_dir() or place.with_suffix(".py").is_file():
            return True
    return False


def _read(workspace: Workspace, path: str, folders: Iterable[str]) -> str:
    """Read the script that a command names. A file that cannot be read has no text."""
    for folder in folders:
        with suppress(GooseLikeError, OSError, ValueError):
            real = workspace.resolve(Path(folder, path))
            return workspace.read_bytes(real, MAX_FILE_BYTES).decode()
    return ""


def _classify(source: str) -> Literal["", "only tests", "no tests"]:
    """Check for a script that only imports, defines and assigns: whether it defines tests. Others have no kind."""
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    if not statements:
        return ""
    has_tests = False
    for statement in statements:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                has_tests |= name.startswith("test")
            case ast.ClassDef():
                has_tests |= _is_test_class(statement)
            case ast.Import() | ast.ImportFrom() | ast.Assign() | ast.AnnAssign():
                pass
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=ast.Call(func=function)) if ast.unparse(function).startswith("sys.path."):
                pass
            case _:
                return ""
    return "only tests" if has_tests else "no tests"


def _is_test_class(statement: ast.ClassDef) -> bool:
    if any(ast.unparse(base).endswith("TestCase") for base in statement.bases):
        return True
    return statement.name.startswith("Test")
