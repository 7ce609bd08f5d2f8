from checking import assert_unchanged, get_original, passes_tests, passes_tests_with, read

assert_unchanged("bookings/ranges.py", "bookings/room.py")
assert "def test" in read("tests/test_bookings.py"), "there are no tests"
assert passes_tests("tests"), "the tests fail with the right code"
MISTAKES = [
    ("bookings/ranges.py", "first[0] < second[1] and second[0] < first[1]", "first[0] < second[1]"),
    ("bookings/ranges.py", "start <= merged[-1][1]", "start < merged[-1][1]"),
    ("bookings/ranges.py", "max(merged[-1][1], end)", "end"),
    ("bookings/room.py", "people > self.seats", "False"),
    ("bookings/room.py", "start >= end", "False"),
    ("bookings/room.py", "overlaps(other, (start, end))", "False"),
]
missed = []
for path, right, mistake in MISTAKES:
    text = get_original(path).replace(right, mistake)
    if passes_tests_with(path, text, "tests"):
        missed.append(mistake)
    assert len(missed) <= 2, f"the tests do not notice these mistakes in the code: {missed}"
