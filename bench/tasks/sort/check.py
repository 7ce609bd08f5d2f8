from checking import read

lines = read("names.txt").strip().splitlines()
assert lines == ["apple", "banana", "fig", "pear"], f"names.txt has {lines}"
