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
    blocks = dict(zip(parts[::2], parts[1::2], strict=True))
    blocks = {heading: text for heading, text in blocks.items() if not set(heading.split(", ")) <= set(names)}
    private = [name for name in names if name.startswith("_")]
    imports = [f"from {module} import {', '.join(private)}"] if private else []  # `*` leaves them out
    blocks[", ".join(names)] = "\n".join([*imports, *_complete(tests)])
    start = start or f'"""{_TITLE.format(module)}"""\n\nfrom {module} import *\n'
    texts = [start, *(f"# --- {heading}\n{text}" for heading, text in blocks.items())]
    return "\n\n".join(text.strip("\n") for text in texts) + "\n"


def _complete(tests: str) -> Iterator[str]:
    """Yield the lines of tests that run by themselves: call test functions, run test cases, and leave out `main`."""
    tests = tests.strip("\n")
    tree = parse_source(tests, "the test code")
    hidden = {
        number - 1
        for node in tree.body
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) and _MAIN.search(ast.unparse(node))
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    yield from (line for number, line in enumerate(tests.split("\n")) if number not in hidden)
    yield from _list_calls(tree.body)


def _list_calls(body: Sequence[ast.stmt]) -> Iterator[str]:
    text = "\n".join(ast.unparse(node) for node in body if isinstance(node, ast.Expr))
    for node in body:
        match node:
            case ast.FunctionDef(name=name, args=arguments) if name.startswith("test") and f"{name}(" not in text:
                if len(arguments.args) == len(arguments.defaults):
                    yield f"{name}()"
            case ast.ClassDef(name=name, bases=bases) if any("TestCase" in ast.unparse(base) for base in bases):
                yield "import unittest"
                yield f"_suite = unittest.defaultTestLoader.loadTestsFromTestCase({name})"
                yield "assert unittest.TextTestRunner().run(_suite).wasSuccessful()"
