import json
from pathlib import Path

from checking import get_original, passes_tests, passes_tests_with, read, run_python

Path("sample.txt").write_text("Grüße! the cat and THE dog, the end")
printed = run_python("-m", "wordfreq", "sample.txt", "--json")
try:
    counts = json.loads(printed)
except ValueError:
    counts = None
expected = {"the": 3, "grüße": 1, "cat": 1, "and": 1, "dog": 1, "end": 1}
assert counts == expected, f"with --json it prints {printed[:150]!r}"
top = run_python("-m", "wordfreq", "--json", "--top", "1", "sample.txt")
assert json.loads(top) == {"the": 3}, f"with --json --top 1 it prints {top[:150]!r}"
table = run_python("-m", "wordfreq", "sample.txt", "--top", "1")
assert table == "the  3\n", f"without --json it prints {table[:150]!r}"
assert passes_tests("tests"), "the tests fail"
tests = read("tests/test_wordfreq.py")
assert tests.count("def test_") >= 3 and "--json" in tests, "there is no new test"
old_main = get_original("wordfreq/__main__.py")
assert not passes_tests_with("wordfreq/__main__.py", old_main, "tests"), "the tests pass without the option, too"
