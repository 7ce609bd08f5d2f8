from checking import get_original, read, run_python

expected = get_original("app.py").replace('f"Hello', 'f"Goodbye')
with_comment = expected.replace("says Hello", "says Goodbye")
text = read("app.py").rstrip("\n") + "\n"
assert text in (expected, with_comment), "app.py has other changes, or none"
assert run_python("app.py", "Ann") == "Goodbye, Ann!\n"
