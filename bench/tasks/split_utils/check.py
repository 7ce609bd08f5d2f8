from checking import evaluate, list_files, passes_tests, read

files = list_files()
assert "notes/utils.py" not in files, "notes/utils.py is still there"
CODE = "from datetime import date\nfrom notes import dates, text, listing, store"
values = evaluate(
    CODE,
    "[dates.day_name(date(2026, 11, 28)), str(dates.next_monday(dates.parse_day('2026-01-01')))]",
    "[text.slug('A  b!'), text.shorten('x' * 30)]",
    "listing.format_line(store.Note('Tea', '2026-11-28'))",
    "store.Note('A b', '2026-11-28').file_name()",
    "[hasattr(text, 'next_monday'), hasattr(dates, 'slug')]",
)
expected = [
    ["Sat", "2026-01-05"],
    ["a-b", "x" * 19 + "…"],
    "Sat 2026-11-28  Tea",
    "2026-11-28-a-b.md",
    [False, False],
]
assert values == expected, f"the functions return {values}"
assert passes_tests("tests"), "the tests fail"
tests = "".join(read(path) for path in files if path.startswith("tests/") and path.endswith(".py"))
assert tests.count("def test_") >= 3 and "date(2026, 12, 7)" in tests and '"abc…"' in tests, "tests are gone"
