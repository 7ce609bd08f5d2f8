from checking import run_python

lines = run_python("primes.py").split()
assert lines == ["2", "3", "5", "7", "11", "13", "17", "19", "23", "29"], f"it prints {lines}"
