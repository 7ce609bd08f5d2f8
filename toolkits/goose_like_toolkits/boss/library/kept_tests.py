"""The tests of the code library: one Python file with the tests of each saved draft, which runs as a script."""

import ast
import re
from collections.abc import Collection, Iterator, Sequence

from .code_library import parse_source

_TITLE = "Tests of {}.py from `write_code`. Run this file to repeat them."
_HEADING = re.compile(r"^# --- (.+)\n", re.MULTILINE)
_MAIN = re.compile(r"\b(unittest|pytest)\.main\(")


def keep_tests(kept: str, names: Collection[str], tests: str, module: str) -> str:
    """Return the file of tests with those of a draft, which replace earlier tests of the same names only.

    Raise ToolError if the tests are no valid Python.
    """
    if not tests.strip():
        return kept
    start, *parts = _HEADING.split(kept)
    blocks = {}
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        is_replaced = set(heading.split(", ")) <= set(names)
        if not is_replaced:
            blocks[heading] = text
    lines = list(_complete(tests))
    private = [name for name in names if name.startswith("_")]
    if private:  # `*` leaves them out
        lines.insert(0, f"from {module} import {', '.join(private)}")
    blocks[", ".join(names)] = "\n".join(lines)
    if not start:
        start = f'"""{_TITLE.format(module)}"""\n\nfrom {module} import *\n'
    texts = [start.strip("\n")]
    for heading, text in blocks.items():
        texts.append(f"# --- {heading}\n{text}".strip("\n"))
    return "\n\n".join(texts) + "\n"


def _complete(tests: str) -> Iterator[str]:
    """Yield the lines of tests that run by themselves: call test functions, run test cases, and leave out `main`."""
    tests = tests.strip("\n")
    tree = parse_source(tests, "the test code")
    hidden: set[int] = set()
    for node in tree.body:
        is_definition = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if not is_definition and _MAIN.search(ast.unparse(node)):
            end = node.end_lineno or node.lineno
            hidden.update(range(node.lineno, end + 1))
    for number, line in enumerate(tests.split("\n"), 1):
        if number not in hidden:
            yield line
    yield from _list_calls(tree.body)


def _list_calls(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the lines that call test functions, and that run test cases."""
    expressions = "\n".join(ast.unparse(node) for node in body if isinstance(node, ast.Expr))
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            is_called = f"{node.name}(" in expressions
            needs_no_argument = len(node.args.args) == len(node.args.defaults)
            if needs_no_argument and not is_called:
                yield f"{node.name}()"
        elif isinstance(node, ast.ClassDef) and any("TestCase" in ast.unparse(base) for base in node.bases):
            yield "import unittest"
            yield f"_suite = unittest.defaultTestLoader.loadTestsFromTestCase({node.name})"
            yield "assert unittest.TextTestRunner().run(_suite).wasSuccessful()"
