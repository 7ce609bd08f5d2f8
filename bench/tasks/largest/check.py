import re

from checking import read_answer

names = re.findall(r"a\.txt|b\.log|c\.md", read_answer())
assert names[:1] == ["b.log"], f"the answer is {read_answer()[:200]!r}"
