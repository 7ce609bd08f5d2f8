from checking import run_python

printed = run_python("p100.py").strip()
assert printed == "541", f"it prints {printed[:100]!r}"
