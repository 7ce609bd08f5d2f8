import re

from checking import read_answer

words = re.findall(r"\b(\d+|one|two|three|four|five)\b(?!\.(?:py|txt))", read_answer().lower())
assert "3" in words or "three" in words, f"the answer is {read_answer()[:200]!r}"
assert not {"4", "four"} & set(words), f"the answer is {read_answer()[:200]!r}"
