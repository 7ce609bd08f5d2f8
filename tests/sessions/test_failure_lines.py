"""Failures in the middle of long output: the excerpt for the model shows and counts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.sessions.failure_lines import FailureLines
from goose_like.sessions.output_limit import LimitedOutput

FAILURES = (
    "FAILED tests/test_a.py::test_b - assert 1 == 2",
    "tests/test_a.py::test_b FAILED                [ 50%]",
    "ERROR tests/test_a.py - ImportError: no module",
    "FAIL: test_b (tests.test_a.TestA)",
    "ERROR: test_b (tests.test_a.TestA)",
    "--- FAIL: TestB (0.00s)",
    "    --- FAIL: TestB/sub (0.00s)",
    "FAIL\texample.org/b\t0.01s",
    "panic: runtime error: index out of range",
    "test tests::b ... FAILED",
    "thread 'tests::b' panicked at src/lib.rs:7:9:",
    "error[E0308]: mismatched types",
    "FAIL src/b.test.js",
    "  ● adds two numbers",
    "    ✕ adds two numbers (3 ms)",
    "not ok 3 - adds",
    "make: *** [Makefile:2: all] Error 1",
    "make[2]: *** No rule to make target 'x'.  Stop.",
    "src/a.c:3:5: error: expected ';' before 'return'",
    "src/a.c:1:10: fatal error: x.h: No such file",
    "/usr/bin/ld: a.o: in function `main': a.c:(.text+0x5): undefined reference to `f'",
    "src/a.ts(3,5): error TS2322: Type 'x' is not assignable",
    "  3:5  error  'x' is not defined  no-undef",
    "npm ERR! code ELIFECYCLE",
    "Traceback (most recent call last):",
    "ValueError: no number",
    "package.errors.MyError: no number",
    "[ERROR] Failed to execute goal",
    'Exception in thread "main" java.lang.NullPointerException',
)
OTHER = (
    "tests/test_a.py::test_b PASSED                [ 50%]",
    "0 errors, 0 failed",
    "ok  example.org/b 0.01s",
    "test tests::error ... ok",
    "compiling error.c",
    "the word FAILED in a sentence",
    "PASS src/error.test.js",
    "src/a.c:3:5: warning: unused variable",
    "def error(text): pass",
    "ok 3 - error",
)


def format_long(tmp_path, line: str, *, size: int = 800, ends: bool = True) -> str:
    lines = [f"tests/test_{number}.py::test_name PASSED" for number in range(size)]
    lines[size // 2] = line
    output = LimitedOutput(tmp_path / "output.txt", 8_000)
    data = ("\n".join(lines) + "\n" * ends).encode()
    for start in range(0, len(data), 1_000):
        output.write(data[start : start + 1_000])
    output.close()
    return output.format_for_model()


@pytest.mark.parametrize("line", FAILURES)
@pytest.mark.parametrize("size", [800, 8_000])
def test_a_failure_in_the_middle_is_shown_and_counted(line, size, tmp_path):
    text = format_long(tmp_path, line, size=size)
    assert f"\n[lines of these that look like failures: 1]\n{line}\n[...]\n" in text
    assert len(text.encode()) <= 8_000 + 300  # with the two notes


@pytest.mark.parametrize("line", OTHER)
def test_other_lines_are_left_out(line, tmp_path):
    text = format_long(tmp_path, line)
    assert "look like failures" not in text
    assert line not in text


def test_many_failures_are_counted_and_the_first_are_shown(tmp_path):
    output = LimitedOutput(tmp_path / "output.txt", 4_000)
    for number in range(500):
        output.write(f"FAILED tests/test_{number}.py::test_name\n".encode())
    output.close()
    text = output.format_for_model()
    shown = text.count("FAILED")
    first, _, rest = text.partition("[... ")
    middle, _, last = rest.partition("\n[...]\n")
    left_out = 500 - first.count("FAILED") - last.count("FAILED")
    assert f"look like failures: {left_out}; the first {middle.count('FAILED')} are]" in middle
    assert shown < 500
    assert len(text.encode()) <= 4_300


def test_failures_at_the_shown_ends_are_not_repeated(tmp_path):
    text = format_long(tmp_path, "nothing") + format_long(tmp_path, "nothing", ends=False)
    assert "look like failures" not in text
    output = LimitedOutput(tmp_path / "more.txt", 1_000)
    output.write(b"FAILED first\n" + b"passed\n" * 1_000 + b"FAILED last")
    output.close()
    assert output.format_for_model().count("FAILED") == 2
    assert "look like failures" not in output.format_for_model()


@given(st.lists(st.sampled_from(["FAILED a", "passed", "", "E   x", "panic: y"]), max_size=30), st.integers(1, 9))
def test_the_size_of_chunks_changes_nothing(lines, size):
    data = ("\n".join(lines) + "\n").encode()
    whole = FailureLines()
    whole.write(data)
    parts = FailureLines()
    for start in range(0, len(data), size):
        parts.write(data[start : start + size])
    expected = [(number, line.encode()) for number, line in enumerate(lines) if line in ("FAILED a", "panic: y")]
    assert whole.lines == parts.lines == expected


@pytest.mark.parametrize("part", [b"a::", b"a:1", b"test ... ", b" ", b"\t1:1"])
def test_a_long_line_takes_no_quadratic_time(part):
    found = FailureLines()
    found.write(part * (500_000 // len(part)) + b"\n")
    assert found.lines == []
