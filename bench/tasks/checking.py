"""Help for the checks of tasks: look at what an agent left, and run it.

A check runs in the agent's folder, and the agent's programs run in processes of their own. So a program that exits,
prints or replaces a module of Python decides nothing. A check fails by an AssertionError whose text says what is wrong.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROGRAM_S = 240
"""The wall time that a program may take, also on a busy machine. It is less than the time for the whole check."""

SKIPPED = {".git", "__pycache__", ".pytest_cache", ".goose-like"}

EVALUATE = """\
import sys
sys.path.insert(0, "")
code, expressions, place = sys.argv[1:]
def error_of(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
space = {"error_of": error_of}
exec(code, space)
values = [eval(each, space) for each in expressions.splitlines()]
with open(place, "w", encoding="utf-8") as file:
    file.write(repr(values))
"""


def get_original(path: str) -> str:
    """Return the text that a file had before the agent came."""
    return (Path(sys.argv[0]).parent / "files" / path).read_text()


def read(path: str) -> str:
    assert os.path.isfile(path), f"there is no file {path}"
    return Path(path).read_text(errors="replace")


def read_json(path: str) -> Any:
    try:
        return json.loads(read(path))
    except ValueError as error:
        raise AssertionError(f"{path} is no JSON: {error}") from error


def read_answer() -> str:
    """Return the agent's last message."""
    return Path(os.environ["ANSWER"]).read_text()


def list_files(folder: str = ".") -> list[str]:
    """List all files, as sorted relative paths, without caches and without git's own."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file() and not SKIPPED & set(path.parts)]
    return sorted(str(path) for path in paths)


def assert_unchanged(*paths: str) -> None:
    for path in paths:
        assert read(path) == get_original(path), f"{path} was changed"


def assert_answer_has(*words: str) -> None:
    """Demand that each word or number stands in the answer, as a word of its own."""
    answer = read_answer().replace(",", "")
    for word in words:
        pattern = rf"(?<![\w.]){re.escape(word)}(?![\w]|\.\d)"
        assert re.search(pattern, answer, re.IGNORECASE), f"the answer does not say {word}: {answer[:200]!r}"


def run(*words: str, code: int = 0, stdin: str = "") -> str:
    """Run a program with a time limit, demand its exit code, and return its standard output."""
    done = _run(list(words), stdin)
    name = " ".join(words)[:80]
    assert done.returncode == code, f"{name} ended with {done.returncode}: {_cut(done.stderr or done.stdout)}"
    return done.stdout


def run_python(*words: str, code: int = 0, stdin: str = "") -> str:
    return run(sys.executable, *words, code=code, stdin=stdin)


def evaluate(code: str, *expressions: str) -> list[Any]:
    """Run `code` (imports, say) in a new process and return the values of the expressions: numbers, texts, lists ...

    `error_of(lambda: ...)` is the name of the error that a call raises, or None.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "values")
        done = _run([sys.executable, "-c", EVALUATE, code, "\n".join(expressions), str(place)])
        assert place.exists(), _cut(done.stderr) or "the program ended itself"
        values = ast.literal_eval(place.read_text(encoding="utf-8"))
    assert isinstance(values, list)
    return values


def passes_tests(*paths: str) -> bool:
    """Run pytest on these files and report whether all tests passed. At least one must have run."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]
    with tempfile.TemporaryDirectory() as folder:
        # Else pytest first deletes what all earlier runs left in its shared folder, which may take minutes.
        return _run([*command, f"--basetemp={folder}/files"]).returncode == 0


def passes_tests_with(path: str, text: str, *tests: str) -> bool:
    """Report whether the tests pass while a file has another text."""
    file = Path(path)
    kept = file.read_text()
    file.write_text(text)
    try:
        return passes_tests(*tests)
    finally:
        file.write_text(kept)


def _run(command: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ANSWER")}
    try:
        return subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True, timeout=PROGRAM_S)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"{' '.join(command)[:80]} did not end") from error


def _cut(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else ""
