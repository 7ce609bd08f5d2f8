from checking import run_python

printed = " ".join(run_python("fizz.py").lower().split())
assert printed == "1 2 fizz 4 buzz fizz 7 8 fizz buzz 11 fizz 13 14 fizzbuzz", f"it prints {printed[:150]}"
